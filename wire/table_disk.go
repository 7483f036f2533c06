package wire

// diskVersions are the five versions of the disk group. v1beta3 and v1 differ in
// nothing but their name.
func diskVersions() []version {
	newest := func() []method {
		return []method{
			row("ListDiskLocations", listDiskLocations),
			row("PartitionDisk", partitionDisk),
			row("Rescan", rescan),
			row("ListDiskIDs", listDiskIDs),
			row("GetDiskStats", getDiskStats),
			row("SetDiskState", setDiskState),
			row("GetDiskState", getDiskState),
		}
	}
	return []version{
		{API{GroupDisk, "v1alpha1"}, "Disk", []method{
			row("ListDiskLocations", listDiskLocations).answers(locationsByText()),
			row("PartitionDisk", partitionDisk).asks(partitionDiskByText()),
			row("Rescan", rescan),
			row("GetDiskNumberByName", getDiskNumberByName).answers(numberAsText()),
		}},
		{API{GroupDisk, "v1beta1"}, "Disk", []method{
			row("ListDiskLocations", listDiskLocations).answers(locationsByText()),
			row("PartitionDisk", partitionDisk).asks(partitionDiskByText()),
			row("Rescan", rescan),
			row("ListDiskIDs", listDiskIDs).answers(diskIDsByText()),
			row("DiskStats", getDiskStats).asks(diskStatsByText()),
		}},
		{API{GroupDisk, "v1beta2"}, "Disk", []method{
			row("ListDiskLocations", listDiskLocations).answers(locationsByText()),
			row("PartitionDisk", partitionDisk).asks(partitionDiskByText()),
			row("Rescan", rescan),
			row("ListDiskIDs", listDiskIDs).answers(diskIDsByText()),
			row("DiskStats", getDiskStats).asks(diskStatsByText()),
			row("SetAttachState", setDiskState).asks(setAttachStateByText()),
			row("GetAttachState", getDiskState).asks(getAttachStateByText()),
		}},
		{API{GroupDisk, "v1beta3"}, "Disk", newest()},
		{API{GroupDisk, "v1"}, "Disk", newest()},
	}
}
