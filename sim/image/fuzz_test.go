package image_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/sim/image"
)

// seedDisk is the first bytes of a disk that build worked on.
func seedDisk(f *testing.F, build func(im *image.Image)) []byte {
	f.Helper()
	im := newDisk(f, 33<<20)
	build(im)
	return bytes.TrimRight(mustRead(f, im, 0, 34*512), "\x00")
}

// resealed gives a damaged GPT right checksums, or the fuzzer would never get
// past them.
func resealed(head []byte) []byte {
	const arrayAt, arrayEnd = 1024, 1024 + 128*128
	disk := make([]byte, max(len(head), arrayEnd))
	copy(disk, head)
	header := disk[512:1024]
	binary.LittleEndian.PutUint32(header[88:], crc32.ChecksumIEEE(disk[arrayAt:arrayEnd]))
	copy(header, seal(header))
	return disk
}

// FuzzLayout puts any bytes at both ends of a disk: what is read makes sense,
// and can be edited and read again.
func FuzzLayout(f *testing.F) {
	gpt := seedDisk(f, func(im *image.Image) {
		must(f, im.InitGPT(diskGUID))
		_, err := im.AddPartition(image.PartitionSpec{UseMaximumSize: true, GUID: partGUID})
		must(f, err)
	})
	mbr := seedDisk(f, func(im *image.Image) {
		must(f, im.InitMBR(7))
		_, err := im.AddPartition(image.PartitionSpec{UseMaximumSize: true})
		must(f, err)
	})
	ntfs := seedDisk(f, func(im *image.Image) {
		must(f, image.Format(im, 0, im.SizeBytes(), image.FormatSpec{Name: image.NTFS}))
	})
	extended := make([]byte, 1024)
	mbrRecord(extended, 0, 0, 5, 1, 1000)
	mbrRecord(extended[512:], 0, 0, 7, 1, 10)
	for _, seed := range [][]byte{gpt, mbr, ntfs, extended, {}} {
		f.Add(seed, []byte{}, false)
	}
	f.Add(gpt, []byte{}, true)
	f.Add(gpt[:512], []byte("EFI PART"), false)
	f.Fuzz(func(t *testing.T, head, tail []byte, reseal bool) {
		const size = 33 << 20
		if len(head) > 64<<10 || len(tail) > 512 {
			return
		}
		if reseal {
			head = resealed(head)
		}
		path := filepath.Join(t.TempDir(), "d")
		must(t, os.WriteFile(path, head, 0o600))
		must(t, os.Truncate(path, size))
		im, err := image.Open(path)
		must(t, err)
		defer im.Close()
		mustWrite(t, im, size-512, tail)
		l := layoutOf(t, im)
		checkLayout(t, l, size)
		if l.Style == image.StyleRAW {
			return
		}
		if e, err := im.AddPartition(image.PartitionSpec{SizeBytes: 1 << 20}); err == nil {
			after := layoutOf(t, im)
			checkLayout(t, after, size)
			if got, ok := after.Partition(e.Number); !ok || got != e || len(after.Entries) != len(l.Entries)+1 {
				t.Errorf("added %+v, then read %+v", e, after.Entries)
			}
		}
	})
}

func checkLayout(t *testing.T, l image.Layout, size int64) {
	t.Helper()
	if l.FirstUsableBytes < 0 || l.EndUsableBytes > size || l.LargestFreeExtentBytes < 0 || l.LargestFreeExtentBytes > size {
		t.Errorf("bounds %+v", l)
	}
	for _, e := range l.Entries {
		if e.OffsetBytes < 0 || e.SizeBytes <= 0 || e.OffsetBytes > size-e.SizeBytes || e.OffsetBytes%512 != 0 || e.SizeBytes%512 != 0 {
			t.Errorf("entry %+v", e)
		}
		if largest := l.MaxPartitionBytes(e.Number); e.Number != 0 && (largest < e.SizeBytes || largest > size) {
			t.Errorf("largest size %d of %+v", largest, e)
		}
	}
}

// FuzzDetect reads any boot area. What is detected fits the volume.
func FuzzDetect(f *testing.F) {
	for _, name := range []string{image.NTFS, image.ReFS, image.FAT, image.FAT32, image.ExFAT} {
		f.Add(seedDisk(f, func(im *image.Image) {
			spec := image.FormatSpec{Name: name, Label: "SEED", Serial: 1}
			if name == image.FAT32 {
				spec.ClusterBytes = 512
				must(f, im.Grow(64<<20))
			}
			must(f, image.Format(im, 0, im.SizeBytes(), spec))
		}))
	}
	f.Add(append(make([]byte, 1024), ext4Superblock()...))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, head []byte) {
		const size = 64 << 20
		disk := memory{}
		mustWrite(t, disk, 0, head[:min(len(head), 16<<10)])
		fs := image.Detect(disk, 0, size)
		if fs.Name == "" && fs != (image.FileSystem{}) {
			t.Errorf("no file system, but %+v", fs)
		}
		if fs.TotalBytes < 0 || fs.TotalBytes > size {
			t.Errorf("%+v on %d bytes", fs, size)
		}
		_ = image.ExtendFileSystem(disk, 0, 2*size)
		if got := image.Detect(disk, 0, 2*size); got.Name != fs.Name && fs.Name != "" {
			t.Errorf("extended %+v to %+v", fs, got)
		}
	})
}
