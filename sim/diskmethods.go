package sim

import (
	"strings"

	"github.com/google/uuid"

	"github.com/csi-windows/csi-windows/sim/image"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// diskMethods adds the methods of MSFT_Disk.
func diskMethods(c classOf[*disk]) *class {
	return c.
		method("Initialize", "PartitionStyle:u16", initializeDisk).
		method("Online", "", onlineDisk).
		method("Offline", "", offlineDisk).
		method("SetAttributes", "IsReadOnly:b Signature:u32 Guid:s", setDiskAttributes).
		method("Clear", "RemoveData:b RemoveOEM:b ZeroOutEntireDisk:b Sanitize:b RunAsJob:b", clearDisk).
		method("ConvertStyle", "PartitionStyle:u16", convertStyle).
		method("CreatePartition", "Size:u64 UseMaximumSize:b Offset:u64 Alignment:u32 DriveLetter:c16 AssignDriveLetter:b"+
			" MbrType:u16 GptType:s IsHidden:b IsActive:b", createPartition).
		method("Refresh", "", func(n *Node, d *disk, _ args) (cim.Result, error) { return returnsError(n.refreshDiskLocked(d)) }).
		class
}

// writeTableLocked carries out a change of the partition table, writes it
// through to the medium, and looks at the disk again. With the write cache
// switched on the change waits for a flush instead.
func (n *Node) writeTableLocked(d *disk, change func() error) error {
	if err := change(); err != nil {
		return err
	}
	if err := n.writeThrough(d); err != nil {
		return err
	}
	return n.refreshPartsLocked(d)
}

func (n *Node) writeThrough(d *disk) error {
	if n.config.DiskWriteCache {
		return nil
	}
	return d.img.Flush()
}

// initializeDisk is MSFT_Disk.Initialize. A disk that the SAN policy keeps
// offline and read-only comes online writable, as transcripts show; neither
// state is among the method's errors.
func initializeDisk(n *Node, d *disk, in args) (cim.Result, error) {
	style := in.u16("PartitionStyle")
	switch {
	case in.has("PartitionStyle") && style != uint16(image.StyleMBR) && style != uint16(image.StyleGPT):
		return returns(codeInvalidParameter)
	case d.layout.Style != image.StyleRAW:
		return returns(codeInitialized)
	case d.Spec.WriteProtected:
		return returns(codeFailed)
	}
	err := n.writeTableLocked(d, func() error {
		if style == uint16(image.StyleMBR) {
			return d.img.InitMBR(uuid.New().ID())
		}
		return d.img.InitGPT(uuid.NewString())
	})
	if err != nil {
		return returnsError(err)
	}
	d.Offline, d.ReadOnly, d.Reason = false, false, 0
	n.rememberLocked(d)
	return returnsError(n.refreshPartsLocked(d))
}

// onlineDisk is MSFT_Disk.Online. A disk that is offline because its signature
// is taken gets another one.
func onlineDisk(n *Node, d *disk, _ args) (cim.Result, error) {
	return returnsError(n.setOnlineLocked(d, true, true))
}

// offlineDisk is MSFT_Disk.Offline; critical disks refuse.
func offlineDisk(n *Node, d *disk, _ args) (cim.Result, error) {
	if d.System {
		return returns(codeCriticalDisk)
	}
	return returnsError(n.setOnlineLocked(d, false, true))
}

// setOnlineLocked brings a disk online or offline; persist keeps it over a restart.
func (n *Node) setOnlineLocked(d *disk, online, persist bool) error {
	if online && d.Offline && n.collidesLocked(d) {
		if err := n.newSignatureLocked(d); err != nil {
			return err
		}
		if err := n.writeThrough(d); err != nil {
			return err
		}
	}
	if !online && !d.Offline {
		n.removeVolumesLocked(d, false)
		if err := d.img.Flush(); err != nil {
			return err
		}
	}
	d.Offline, d.Reason = !online, 0
	if persist {
		n.rememberLocked(d)
	}
	return n.settleTableLocked(d)
}

// setDiskAttributes is MSFT_Disk.SetAttributes, on an online disk.
func setDiskAttributes(n *Node, d *disk, in args) (cim.Result, error) {
	switch {
	case len(in) == 0:
		return returns(codeInvalidParameter)
	case d.Offline:
		return returns(codeDiskOffline)
	case in.has("IsReadOnly") && d.System:
		return returns(codeCriticalDisk)
	case !in.has("IsReadOnly") && d.layout.Style == image.StyleRAW:
		return returns(codeNotInitialized)
	}
	if in.has("IsReadOnly") {
		if err := n.setReadOnlyLocked(d, in.flag("IsReadOnly"), true); err != nil {
			return returnsError(err)
		}
	}
	return returnsError(n.writeTableLocked(d, func() error {
		if in.has("Signature") {
			if err := d.img.SetSignature(in.u32("Signature")); err != nil {
				return err
			}
		}
		if in.has("Guid") {
			return d.img.SetDiskGUID(in.text("Guid"))
		}
		return nil
	}))
}

func (n *Node) setReadOnlyLocked(d *disk, readOnly, persist bool) error {
	d.ReadOnly = readOnly
	if persist {
		n.rememberLocked(d)
	}
	return n.settleTableLocked(d)
}

// changeable gives the code that forbids a change of the partition table.
func (d *disk) changeable() uint32 {
	switch {
	case d.Offline:
		return codeDiskOffline
	case d.readOnlyNow():
		return codeDiskReadOnly
	case d.layout.Style == image.StyleRAW:
		return codeNotInitialized
	}
	return 0
}

// clearDisk is MSFT_Disk.Clear.
func clearDisk(n *Node, d *disk, in args) (cim.Result, error) {
	if code := d.changeable(); code != 0 {
		return returns(code)
	}
	if d.System {
		return returns(codeCriticalDisk)
	}
	for _, p := range d.parts {
		if p.isOEM() && !in.flag("RemoveOEM") {
			return returns(codeNeedsRemoveOEM)
		}
		if p.isData() && !in.flag("RemoveData") {
			return returns(codeNeedsRemoveData)
		}
	}
	return returnsError(n.writeTableLocked(d, d.img.Clear))
}

// convertStyle is MSFT_Disk.ConvertStyle: only a disk without partitions.
func convertStyle(n *Node, d *disk, in args) (cim.Result, error) {
	if code := d.changeable(); code != 0 {
		return returns(code)
	}
	for _, p := range d.parts {
		if !p.isReserved() {
			return returns(codeHasPartitions)
		}
	}
	return returnsError(n.writeTableLocked(d, func() error {
		if err := d.img.Clear(); err != nil {
			return err
		}
		if in.u16("PartitionStyle") == uint16(image.StyleMBR) {
			return d.img.InitMBR(uuid.New().ID())
		}
		return d.img.InitGPT(uuid.NewString())
	}))
}

// createPartition is MSFT_Disk.CreatePartition. A drive letter that is taken
// gives 42002 although the partition is made.
func createPartition(n *Node, d *disk, in args) (cim.Result, error) {
	letter, assign := in.u16("DriveLetter"), in.flag("AssignDriveLetter")
	switch code := d.changeable(); {
	case code != 0:
		return returns(code)
	case letter != 0 && assign:
		return returns(codeInvalidParameter)
	case letter != 0 && !isLetter(letter), in.u16("MbrType") > 0xFF:
		return returns(codeInvalidParameter)
	}
	spec := image.PartitionSpec{
		SizeBytes: int64(in.u64("Size")), UseMaximumSize: in.flag("UseMaximumSize"),
		OffsetBytes: int64(in.u64("Offset")), AlignmentBytes: int64(in.u32("Alignment")),
		GPTType: in.text("GptType"), MBRType: byte(in.u16("MbrType")), Active: in.flag("IsActive"),
	}
	if in.flag("IsHidden") && d.layout.Style == image.StyleGPT {
		spec.GPTAttributes = gptHidden
	}
	var made image.Entry
	err := n.writeTableLocked(d, func() error {
		var err error
		made, err = d.img.AddPartition(spec)
		return err
	})
	if err != nil {
		return returnsError(err)
	}
	result := cim.Result{}
	for _, p := range d.parts {
		if p.OffsetBytes == made.OffsetBytes {
			result.ReturnValue = n.letterForNew(p, letter, assign)
			result.Out = cim.Values{"CreatedPartition": n.schema.class(cim.NamespaceStorage, "MSFT_Partition").instance(n, p, nil)}
		}
	}
	return result, nil
}

// letterForNew gives a new partition its drive letter. Running out of letters
// is no error. Source: MSFT_Disk.CreatePartition, AssignDriveLetter.
func (n *Node) letterForNew(p *partition, letter uint16, assign bool) uint32 {
	if p.vol == nil || letter == 0 && !assign {
		return 0
	}
	if assign {
		if free := n.freeLetterLocked(); free != 0 {
			n.files.SetDrive(free, p.vol.name)
		}
		return 0
	}
	if n.letterTakenLocked(byte(letter)) {
		return codeAccessPathInUse
	}
	n.files.SetDrive(byte(letter), p.vol.name)
	return 0
}

func isLetter(c uint16) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func (n *Node) letterTakenLocked(letter byte) bool {
	_, taken := n.files.Drives()[letter&^0x20]
	return taken
}

// freeLetterLocked is the first free letter from C.
func (n *Node) freeLetterLocked() byte {
	taken := n.files.Drives()
	for letter := byte('C'); letter <= 'Z'; letter++ {
		if _, ok := taken[letter]; !ok {
			return letter
		}
	}
	return 0
}

// refreshDiskLocked looks at the medium again: a grown one shows its size, and
// on GPT the backup table moves to the new end. Source: MSFT_Disk.Refresh,
// IOCTL_DISK_UPDATE_PROPERTIES.
func (n *Node) refreshDiskLocked(d *disk) error {
	size, err := imageSize(d.Spec.Image)
	if err != nil {
		return err
	}
	if size > d.img.SizeBytes() {
		if err := d.img.Grow(size); err != nil {
			return err
		}
	}
	d.SizeBytes = d.img.SizeBytes()
	return n.settleTableLocked(d)
}

// gptTailBytes is what the backup table takes at the end of a disk: 32 sectors
// of entries and the header. Source: UEFI specification, GPT disk layout.
const gptTailBytes = 33 * image.SectorBytes

// settleTableLocked moves the backup table of a GPT disk that can be written to
// the end of the disk, and looks at the partitions again.
func (n *Node) settleTableLocked(d *disk) error {
	layout, err := d.img.Layout()
	if err != nil {
		return err
	}
	moved := d.img.SizeBytes()-layout.EndUsableBytes > gptTailBytes
	if layout.Style == image.StyleGPT && moved && !d.Offline && !d.readOnlyNow() {
		return n.writeTableLocked(d, d.img.MoveBackup)
	}
	return n.refreshPartsLocked(d)
}

// trimWords joins words without surrounding blanks.
func trimWords(words ...string) string {
	for i := range words {
		words[i] = strings.TrimSpace(words[i])
	}
	return strings.TrimSpace(strings.Join(words, " "))
}
