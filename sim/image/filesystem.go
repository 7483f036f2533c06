package image

import (
	"fmt"
	"io"
	"slices"
)

// The file systems, as MSFT_Volume.FileSystem names them. "FAT" is FAT12 and FAT16.
const (
	NTFS  = "NTFS"
	ReFS  = "ReFS"
	FAT   = "FAT"
	FAT32 = "FAT32"
	ExFAT = "exFAT"
)

// FileSystem is what the boot sector of a volume says. The zero value is a
// volume that Windows calls RAW: nothing, or a file system of somebody else.
type FileSystem struct {
	Name         string // one of the constants, or empty
	Serial       uint64 // volume serial number; 32 bits on FAT, FAT32 and exFAT
	ClusterBytes uint32 // allocation unit
	TotalBytes   int64  // whole clusters only; less than the partition
	Label        string
}

// FormatSpec asks for a file system.
type FormatSpec struct {
	Name         string // one of the constants, case as given there
	ClusterBytes uint32 // 0 is the default for the size of the volume
	Label        string
	Serial       uint64
}

// ReadWriterAt is the access that changes of a file system need.
type ReadWriterAt interface {
	io.ReaderAt
	io.WriterAt
}

const (
	// wipeBytes is how much of a volume's start Format zeroes. Every file system
	// or volume manager known to blkid that is not at the end identifies itself
	// there: ext at 1080, XFS and LUKS at 0, LVM within 2 KiB, btrfs at 65600.
	wipeBytes = 128 << 10
	// minVolumeBytes leaves room for the boot area of any file system. Windows
	// documents 7 MB as the smallest NTFS volume with a default cluster size.
	minVolumeBytes = 7 << 20
)

// Detect reads the boot sector of the volume of sizeBytes at offsetBytes. A
// volume that cannot be read, or whose file system claims more room than there
// is, has no file system.
func Detect(r io.ReaderAt, offsetBytes, sizeBytes int64) FileSystem {
	v := volume{r: r, offset: offsetBytes, size: sizeBytes}
	boot, ok := v.read(0, SectorBytes)
	if !ok {
		return FileSystem{}
	}
	for _, detect := range []func(volume, []byte) (FileSystem, bool){detectNTFS, detectReFS, detectExFAT, detectFAT} {
		if fs, ok := detect(v, boot); ok {
			return fs
		}
	}
	return FileSystem{}
}

// isFileSystemBootSector reports whether a sector 0 with a boot mark starts a
// file system that covers the whole disk.
func isFileSystemBootSector(sector []byte) bool {
	return hasNTFSMark(sector) || hasExFATMark(sector) || hasFATParameters(sector)
}

// Format makes an empty file system: the boot sector and what else identifies
// it, not the structures that a mount would need. What identified an older file
// system is zeroed. Errors: ErrFileSystem, ErrClusterSize, ErrTooManyClusters,
// ErrLabel, ErrSize for a volume too small for any file system.
// Source: MSFT_Volume.Format.
func Format(w io.WriterAt, offsetBytes, sizeBytes int64, spec FormatSpec) error {
	sizeBytes = sizeBytes / SectorBytes * SectorBytes
	if sizeBytes < minVolumeBytes {
		return fmt.Errorf("format %d bytes: %w", sizeBytes, ErrSize)
	}
	format, ok := map[string]func(formatting) error{
		NTFS: formatNTFS, ReFS: formatReFS, FAT: formatFAT, FAT32: formatFAT, ExFAT: formatExFAT,
	}[spec.Name]
	if !ok {
		return fmt.Errorf("file system %q: %w", spec.Name, ErrFileSystem)
	}
	f := formatting{FormatSpec: spec, w: w, offset: offsetBytes, size: sizeBytes}
	if err := f.chooseCluster(); err != nil {
		return err
	}
	return format(f)
}

// ExtendFileSystem tells the file system of the volume at offsetBytes that the
// volume is now newSizeBytes large. It works for NTFS and, growing only, for
// ReFS; a volume without file system is left alone; others are ErrUnsupported.
// Source: MSFT_Partition.Resize, FSCTL_EXTEND_VOLUME.
func ExtendFileSystem(rw ReadWriterAt, offsetBytes, newSizeBytes int64) error {
	newSizeBytes = newSizeBytes / SectorBytes * SectorBytes
	v := volume{r: rw, offset: offsetBytes, size: maxVolumeBytes}
	boot, ok := v.read(0, SectorBytes)
	if !ok {
		return fmt.Errorf("read boot sector at %d: %w", offsetBytes, io.ErrUnexpectedEOF)
	}
	switch fs := Detect(rw, offsetBytes, maxVolumeBytes); {
	case fs.Name == "":
		return nil
	case newSizeBytes < minVolumeBytes, fs.Name == ReFS && newSizeBytes < fs.TotalBytes:
		return fmt.Errorf("resize %s to %d bytes: %w", fs.Name, newSizeBytes, ErrSize)
	case fs.Name == NTFS:
		return resizeNTFS(rw, boot, offsetBytes, newSizeBytes)
	case fs.Name == ReFS:
		return resizeReFS(rw, boot, offsetBytes, newSizeBytes)
	default:
		return fmt.Errorf("resize %s: %w", fs.Name, ErrUnsupported)
	}
}

// maxVolumeBytes stands for a size nobody checks against.
const maxVolumeBytes = int64(1) << 62

// volume is a part of a disk that is read.
type volume struct {
	r            io.ReaderAt
	offset, size int64
}

// read returns n bytes at off of the volume, false when they are not all there.
func (v volume) read(off, n int64) ([]byte, bool) {
	if off < 0 || off > v.size-n || v.offset < 0 {
		return nil, false
	}
	buf := make([]byte, n)
	got, _ := v.r.ReadAt(buf, v.offset+off)
	return buf, int64(got) == n
}

// formatting is a volume that is being formatted.
type formatting struct {
	FormatSpec
	w            io.WriterAt
	offset, size int64
}

func (f formatting) write(off int64, data []byte) error {
	_, err := f.w.WriteAt(data, f.offset+off)
	return err
}

// begin wipes the start of the volume and writes the boot area over it.
func (f formatting) begin(boot []byte) error {
	if err := f.write(0, make([]byte, wipeBytes)); err != nil {
		return err
	}
	return f.write(0, boot)
}

// hiddenSectors is the volume's place on the disk, as boot sectors record it.
func (f formatting) hiddenSectors() uint32 { return uint32(f.offset / SectorBytes) }

// clusterStep is the default cluster size of volumes up to a size.
type clusterStep struct {
	upToBytes    int64
	clusterBytes uint32
}

const (
	kib = 1 << 10
	mib = int64(1) << 20
	gib = int64(1) << 30
	tib = int64(1) << 40
)

// defaultClusters returns the default cluster sizes of a file system; a volume
// above the last step does not fit. Source: "Default cluster size for NTFS,
// FAT, and exFAT" (Microsoft support), Format-Volume.
func defaultClusters(name string) []clusterStep {
	switch name {
	case NTFS:
		return []clusterStep{
			{16 * tib, 4 * kib}, {32 * tib, 8 * kib}, {64 * tib, 16 * kib}, {128 * tib, 32 * kib}, {256 * tib, 64 * kib},
			{512 * tib, 128 * kib}, {1024 * tib, 256 * kib}, {2048 * tib, 512 * kib}, {4096 * tib, 1024 * kib}, {8192 * tib, 2048 * kib},
		}
	case ReFS:
		return []clusterStep{{maxVolumeBytes, 4 * kib}}
	case FAT:
		return []clusterStep{
			{32 * mib, 512}, {64 * mib, 1 * kib}, {128 * mib, 2 * kib}, {256 * mib, 4 * kib},
			{512 * mib, 8 * kib}, {1 * gib, 16 * kib}, {2 * gib, 32 * kib}, {4 * gib, 64 * kib},
		}
	case FAT32: // Windows does not make larger ones, though it reads them
		return []clusterStep{
			{64 * mib, 512}, {128 * mib, 1 * kib}, {256 * mib, 2 * kib}, {8 * gib, 4 * kib}, {16 * gib, 8 * kib}, {32 * gib, 16 * kib},
		}
	default: // exFAT
		return []clusterStep{{256 * mib, 4 * kib}, {32 * gib, 32 * kib}, {256 * tib, 128 * kib}}
	}
}

// SupportedClusterBytes returns the cluster sizes that a file system takes, in
// bytes and ascending; nil for an unknown one.
// Source: MSFT_Volume.GetSupportedClusterSizes, format command.
func SupportedClusterBytes(name string) []uint32 {
	smallest, largest := uint32(512), uint32(0)
	switch name {
	case NTFS:
		largest = 2 << 20
	case ReFS:
		return []uint32{4 * kib, 64 * kib}
	case FAT, FAT32:
		largest = 64 * kib
	case ExFAT:
		largest = 32 << 20
	}
	var sizes []uint32
	for n := smallest; n <= largest; n *= 2 {
		sizes = append(sizes, n)
	}
	return sizes
}

// chooseCluster fills in the default cluster size and checks a given one.
func (f *formatting) chooseCluster() error {
	steps := defaultClusters(f.Name)
	i := slices.IndexFunc(steps, func(s clusterStep) bool { return f.size <= s.upToBytes })
	if i < 0 {
		return fmt.Errorf("%s on %d bytes: %w", f.Name, f.size, ErrFileSystem)
	}
	if f.ClusterBytes == 0 {
		f.ClusterBytes = steps[i].clusterBytes
	}
	if !slices.Contains(SupportedClusterBytes(f.Name), f.ClusterBytes) {
		return fmt.Errorf("%s with clusters of %d bytes: %w", f.Name, f.ClusterBytes, ErrClusterSize)
	}
	return nil
}
