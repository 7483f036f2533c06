package image_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/fat32"
	"github.com/diskfs/go-diskfs/partition/gpt"
	"github.com/diskfs/go-diskfs/partition/mbr"
	"github.com/google/go-cmp/cmp"

	"github.com/csi-windows/csi-windows/sim/image"
)

// flushedFile is the image's file, ready for a reader that knows nothing of us.
func flushedFile(tb testing.TB, im *image.Image, path string) *os.File {
	tb.Helper()
	must(tb, im.Flush())
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(tb, err)
	tb.Cleanup(func() { _ = f.Close() })
	return f
}

func TestForeignReaderAgreesOnGPT(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d")
	im, err := image.Create(path, gib)
	must(t, err)
	defer im.Close()
	must(t, im.InitGPT(diskGUID))
	made, err := im.AddPartition(image.PartitionSpec{SizeBytes: 100 * mib, GUID: partGUID, Name: "Dätä", GPTAttributes: 1 << 63})
	must(t, err)
	must(t, im.Grow(2*gib))
	must(t, im.MoveBackup())

	table, err := gpt.Read(flushedFile(t, im, path), 512, 512)
	must(t, err)
	if err := table.Verify(flushedFile(t, im, path), uint64(2*gib)); err != nil {
		t.Errorf("a foreign reader finds fault: %v", err)
	}
	if got := "{" + lower(table.GUID) + "}"; got != diskGUID || !table.ProtectiveMBR {
		t.Errorf("disk %s, protective MBR %v", got, table.ProtectiveMBR)
	}
	got := table.Partitions[1]
	type summary struct {
		Start, End, Attributes uint64
		Type, GUID, Name       string
	}
	want := summary{
		uint64(made.OffsetBytes / 512), uint64((made.OffsetBytes+made.SizeBytes)/512 - 1), 1 << 63, image.GPTTypeBasicData, partGUID, "Dätä",
	}
	if diff := cmp.Diff(want, summary{
		got.Start, got.End, got.Attributes, "{" + lower(string(got.Type)) + "}", "{" + lower(got.GUID) + "}", got.Name,
	}); diff != "" {
		t.Errorf("partition (-want +got):\n%s", diff)
	}
	if msr := table.Partitions[0]; msr.Type != gpt.MicrosoftReserved || msr.Start != 34 {
		t.Errorf("reserved partition %+v", msr)
	}
}

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func TestForeignWriterIsUnderstood(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d")
	im, err := image.Create(path, 100*mib)
	must(t, err)
	defer im.Close()
	f := flushedFile(t, im, path)
	must(t, (&gpt.Table{
		LogicalSectorSize: 512, PhysicalSectorSize: 512, ProtectiveMBR: true, GUID: diskGUID[1:37],
		Partitions: []*gpt.Partition{{Index: 1, Start: 2048, End: 4095, Type: gpt.LinuxFilesystem, Name: "linux", GUID: partGUID[1:37]}},
	}).Write(f, 100*mib))
	l := layoutOf(t, im)
	if l.Style != image.StyleGPT || l.DiskGUID != diskGUID || len(l.Entries) != 1 {
		t.Fatalf("%+v", l)
	}
	if e := l.Entries[0]; e.OffsetBytes != mib || e.SizeBytes != mib || e.GUID != partGUID || e.Name != "linux" {
		t.Errorf("%+v", e)
	}
}

func TestForeignReaderAgreesOnMBR(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d")
	im, err := image.Create(path, gib)
	must(t, err)
	defer im.Close()
	must(t, im.InitMBR(0x12345678))
	made, err := im.AddPartition(image.PartitionSpec{SizeBytes: 100 * mib, MBRType: image.MBRTypeIFS, Active: true})
	must(t, err)
	table, err := mbr.Read(flushedFile(t, im, path), 512, 512)
	must(t, err)
	got := table.Partitions[0]
	if int64(got.Start)*512 != made.OffsetBytes || int64(got.Size)*512 != made.SizeBytes || got.Type != mbr.NTFS || !got.Bootable {
		t.Errorf("%+v", got)
	}
}

// wholeDisk is a disk whose sector 0 is written by hand.
func wholeDisk(tb testing.TB, write func(sector []byte)) *image.Image {
	tb.Helper()
	im := newDisk(tb, 64*mib)
	sector := make([]byte, 512)
	write(sector)
	mustWrite(tb, im, 0, sector)
	return im
}

// mbrRecord puts an entry and the mark into a sector.
func mbrRecord(sector []byte, slot int, status, kind byte, start, sectors uint32) {
	b := sector[446+16*slot:]
	b[0], b[4] = status, kind
	binary.LittleEndian.PutUint32(b[8:], start)
	binary.LittleEndian.PutUint32(b[12:], sectors)
	sector[510], sector[511] = 0x55, 0xAA
}

func TestWhatIsAnMBR(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write func(sector []byte)
		want  image.Style
	}{
		"zeroes":             {func([]byte) {}, image.StyleRAW},
		"mark alone":         {func(s []byte) { s[510], s[511] = 0x55, 0xAA }, image.StyleMBR}, // initialized, no partition
		"one entry":          {func(s []byte) { mbrRecord(s, 0, 0, 7, 2048, 100) }, image.StyleMBR},
		"last entry alone":   {func(s []byte) { mbrRecord(s, 3, 0x80, 0x83, 63, 100) }, image.StyleMBR},
		"no mark":            {func(s []byte) { mbrRecord(s, 0, 0, 7, 2048, 100); s[510] = 0 }, image.StyleRAW},
		"bad status":         {func(s []byte) { mbrRecord(s, 0, 1, 7, 2048, 100) }, image.StyleRAW},
		"starts at 0":        {func(s []byte) { mbrRecord(s, 0, 0, 7, 0, 100) }, image.StyleRAW},
		"is empty":           {func(s []byte) { mbrRecord(s, 0, 0, 7, 2048, 0) }, image.StyleRAW},
		"ends behind disk":   {func(s []byte) { mbrRecord(s, 0, 0, 7, 2048, 131072-2047) }, image.StyleRAW},
		"ends with disk":     {func(s []byte) { mbrRecord(s, 0, 0, 7, 2048, 131072-2048) }, image.StyleMBR},
		"wraps around":       {func(s []byte) { mbrRecord(s, 0, 0, 7, 0xFFFFFFFF, 0xFFFFFFFF) }, image.StyleRAW},
		"entries overlap":    {func(s []byte) { mbrRecord(s, 0, 0, 7, 2048, 100); mbrRecord(s, 1, 0, 7, 2147, 100) }, image.StyleRAW},
		"entries touch":      {func(s []byte) { mbrRecord(s, 0, 0, 7, 2048, 100); mbrRecord(s, 1, 0, 7, 2148, 100) }, image.StyleMBR},
		"protective, no GPT": {func(s []byte) { mbrRecord(s, 0, 0, 0xEE, 1, 131071) }, image.StyleRAW},
		"hybrid":             {func(s []byte) { mbrRecord(s, 0, 0, 0xEE, 1, 2047); mbrRecord(s, 1, 0, 7, 2048, 100) }, image.StyleMBR},
	} {
		if got := layoutOf(t, wholeDisk(t, c.write)).Style; got != c.want {
			t.Errorf("%s: style %d, want %d", name, got, c.want)
		}
	}
}

// C014: a disk that a Linux node formatted whole must not pass for an empty one
// with a table, nor its file system for one that Windows knows.
func TestC014_FileSystemOnTheWholeDiskIsNoTable(t *testing.T) {
	t.Parallel()
	for _, name := range []string{image.NTFS, image.ReFS, image.FAT, image.FAT32, image.ExFAT} {
		im := newDisk(t, 64*mib)
		must(t, image.Format(im, 0, im.SizeBytes(), image.FormatSpec{Name: name}))
		if l := layoutOf(t, im); l.Style != image.StyleRAW || len(l.Entries) != 0 {
			t.Errorf("%s: %+v", name, l)
		}
	}
	im := newDisk(t, 64*mib)
	mustWrite(t, im, 1024, ext4Superblock())
	if l := layoutOf(t, im); l.Style != image.StyleRAW {
		t.Errorf("ext4: %+v", l)
	}
	if fs := image.Detect(im, 0, im.SizeBytes()); fs != (image.FileSystem{}) {
		t.Errorf("ext4: %+v", fs)
	}
}

// ext4Superblock is the part of the superblock that identifies ext4, made by
// hand: 16384 blocks of 4 KiB, magic number, extents.
func ext4Superblock() []byte {
	b := make([]byte, 1024)
	le := binary.LittleEndian
	le.PutUint32(b[4:], 16384)
	le.PutUint32(b[24:], 2)         // block size 1024 << 2
	le.PutUint16(b[56:], 0xEF53)    // s_magic
	le.PutUint32(b[96:], 0x2C2)     // extents, 64bit, flex_bg …
	copy(b[120:], "linux-data\x00") // s_volume_name
	return b
}

func TestLogicalDrivesAreSeenAndLeftAlone(t *testing.T) {
	t.Parallel()
	const base, second = 10000, 5000 // sectors: extended partition, way to the second record
	im := wholeDisk(t, func(s []byte) {
		mbrRecord(s, 0, 0, 7, 2048, 1000)
		mbrRecord(s, 1, 0, 0x05, base, 20000)
		mbrRecord(s, 2, 0, 7, 40000, 1000)
	})
	for at, next := range map[int64]uint32{base: second, base + second: 0} {
		record := make([]byte, 512)
		mbrRecord(record, 0, 0, 7, 63, 1000)
		if next != 0 {
			mbrRecord(record, 1, 0, 0x05, next, 2000)
		}
		mustWrite(t, im, at*512, record)
	}
	l := layoutOf(t, im)
	type summary struct {
		Number uint32
		Offset int64
	}
	var got []summary
	for _, e := range l.Entries {
		got = append(got, summary{e.Number, e.OffsetBytes / 512})
	}
	want := []summary{{1, 2048}, {0, base}, {2, 40000}, {3, base + 63}, {4, base + second + 63}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if err := im.DeletePartition(4); err == nil {
		t.Error("a logical drive was deleted")
	}
	must(t, im.DeletePartition(2))
	if after := layoutOf(t, im); len(after.Entries) != 4 {
		t.Errorf("after the delete %+v", after.Entries)
	}
	// A chain that leads back to itself ends.
	loop := make([]byte, 512)
	mbrRecord(loop, 1, 0, 0x05, 0, 2000)
	mustWrite(t, im, (base+second)*512, loop)
	if after := layoutOf(t, im); len(after.Entries) != 3 {
		t.Errorf("with a loop %+v", after.Entries)
	}
}

func TestForeignFAT32IsDetected(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d")
	im, err := image.Create(path, 64*mib)
	must(t, err)
	defer im.Close()
	_, err = fat32.Create(file.New(flushedFile(t, im, path), false), 64*mib, 0, 512, "FOREIGN", true)
	must(t, err)
	fs := image.Detect(im, 0, im.SizeBytes())
	if fs.Name != image.FAT32 || fs.Label != "FOREIGN" || fs.TotalBytes < 60*mib || fs.TotalBytes > 64*mib {
		t.Errorf("%+v", fs)
	}
	if l := layoutOf(t, im); l.Style != image.StyleRAW {
		t.Errorf("%+v", l)
	}
}
