package wire

// smbVersions are the four versions of the smb group, which differ only in an
// error text of the two oldest responses that stays empty.
func smbVersions() []version {
	methods := func() []method {
		return []method{
			row("NewSmbGlobalMapping", newSmbGlobalMapping),
			row("RemoveSmbGlobalMapping", removeSmbGlobalMapping),
		}
	}
	return []version{
		{API{GroupSMB, "v1alpha1"}, "Smb", methods()},
		{API{GroupSMB, "v1beta1"}, "Smb", methods()},
		{API{GroupSMB, "v1beta2"}, "Smb", methods()},
		{API{GroupSMB, "v1"}, "Smb", methods()},
	}
}

// iscsiVersions are the two versions of the iscsi group; the newer adds a method.
func iscsiVersions() []version {
	first := func() []method {
		return []method{
			row("AddTargetPortal", addTargetPortal),
			row("DiscoverTargetPortal", discoverTargetPortal),
			row("RemoveTargetPortal", removeTargetPortal),
			row("ListTargetPortals", listTargetPortals),
			row("ConnectTarget", connectTarget),
			row("DisconnectTarget", disconnectTarget),
			row("GetTargetDisks", getTargetDisks),
		}
	}
	return []version{
		{API{GroupISCSI, "v1alpha1"}, "Iscsi", first()},
		{API{GroupISCSI, "v1alpha2"}, "Iscsi", append(first(), row("SetMutualChapSecret", setMutualChapSecret))},
	}
}

// systemVersions is the one version of the system group.
func systemVersions() []version {
	return []version{
		{API{GroupSystem, "v1alpha1"}, "System", []method{
			row("GetBIOSSerialNumber", getBIOSSerialNumber),
			row("StartService", startService),
			row("StopService", stopService),
			row("GetService", getService),
		}},
	}
}

// extensionVersions is the group of our own that adds to the primitives.
func extensionVersions() []version {
	return []version{
		{API{GroupExtension, "v1alpha1"}, "Extension", []method{
			row("GetServerInfo", getServerInfo),
			row("ListDisks", listDisks),
			row("SetDiskReadOnly", setDiskReadOnly),
			row("ListVolumes", listVolumes),
			row("GetVolume", getVolume),
			row("FormatVolumeWith", formatVolumeWith),
			row("ListMounts", listMounts),
			row("GetLink", getLink),
			row("GetPathStats", getPathStats),
			row("ListSmbGlobalMappings", listSmbGlobalMappings),
			row("ListTargets", listTargets),
			row("ConnectTargetWith", connectTargetWith),
		}},
	}
}

// nodeVersions is the group of our own that has the node tasks.
func nodeVersions() []version {
	return []version{
		{API{GroupNode, "v1alpha1"}, "Node", []method{
			row("Stage", stage),
			row("Unstage", unstage),
			row("Publish", publish),
			row("Unpublish", unpublish),
			row("Expand", expand),
			row("Stats", stats),
			row("Health", healthOf),
			row("Info", info),
		}},
	}
}
