package sim

import (
	"math/rand/v2"
	"strings"

	"github.com/csi-windows/csi-windows/sim/image"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// volumeClass is MSFT_Volume.
func volumeClass() *class {
	c := newClass(cim.NamespaceStorage, "MSFT_Volume", (*Node).volumesLocked, func(v *volume) string { return v.objectPath }).
		key("ObjectId", func(v *volume) any { return v.objectID }).
		prop("UniqueId", func(v *volume) any { return v.name }).
		prop("Path", func(v *volume) any { return v.name }).
		nodeProp("DriveLetter", func(n *Node, v *volume) any { return n.driveLetterLocked(v) }).
		prop("DriveType", func(*volume) any { return uint32(3) }).
		prop("FileSystem", func(v *volume) any { return v.fs.Name }).
		prop("FileSystemType", func(v *volume) any { return v.fileSystemType() }).
		prop("FileSystemLabel", func(v *volume) any { return v.fs.Label }).
		prop("Size", func(v *volume) any { return uint64(v.fs.TotalBytes) }).
		nodeProp("SizeRemaining", func(n *Node, v *volume) any { return uint64(n.freeBytesLocked(v)) }).
		prop("AllocationUnitSize", func(v *volume) any { return v.fs.ClusterBytes }).
		prop("HealthStatus", func(*volume) any { return uint16(0) }).
		prop("OperationalStatus", func(v *volume) any { return v.operationalStatus() }).
		prop("DedupMode", func(*volume) any { return uint32(4) })
	return c.
		method("Format", "FileSystem:s FileSystemLabel:s AllocationUnitSize:u32 Full:b Force:b Compress:b ShortFileNameSupport:b"+
			" SetIntegrityStreams:b UseLargeFRS:b DisableHeatGathering:b IsDAX:b RunAsJob:b", formatVolume).
		method("Flush", "", func(n *Node, v *volume, _ args) (cim.Result, error) { return returnsError(n.flushLocked(v)) }).
		method("GetSupportedFileSystems", "", func(*Node, *volume, args) (cim.Result, error) {
			return cim.Result{Out: cim.Values{"SupportedFileSystems": []string{image.NTFS, image.ReFS, image.FAT32, image.ExFAT, image.FAT}}}, nil
		}).
		method("GetSupportedClusterSizes", "FileSystem:s", clusterSizes).class
}

// fileSystemType is MSFT_Volume.FileSystemType; exFAT's number is not
// documented and shows as unknown.
func (v *volume) fileSystemType() uint16 {
	switch v.fs.Name {
	case image.NTFS:
		return 14
	case image.ReFS:
		return 15
	case image.FAT32:
		return 6
	case image.FAT:
		return 5
	}
	return 0
}

// operationalStatus is {0} on a volume without file system, {2} (OK) else.
func (v *volume) operationalStatus() []uint16 {
	if v.fs.Name == "" {
		return []uint16{0}
	}
	return []uint16{2}
}

// fileSystemName reads a name without regard to case; empty is NTFS.
func fileSystemName(name string) string {
	if name == "" {
		return image.NTFS
	}
	for _, known := range []string{image.NTFS, image.ReFS, image.FAT, image.FAT32, image.ExFAT} {
		if strings.EqualFold(known, name) {
			return known
		}
	}
	return name
}

// clusterSizes is MSFT_Volume.GetSupportedClusterSizes.
func clusterSizes(_ *Node, _ *volume, in args) (cim.Result, error) {
	sizes := image.SupportedClusterBytes(fileSystemName(in.text("FileSystem")))
	if sizes == nil {
		return returns(codeFileSystem)
	}
	return cim.Result{Out: cim.Values{"SupportedClusterSizes": sizes}}, nil
}

// formatVolume is MSFT_Volume.Format. No return code protects what is on the
// volume: it is simply formatted again. Options that belong to another file
// system are refused.
func formatVolume(n *Node, v *volume, in args) (cim.Result, error) {
	name := fileSystemName(in.text("FileSystem"))
	onlyNTFS := in.flag("Compress") || in.flag("ShortFileNameSupport") || in.flag("UseLargeFRS")
	switch {
	case v.disk().System:
		return returns(codeCriticalPartition)
	case v.readOnly():
		return returns(codeDriveReadOnly)
	case onlyNTFS && name != image.NTFS, in.flag("SetIntegrityStreams") && name != image.ReFS:
		return returns(codeInvalidParameter)
	}
	d, p := v.disk(), v.part
	n.closeVolumeHandlesLocked(v)
	err := n.writeTableLocked(d, func() error {
		return image.Format(d.img, p.OffsetBytes, p.SizeBytes, image.FormatSpec{
			Name: name, ClusterBytes: in.u32("AllocationUnitSize"), Label: in.text("FileSystemLabel"), Serial: newSerial(name),
		})
	})
	if err != nil {
		return returnsError(err)
	}
	return cim.Result{Out: cim.Values{"FormattedVolume": n.schema.class(cim.NamespaceStorage, "MSFT_Volume").instance(n, v, nil)}}, nil
}

// newSerial makes a volume serial number: 64 bits on NTFS and ReFS, 32 elsewhere.
func newSerial(fileSystem string) uint64 {
	serial := rand.Uint64() | 1
	if fileSystem != image.NTFS && fileSystem != image.ReFS {
		serial &= 0xFFFFFFFF
	}
	return serial
}
