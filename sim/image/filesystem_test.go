package image_test

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-windows/csi-windows/sim/image"
)

func TestFormatIsDetected(t *testing.T) {
	t.Parallel()
	const serial = 0x1122334455667788
	for name, c := range map[string]struct {
		sizeBytes int64
		spec      image.FormatSpec
		want      image.FileSystem // TotalBytes is checked by the rule below
	}{
		"NTFS": {gib, image.FormatSpec{Name: image.NTFS, Label: "Dätä 💾", Serial: serial},
			image.FileSystem{Name: image.NTFS, Serial: serial, ClusterBytes: 4096, Label: "Dätä 💾", TotalBytes: gib - 4096}},
		"NTFS, smallest clusters": {gib, image.FormatSpec{Name: image.NTFS, ClusterBytes: 512},
			image.FileSystem{Name: image.NTFS, ClusterBytes: 512, TotalBytes: gib - 512}},
		"NTFS, 64 KiB": {gib, image.FormatSpec{Name: image.NTFS, ClusterBytes: 64 << 10},
			image.FileSystem{Name: image.NTFS, ClusterBytes: 64 << 10, TotalBytes: gib - 64<<10}},
		"NTFS, 128 KiB": {gib, image.FormatSpec{Name: image.NTFS, ClusterBytes: 128 << 10},
			image.FileSystem{Name: image.NTFS, ClusterBytes: 128 << 10, TotalBytes: gib - 128<<10}},
		"NTFS, largest clusters": {gib, image.FormatSpec{Name: image.NTFS, ClusterBytes: 2 << 20},
			image.FileSystem{Name: image.NTFS, ClusterBytes: 2 << 20, TotalBytes: gib - 2*mib}},
		"NTFS of 16 TiB": {16 * tib, image.FormatSpec{Name: image.NTFS, Serial: 1},
			image.FileSystem{Name: image.NTFS, Serial: 1, ClusterBytes: 4096, TotalBytes: 16*tib - 4096}},
		"NTFS beyond 16 TiB": {16*tib + 512, image.FormatSpec{Name: image.NTFS},
			image.FileSystem{Name: image.NTFS, ClusterBytes: 8192, TotalBytes: 16 * tib}},
		"ReFS": {gib + 512, image.FormatSpec{Name: image.ReFS, Label: "Daten", Serial: serial},
			image.FileSystem{Name: image.ReFS, Serial: serial, ClusterBytes: 4096, Label: "Daten", TotalBytes: gib}},
		"ReFS, 64 KiB": {gib, image.FormatSpec{Name: image.ReFS, ClusterBytes: 64 << 10},
			image.FileSystem{Name: image.ReFS, ClusterBytes: 64 << 10, TotalBytes: gib}},
		"FAT32": {gib, image.FormatSpec{Name: image.FAT32, Label: "data", Serial: serial},
			image.FileSystem{Name: image.FAT32, Serial: serial & 0xFFFFFFFF, ClusterBytes: 4096, Label: "DATA"}},
		"FAT16": {gib, image.FormatSpec{Name: image.FAT, Serial: 5},
			image.FileSystem{Name: image.FAT, Serial: 5, ClusterBytes: 16 << 10}},
		"FAT12": {8 * mib, image.FormatSpec{Name: image.FAT, ClusterBytes: 4096},
			image.FileSystem{Name: image.FAT, ClusterBytes: 4096}},
		"exFAT": {gib, image.FormatSpec{Name: image.ExFAT, Label: "Fläche", Serial: serial},
			image.FileSystem{Name: image.ExFAT, Serial: serial & 0xFFFFFFFF, ClusterBytes: 32 << 10, Label: "Fläche"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const offset = 16 << 20
			disk := memory{}
			must(t, image.Format(disk, offset, c.sizeBytes, c.spec))
			got := image.Detect(disk, offset, c.sizeBytes)
			if c.want.TotalBytes == 0 { // the tables take their share
				if got.TotalBytes > c.sizeBytes || got.TotalBytes < c.sizeBytes*98/100 {
					t.Errorf("%d usable bytes of %d", got.TotalBytes, c.sizeBytes)
				}
				c.want.TotalBytes = got.TotalBytes
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("detected (-want +got):\n%s", diff)
			}
			// A file system that claims more than there is, is not one Windows mounts.
			if fs := image.Detect(disk, offset, c.sizeBytes-8192); fs.Name != "" {
				t.Errorf("on a smaller partition: %+v", fs)
			}
			if fs := image.Detect(disk, 0, c.sizeBytes); fs.Name != "" {
				t.Errorf("at another place: %+v", fs)
			}
		})
	}
}

// memory is a disk without end that keeps the sectors written.
type memory map[int64][512]byte

func (m memory) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		sector := m[(off+int64(i))/512]
		p[i] = sector[(off+int64(i))%512]
	}
	return len(p), nil
}

func (m memory) WriteAt(p []byte, off int64) (int, error) {
	for i, b := range p {
		sector := m[(off+int64(i))/512]
		sector[(off+int64(i))%512] = b
		m[(off+int64(i))/512] = sector
	}
	return len(p), nil
}

func TestFormatRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sizeBytes int64
		spec      image.FormatSpec
		want      error
	}{
		"unknown":                  {gib, image.FormatSpec{Name: "ext4"}, image.ErrFileSystem},
		"no name":                  {gib, image.FormatSpec{}, image.ErrFileSystem},
		"too small":                {7*mib - 1, image.FormatSpec{Name: image.NTFS}, image.ErrSize},
		"odd cluster":              {gib, image.FormatSpec{Name: image.NTFS, ClusterBytes: 5000}, image.ErrClusterSize},
		"cluster too large":        {gib, image.FormatSpec{Name: image.NTFS, ClusterBytes: 4 << 20}, image.ErrClusterSize},
		"cluster too small":        {gib, image.FormatSpec{Name: image.NTFS, ClusterBytes: 256}, image.ErrClusterSize},
		"ReFS knows two sizes":     {gib, image.FormatSpec{Name: image.ReFS, ClusterBytes: 8192}, image.ErrClusterSize},
		"more than 2^32 clusters":  {16*tib + 4096, image.FormatSpec{Name: image.NTFS, ClusterBytes: 4096}, image.ErrTooManyClusters},
		"FAT32 beyond 32 GiB":      {33 * gib, image.FormatSpec{Name: image.FAT32}, image.ErrFileSystem},
		"FAT beyond 4 GiB":         {5 * gib, image.FormatSpec{Name: image.FAT}, image.ErrFileSystem},
		"FAT with small clusters":  {4 * gib, image.FormatSpec{Name: image.FAT, ClusterBytes: 4096}, image.ErrClusterSize},
		"FAT32 with few clusters":  {32 * mib, image.FormatSpec{Name: image.FAT32, ClusterBytes: 4096}, image.ErrClusterSize},
		"exFAT with huge clusters": {64 * mib, image.FormatSpec{Name: image.ExFAT, ClusterBytes: 32 << 20}, image.ErrClusterSize},
		"NTFS label too long":      {gib, image.FormatSpec{Name: image.NTFS, Label: strings.Repeat("x", 33)}, image.ErrLabel},
		"ReFS label too long":      {gib, image.FormatSpec{Name: image.ReFS, Label: strings.Repeat("💾", 17)}, image.ErrLabel},
		"FAT32 label too long":     {gib, image.FormatSpec{Name: image.FAT32, Label: "123456789012"}, image.ErrLabel},
		"FAT label with a dot":     {gib, image.FormatSpec{Name: image.FAT, Label: "a.b"}, image.ErrLabel},
		"exFAT label too long":     {gib, image.FormatSpec{Name: image.ExFAT, Label: "123456789012"}, image.ErrLabel},
		"label is no text":         {gib, image.FormatSpec{Name: image.NTFS, Label: "\xff"}, image.ErrLabel},
		"label with NUL":           {gib, image.FormatSpec{Name: image.NTFS, Label: "a\x00b"}, image.ErrLabel},
	} {
		disk := memory{}
		if err := image.Format(disk, 0, c.sizeBytes, c.spec); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if len(disk) != 0 {
			t.Errorf("%s: a refusal wrote to the disk", name)
		}
	}
}

func TestFormatLeavesNothingOfTheOldFileSystem(t *testing.T) {
	t.Parallel()
	im := newDisk(t, 64*mib)
	mustWrite(t, im, 1024, ext4Superblock())
	mustWrite(t, im, 65536+64, []byte("_BHRfS_M")) // btrfs
	must(t, image.Format(im, 0, im.SizeBytes(), image.FormatSpec{Name: image.NTFS}))
	if got := mustRead(t, im, 1024+56, 2); got[0] != 0 || got[1] != 0 {
		t.Error("the magic number of ext4 is left")
	}
	if got := mustRead(t, im, 65536+64, 8); string(got) == "_BHRfS_M" {
		t.Error("the magic number of btrfs is left")
	}
}

// The fields that every reader of NTFS relies on.
func TestNTFSBootSector(t *testing.T) {
	t.Parallel()
	const offset, size = 16 << 20, 1 << 30
	disk := memory{}
	for cluster, want := range map[uint32][3]byte{ // sectors per cluster, clusters per record, clusters per index
		512: {1, 2, 8}, 4096: {8, 0xF6, 1}, 64 << 10: {128, 0xF6, 0xF4}, 128 << 10: {0xF8, 0xF6, 0xF4}, 2 << 20: {0xF4, 0xF6, 0xF4},
	} {
		must(t, image.Format(disk, offset, size, image.FormatSpec{Name: image.NTFS, ClusterBytes: cluster}))
		boot := mustRead(t, disk, offset, 512)
		if got := [3]byte{boot[0x0D], boot[0x40], boot[0x44]}; got != want {
			t.Errorf("clusters of %d: %v, want %v", cluster, got, want)
		}
		if backup := mustRead(t, disk, offset+size-512, 512); !cmp.Equal(boot, backup) {
			t.Errorf("clusters of %d: no copy in the last sector", cluster)
		}
		le := binary.LittleEndian
		if hidden, total := le.Uint32(boot[0x1C:]), le.Uint64(boot[0x28:]); hidden != offset/512 || total != size/512-1 {
			t.Errorf("hidden sectors %d, total %d", hidden, total)
		}
	}
}

func TestReFSChecksumIsChecked(t *testing.T) {
	t.Parallel()
	disk := memory{}
	must(t, image.Format(disk, 0, gib, image.FormatSpec{Name: image.ReFS}))
	mustWrite(t, disk, 0x39, []byte{0xAA})
	if fs := image.Detect(disk, 0, gib); fs.Name != "" {
		t.Errorf("%+v", fs)
	}
}

func TestExtendFileSystem(t *testing.T) {
	t.Parallel()
	const offset = 1 << 20
	for name, want := range map[string]int64{image.NTFS: 2*gib - 4096, image.ReFS: 2 * gib} {
		disk := memory{}
		must(t, image.Format(disk, offset, gib, image.FormatSpec{Name: name, Label: "kept", Serial: 9}))
		before := image.Detect(disk, offset, gib)
		must(t, image.ExtendFileSystem(disk, offset, 2*gib))
		before.TotalBytes = want
		if diff := cmp.Diff(before, image.Detect(disk, offset, 2*gib)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		err := image.ExtendFileSystem(disk, offset, gib)
		if name == image.ReFS && !errors.Is(err, image.ErrSize) {
			t.Errorf("ReFS shrunk: %v", err)
		}
		if fs := image.Detect(disk, offset, gib); name == image.NTFS && (err != nil || fs.TotalBytes != gib-4096) {
			t.Errorf("NTFS shrunk: %v, %+v", err, fs)
		}
		if err := image.ExtendFileSystem(disk, offset, mib); !errors.Is(err, image.ErrSize) {
			t.Errorf("%s to nothing: %v", name, err)
		}
	}
	ntfs := memory{}
	must(t, image.Format(ntfs, 0, gib, image.FormatSpec{Name: image.NTFS}))
	must(t, image.ExtendFileSystem(ntfs, 0, 2*gib))
	if old := mustRead(t, ntfs, gib-512, 16); string(old[3:7]) == "NTFS" {
		t.Error("the old copy of the boot sector is left within the volume")
	}
	if backup := mustRead(t, ntfs, 2*gib-512, 16); string(backup[3:7]) != "NTFS" {
		t.Error("no copy of the boot sector at the new end")
	}
	for _, name := range []string{image.FAT, image.FAT32, image.ExFAT} {
		disk := memory{}
		must(t, image.Format(disk, 0, gib, image.FormatSpec{Name: name}))
		if err := image.ExtendFileSystem(disk, 0, 2*gib); !errors.Is(err, image.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, image.ExtendFileSystem(memory{}, 0, gib)) // no file system, nothing to tell
	if err := image.ExtendFileSystem(newDisk(t, mib), 2*mib, gib); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("behind the disk: %v", err)
	}
}

func TestSetLabel(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{image.NTFS: 32, image.ReFS: 32, image.FAT: 11, image.FAT32: 11, image.ExFAT: 11} {
		disk := memory{}
		must(t, image.Format(disk, mib, gib, image.FormatSpec{Name: name, Label: "OLD NAME", Serial: 3}))
		before := image.Detect(disk, mib, gib)
		for _, label := range []string{strings.Repeat("N", limit), "N", ""} {
			must(t, image.SetLabel(disk, mib, gib, label))
			before.Label = label
			if diff := cmp.Diff(before, image.Detect(disk, mib, gib)); diff != "" {
				t.Errorf("%s, %q (-want +got):\n%s", name, label, diff)
			}
		}
		if err := image.SetLabel(disk, mib, gib, strings.Repeat("N", limit+1)); !errors.Is(err, image.ErrLabel) {
			t.Errorf("%s, label too long: %v", name, err)
		}
	}
	if err := image.SetLabel(memory{}, 0, gib, "x"); !errors.Is(err, image.ErrFileSystem) {
		t.Errorf("no file system: %v", err)
	}
	if err := image.SetLabel(newDisk(t, mib), 2*mib, gib, "x"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("behind the disk: %v", err)
	}
}

func TestSupportedClusterBytes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]uint32{
		image.NTFS: {512, 2 << 20}, image.ReFS: {4096, 64 << 10}, image.FAT: {512, 64 << 10}, image.FAT32: {512, 64 << 10}, image.ExFAT: {512, 32 << 20},
	} {
		sizes := image.SupportedClusterBytes(name)
		if sizes[0] != want[0] || sizes[len(sizes)-1] != want[1] {
			t.Errorf("%s: %v", name, sizes)
		}
	}
	if sizes := image.SupportedClusterBytes("ext4"); sizes != nil {
		t.Errorf("ext4: %v", sizes)
	}
}
