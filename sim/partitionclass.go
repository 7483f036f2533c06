package sim

import (
	"context"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/sim/image"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// minGrowBytes is the least a partition can grow by. Source: reports of error
// 4097 with a text about an extent below the minimum of 1 MB.
const minGrowBytes = 1 << 20

// partitionClass is MSFT_Partition.
func partitionClass() *class {
	c := newClass(cim.NamespaceStorage, "MSFT_Partition", (*Node).partitionsLocked, func(p *partition) string { return p.objectPath }).
		key("ObjectId", func(p *partition) any { return p.objectID }).
		prop("UniqueId", func(p *partition) any { return p.uniqueID }).
		prop("DiskId", func(p *partition) any { return p.disk.path }).
		prop("DiskNumber", func(p *partition) any { return p.disk.Number }).
		prop("PartitionNumber", func(p *partition) any { return p.Number }).
		prop("Offset", func(p *partition) any { return uint64(p.OffsetBytes) }).
		prop("Size", func(p *partition) any { return uint64(p.SizeBytes) }).
		nodeProp("DriveLetter", func(n *Node, p *partition) any { return n.driveLetterLocked(p.vol) }).
		nodeProp("AccessPaths", func(n *Node, p *partition) any {
			if paths := n.partitionPathsLocked(p); paths != nil {
				return paths
			}
			return nil
		}).
		prop("GptType", func(p *partition) any { return textOrNull(p.GPTType) }).
		prop("MbrType", func(p *partition) any { return ifStyle(p.disk, image.StyleMBR, uint16(p.MBRType)) }).
		prop("Guid", func(p *partition) any { return textOrNull(p.GUID) }).
		prop("OperationalStatus", func(p *partition) any { return p.operationalStatus() }).
		prop("TransitionState", func(*partition) any { return uint16(1) }).
		prop("IsOffline", func(p *partition) any { return p.disk.Offline || p.offline }).
		prop("IsReadOnly", func(p *partition) any { return p.disk.readOnlyNow() || p.GPTAttributes&gptReadOnly != 0 }).
		prop("IsHidden", func(p *partition) any { return p.GPTAttributes&gptHidden != 0 }).
		prop("IsActive", func(p *partition) any { return p.Active }).
		nodeProp("IsBoot", func(n *Node, p *partition) any { return n.isBootVolumeLocked(p.vol) }).
		prop("IsSystem", func(p *partition) any { return p.GPTType == image.GPTTypeEFI }).
		prop("IsShadowCopy", func(*partition) any { return false }).
		prop("IsDAX", func(*partition) any { return false }).
		prop("NoDefaultDriveLetter", func(p *partition) any { return p.GPTAttributes&gptNoDriveLetter != 0 })
	return partitionMethods(c)
}

func partitionMethods(c classOf[*partition]) *class {
	return c.
		method("GetSupportedSize", "", supportedSize).
		method("Resize", "Size:u64", resizePartition).
		method("AddAccessPath", "AccessPath:s AssignDriveLetter:b", addAccessPath).
		method("RemoveAccessPath", "AccessPath:s", removeAccessPath).
		method("GetAccessPaths", "", func(n *Node, p *partition, _ args) (cim.Result, error) {
			return cim.Result{Out: cim.Values{"AccessPaths": n.partitionPathsLocked(p)}}, nil
		}).
		method("Online", "", func(n *Node, p *partition, _ args) (cim.Result, error) { return setPartitionOnline(n, p, true) }).
		method("Offline", "", func(n *Node, p *partition, _ args) (cim.Result, error) { return setPartitionOnline(n, p, false) }).
		method("SetAttributes", "IsReadOnly:b NoDefaultDriveLetter:b IsActive:b IsHidden:b IsShadowCopy:b IsDAX:b MbrType:u16 GptType:s",
			setPartitionAttributes).
		method("DeleteObject", "", deletePartition).class
}

// operationalStatus: 1 online, 4 offline. Source: MSFT_Partition.OperationalStatus.
func (p *partition) operationalStatus() uint16 {
	if p.disk.Offline || p.offline {
		return 4
	}
	return 1
}

// driveLetterLocked is a char16, 0 for none.
func (n *Node) driveLetterLocked(v *volume) uint16 {
	if v == nil {
		return 0
	}
	return uint16(n.letterLocked(v))
}

func (n *Node) isBootVolumeLocked(v *volume) bool {
	return v != nil && n.state.SystemVolumes["C"] == v.name
}

// sizesLocked works out the limits of Resize. The shrink analysis is the
// defragmenter's, so its service must not be disabled: code 4. Source:
// MSFT_Partition.GetSupportedSize; reports of code 4 with defragsvc disabled.
func (n *Node) sizesLocked(p *partition) (sizeMin, sizeMax int64, code uint32) {
	if s := n.serviceLocked(serviceDefrag); s == nil || s.StartType == startDisabled {
		return 0, 0, codeFailed
	}
	switch {
	case p.disk.Offline:
		return 0, 0, codeFailed
	case p.vol != nil && p.vol.fs.Name != "" && p.vol.fs.Name != image.NTFS && p.vol.fs.Name != image.ReFS:
		return 0, 0, codeUnknownFileSystem
	}
	sizeMax = p.disk.layout.MaxPartitionBytes(p.Number)
	sizeMin = minGrowBytes
	if p.vol != nil && p.vol.fs.Name != "" {
		sizeMin = max(p.vol.fs.TotalBytes-n.freeBytesLocked(p.vol), minGrowBytes)
	}
	return min(sizeMin, p.SizeBytes), sizeMax, 0
}

// supportedSize is MSFT_Partition.GetSupportedSize.
func supportedSize(n *Node, p *partition, _ args) (cim.Result, error) {
	sizeMin, sizeMax, code := n.sizesLocked(p)
	if code != 0 {
		return returns(code)
	}
	return cim.Result{Out: cim.Values{"SizeMin": uint64(sizeMin), "SizeMax": uint64(sizeMax)}}, nil
}

// resizePartition is MSFT_Partition.Resize: partition and file system together.
// The current size, and a growth below 1 MiB, give 4097.
func resizePartition(n *Node, p *partition, in args) (cim.Result, error) {
	sizeMin, sizeMax, code := n.sizesLocked(p)
	if code != 0 {
		return returns(code)
	}
	if in.u64("Size") > uint64(sizeMax) {
		return returns(codeSizeNotSupported)
	}
	size := int64(in.u64("Size")) / image.SectorBytes * image.SectorBytes
	switch {
	case size == 0:
		return returns(codeInvalidParameter)
	case size < sizeMin, size == p.SizeBytes, size > p.SizeBytes && size-p.SizeBytes < minGrowBytes:
		return returns(codeSizeNotSupported)
	case p.disk.readOnlyNow():
		return returns(codeFailed)
	}
	d, number, offset := p.disk, p.Number, p.OffsetBytes
	return returnsError(n.writeTableLocked(d, func() error {
		if size < p.SizeBytes { // the file system first, so that it never reaches beyond
			if err := image.ExtendFileSystem(d.img, offset, size); err != nil {
				return err
			}
			return d.img.ResizePartition(number, size)
		}
		if err := d.img.ResizePartition(number, size); err != nil {
			return err
		}
		return image.ExtendFileSystem(d.img, offset, size)
	}))
}

// addAccessPath is MSFT_Partition.AddAccessPath.
func addAccessPath(n *Node, p *partition, in args) (cim.Result, error) {
	path, assign := in.text("AccessPath"), in.flag("AssignDriveLetter")
	switch {
	case (path != "") == assign:
		return returns(codeInvalidParameter)
	case p.GPTAttributes&gptHidden != 0:
		return returns(codeHiddenPartition)
	case p.offline:
		return addToOffline(n, p, in)
	case p.vol == nil || !p.vol.arrived():
		return returns(codeInvalidAccessPath)
	}
	if assign {
		if n.driveLetterLocked(p.vol) != 0 {
			return returns(codeAccessPathInUse)
		}
		return returns(n.letterForNew(p, 0, true))
	}
	if letter, ok := driveRoot(path); ok {
		return returns(n.letterForNew(p, uint16(letter), false))
	}
	volume := p.vol.name
	return returns(accessPathCode(n.unlocked(func(ctx context.Context) error {
		return n.files.SetVolumeMountPoint(ctx, withSlash(path), volume)
	})))
}

// addToOffline brings a partition online by giving it an access path.
func addToOffline(n *Node, p *partition, in args) (cim.Result, error) {
	if result, err := setPartitionOnline(n, p, true); err != nil || result.ReturnValue != 0 {
		return result, err
	}
	for _, fresh := range p.disk.parts {
		if fresh.OffsetBytes == p.OffsetBytes && !fresh.offline {
			return addAccessPath(n, fresh, in)
		}
	}
	return returns(codeNotFound)
}

// driveRoot reads `X:` and `X:\`.
func driveRoot(path string) (byte, bool) {
	path = strings.TrimSuffix(path, `\`)
	if len(path) != 2 || path[1] != ':' || !isLetter(uint16(path[0])) {
		return 0, false
	}
	return path[0] &^ 0x20, true
}

func withSlash(path string) string { return strings.TrimSuffix(path, `\`) + `\` }

// accessPathCode gives the return code for a failure of the mount manager.
// Source: MSFT_Partition.AddAccessPath.
func accessPathCode(err error) uint32 {
	switch code := win32Code(err); code {
	case 0:
		return 0
	case win32.ErrDirNotEmpty, win32.ErrAlreadyExists:
		return codeAccessPathInUse
	case win32.ErrAccessDenied:
		return 40001
	default:
		return codeInvalidAccessPath
	}
}

// removeAccessPath is MSFT_Partition.RemoveAccessPath. It does not close
// handles and does not flush.
func removeAccessPath(n *Node, p *partition, in args) (cim.Result, error) {
	path := in.text("AccessPath")
	paths := n.partitionPathsLocked(p)
	known := func(want string) bool {
		return slices.ContainsFunc(paths, func(have string) bool { return strings.EqualFold(have, want) })
	}
	switch {
	case path == "":
		return returns(codeInvalidParameter)
	case p.vol != nil && strings.EqualFold(withSlash(path), p.vol.name):
		return returns(codeGUIDPathStays)
	case !known(withSlash(path)):
		return returns(codeInvalidAccessPath)
	}
	if letter, ok := driveRoot(path); ok {
		if n.isBootVolumeLocked(p.vol) {
			return returns(codeBootLetter)
		}
		n.files.SetDrive(letter, "")
		return returns(0)
	}
	return returns(accessPathCode(n.unlocked(func(ctx context.Context) error {
		return n.files.DeleteVolumeMountPoint(ctx, withSlash(path))
	})))
}

// setPartitionOnline is MSFT_Partition.Online and Offline, for data partitions.
// Offline stays in force until Online or an access path is added.
func setPartitionOnline(n *Node, p *partition, online bool) (cim.Result, error) {
	switch {
	case p.disk.System:
		return returns(codeCriticalPartition)
	case !p.hasVolume():
		return returns(codeDataPartitionOnly)
	case p.disk.Offline:
		return returns(codeDiskOffline)
	}
	name := n.volumeNameLocked(p)
	delete(n.state.OfflinePartitions, name)
	if !online {
		n.state.OfflinePartitions[name] = true
	}
	return returnsError(n.refreshPartsLocked(p.disk))
}

// setPartitionAttributes is MSFT_Partition.SetAttributes for what can be set on
// a GPT data partition; the rest is not supported.
func setPartitionAttributes(n *Node, p *partition, in args) (cim.Result, error) {
	bits := map[string]uint64{"IsReadOnly": gptReadOnly, "NoDefaultDriveLetter": gptNoDriveLetter, "IsHidden": gptHidden}
	if code := p.disk.changeable(); code != 0 {
		return returns(code)
	}
	if p.disk.System {
		return returns(codeCriticalPartition)
	}
	attributes := p.GPTAttributes
	for name := range in {
		bit, ok := bits[name]
		switch {
		case !ok:
			return returns(codeNotSupported)
		case p.disk.layout.Style != image.StyleGPT:
			return returns(codeWrongStyle)
		case in.flag(name):
			attributes |= bit
		default:
			attributes &^= bit
		}
	}
	return returnsError(n.writeTableLocked(p.disk, func() error { return p.disk.img.SetAttributes(p.Number, attributes) }))
}

// deletePartition is MSFT_Partition.DeleteObject: access paths go with it.
func deletePartition(n *Node, p *partition, _ args) (cim.Result, error) {
	if code := p.disk.changeable(); code != 0 {
		return returns(code)
	}
	if p.disk.System {
		return returns(codeCriticalPartition)
	}
	if p.vol != nil {
		paths := n.accessPathsLocked(p.vol)
		_ = n.unlocked(func(ctx context.Context) error {
			for _, path := range paths {
				if err := n.files.DeleteVolumeMountPoint(ctx, path); err != nil {
					n.log.Warn("access path not removed", "path", path, "error", err)
				}
			}
			return nil
		})
	}
	return returnsError(n.writeTableLocked(p.disk, func() error { return p.disk.img.DeletePartition(p.Number) }))
}
