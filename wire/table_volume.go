package wire

// volumeVersions are the six versions of the volume group. v1beta3 and v1 differ
// in nothing but their name, and each version adds methods to the one before.
//
// GetVolumeDiskNumber of v1beta1 and v1beta2 answers with an int64 where the
// newest answers with a uint32; both are the same varint.
func volumeVersions() []version {
	first := func() []method {
		return []method{
			row("ListVolumesOnDisk", listVolumesOnDisk).asks(volumesByDiskText()),
			row("MountVolume", mountVolume),
			row("DismountVolume", unmountVolume),
			row("IsVolumeFormatted", isVolumeFormatted),
			row("FormatVolume", formatVolume),
			row("ResizeVolume", resizeVolume),
		}
	}
	second := func() []method {
		return append(first(),
			row("VolumeStats", getVolumeStats),
			row("GetVolumeDiskNumber", getDiskNumberFromVolumeID),
			row("GetVolumeIDFromMount", getVolumeIDFromTargetPath),
		)
	}
	stable := func() []method {
		return []method{
			row("ListVolumesOnDisk", listVolumesOnDisk),
			row("MountVolume", mountVolume),
			row("UnmountVolume", unmountVolume),
			row("IsVolumeFormatted", isVolumeFormatted),
			row("FormatVolume", formatVolume),
			row("ResizeVolume", resizeVolume),
			row("GetVolumeStats", getVolumeStats),
			row("GetDiskNumberFromVolumeID", getDiskNumberFromVolumeID),
			row("GetVolumeIDFromTargetPath", getVolumeIDFromTargetPath),
			row("WriteVolumeCache", writeVolumeCache),
		}
	}
	return []version{
		{API{GroupVolume, "v1alpha1"}, "Volume", first()},
		{API{GroupVolume, "v1beta1"}, "Volume", second()},
		{API{GroupVolume, "v1beta2"}, "Volume", append(second(), row("WriteVolumeCache", writeVolumeCache))},
		{API{GroupVolume, "v1beta3"}, "Volume", stable()},
		{API{GroupVolume, "v1"}, "Volume", stable()},
		{API{GroupVolume, "v2alpha1"}, "Volume", append(stable(),
			row("GetClosestVolumeIDFromTargetPath", getClosestVolumeIDFromTargetPath))},
	}
}
