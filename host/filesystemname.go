package host

import "strings"

// FileSystemName returns the canonical name of a file system Windows can make, asked
// for in any case: "NTFS" (also for an empty name), "ReFS", "exFAT", "FAT32". False
// means that there is none of this name, as for "ext4" and "xfs", which a control
// plane fills in that does not know the node's operating system.
func FileSystemName(name string) (string, bool) {
	if name == "" {
		return "NTFS", true
	}
	for _, known := range [...]string{"NTFS", "ReFS", "exFAT", "FAT32"} {
		if strings.EqualFold(known, name) {
			return known, true
		}
	}
	return "", false
}
