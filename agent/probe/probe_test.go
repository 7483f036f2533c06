package probe

import (
	"encoding/binary"
	"strings"
	"testing"
)

// device makes the ends of an empty device and puts bytes into it.
func device(offset int64, data string) (head, tail []byte) {
	head, tail = make([]byte, HeadBytes), make([]byte, TailBytes)
	if offset < 0 {
		copy(tail[int64(len(tail))+offset:], data)
	} else {
		copy(head[offset:], data)
	}
	return head, tail
}

func TestC014_EverySignatureIsFound(t *testing.T) {
	t.Parallel()
	for _, s := range signatures {
		for _, p := range s.parts {
			head, tail := device(p.offset, p.bytes)
			if got := Look(head, tail); got == "" {
				t.Errorf("%s at %d is not found", s.name, p.offset)
			}
		}
	}
}

func TestLookNames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		offset int64
		data   string
		want   string
	}{
		{1080, "\x53\xef", "ext2/ext3/ext4"},
		{0, "XFSB", "XFS"},
		{0, "LUKS\xba\xbe\x00\x02", "LUKS"},
		{512, "LABELONE", "LVM2 physical volume"},
		{3, "NTFS    ", "NTFS"},
		{-512 + 3, "NTFS    ", "NTFS (copy of the boot sector)"},
		{-8192, "\xfc\x4e\x2b\xa9\x01\x00\x00\x00", "Linux RAID"},
		{64<<10 + 64, "_BHRfS_M", "btrfs"},
		{5000, "x", ""},
	} {
		head, tail := device(tc.offset, tc.data)
		if got := Look(head, tail); got != tc.want {
			t.Errorf("%q at %d is %q, want %q", tc.data, tc.offset, got, tc.want)
		}
	}
}

func TestOldRAID(t *testing.T) {
	t.Parallel()
	for back := int64(64 << 10); back <= 128<<10-4096; back += 4096 {
		head, tail := device(-back, "\xfc\x4e\x2b\xa9\x00\x00\x00\x00")
		if got := Look(head, tail); !strings.HasPrefix(got, "Linux RAID") {
			t.Errorf("at -%d: %q", back, got)
		}
	}
}

func TestFirstNonZero(t *testing.T) {
	t.Parallel()
	if got := FirstNonZero(make([]byte, 10)); got != -1 {
		t.Errorf("zeros: %d", got)
	}
	if got := FirstNonZero([]byte{0, 0, 7}); got != 2 {
		t.Errorf("got %d", got)
	}
}

func TestIsEmptyTable(t *testing.T) {
	t.Parallel()
	protective := func(head []byte) {
		copy(head[446:], "\x00\x00\x02\x00\xee\xff\xff\xff\x01\x00\x00\x00\xff\xff\xff\xff")
		head[510], head[511] = 0x55, 0xAA
	}
	header := func(b []byte) { copy(b, "EFI PART") }
	basicData := "\xa2\xa0\xd0\xeb\xe5\xb9\x33\x44\x87\xc0\x68\xb6\xb7\x26\x99\xc7"
	for _, tc := range []struct {
		name string
		make func(head, tail []byte)
		want bool
	}{
		{"protective MBR only", func(head, _ []byte) { protective(head) }, true},
		{"header only", func(head, _ []byte) { header(head[512:]) }, true},
		{"copy only", func(_, tail []byte) { header(tail[len(tail)-512:]) }, true},
		{"reserved partition", func(head, _ []byte) {
			protective(head)
			header(head[512:])
			copy(head[1024:], reservedType+"somename")
		}, true},
		{"4 KiB sectors", func(head, _ []byte) { protective(head); header(head[4096:]); copy(head[8192:], reservedType) }, true},
		{"data partition", func(head, _ []byte) {
			protective(head)
			header(head[512:])
			copy(head[1024+128:], basicData)
		}, false},
		{"data partition in the copy", func(_, tail []byte) {
			header(tail[len(tail)-512:])
			copy(tail[len(tail)-512-16384:], basicData)
		}, false},
		{"MBR partition", func(head, _ []byte) { protective(head); head[446+4] = 0x07 }, false},
		{"boot sector", func(head, _ []byte) { copy(head[3:], "NTFS    "); head[510], head[511] = 0x55, 0xAA }, false},
		{"ext4 besides", func(head, _ []byte) { protective(head); copy(head[1080:], "\x53\xef") }, false},
		{"RAID at the end", func(head, tail []byte) {
			protective(head)
			copy(tail[len(tail)-64<<10:], "\xfc\x4e\x2b\xa9\x00\x00\x00\x00")
		}, false},
		{"something later", func(head, _ []byte) { protective(head); head[500000] = 1 }, false},
		{"header as Windows makes it", func(head, tail []byte) {
			copy(head[512:], gptHeader(1, 2, 128, 128))
			copy(tail[len(tail)-512:], gptHeader(9999, 9999-32, 128, 128))
		}, true},
		{"entries elsewhere", func(head, _ []byte) { copy(head[512:], gptHeader(1, 4096, 128, 128)) }, false},
		{"more entries in the copy than are looked at", func(_, tail []byte) {
			copy(tail[len(tail)-512:], gptHeader(9999, 9999-64, 256, 128))
			copy(tail[len(tail)-512-2*16384:], basicData)
		}, false},
		{"larger entries", func(head, _ []byte) { copy(head[512:], gptHeader(1, 2, 128, 256)) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			head, tail := device(0, "")
			tc.make(head, tail)
			if got := IsEmptyTable(head, tail); got != tc.want {
				t.Errorf("IsEmptyTable = %v, want %v", got, tc.want)
			}
		})
	}
	if IsEmptyTable(nil, nil) {
		t.Error("nothing seen counts as an empty table")
	}
}

func FuzzLook(f *testing.F) {
	f.Add([]byte("XFSB"), []byte("x"))
	f.Add([]byte{}, make([]byte, 4096))
	f.Add(make([]byte, 1100), []byte{})
	f.Fuzz(func(t *testing.T, head, tail []byte) {
		found := Look(head, tail)
		if found != "" && FirstNonZero(head) < 0 && FirstNonZero(tail) < 0 {
			t.Fatalf("%q seen in zeros", found)
		}
		if IsEmptyTable(head, tail) && FirstNonZero(head) >= 0 && len(head) < 1024 {
			t.Fatal("a table in less than two sectors")
		}
	})
}

// gptHeader is the part of a header that says where its entries are.
func gptHeader(own, entries uint64, count, size uint32) string {
	header := append([]byte(gptSignature), make([]byte, 84)...)
	binary.LittleEndian.PutUint64(header[gptOwnLBAOffset:], own)
	binary.LittleEndian.PutUint64(header[gptEntriesLBAOffset:], entries)
	binary.LittleEndian.PutUint32(header[gptCountOffset:], count)
	binary.LittleEndian.PutUint32(header[gptSizeOffset:], size)
	return string(header)
}

func TestClearGPTLeavesTheRest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		make func(head, tail []byte)
		want string
	}{
		"table only": {func(head, tail []byte) {
			copy(head[440:], "sign")
			copy(head[510:], "\x55\xaa")
			copy(head[512:], gptHeader(1, 2, 128, 128))
			copy(tail[len(tail)-512:], gptHeader(99, 99-32, 128, 128))
		}, ""},
		"4 KiB sectors": {func(head, tail []byte) {
			copy(head[4096:], gptHeader(1, 2, 128, 128))
			copy(tail[len(tail)-4096:], gptHeader(9, 9-4, 128, 128))
		}, ""},
		"ext4 behind an empty boot sector": {func(head, _ []byte) { copy(head[510:], "\x55\xaa"); copy(head[1080:], "\x53\xef") }, "ext2/ext3/ext4"},
		"btrfs under a table":              {func(head, _ []byte) { copy(head[512:], gptSignature); copy(head[65600:], "_BHRfS_M") }, "btrfs"},
		"file system in the boot sector":   {func(head, _ []byte) { copy(head, "XFSB"); copy(head[510:], "\x55\xaa") }, "XFS"},
		"RAID at the end": {func(head, tail []byte) {
			copy(head[510:], "\x55\xaa")
			copy(tail[len(tail)-8192:], "\xfc\x4e\x2b\xa9\x01\x00\x00\x00")
		}, "Linux RAID"},
	} {
		head, tail := device(0, "")
		tc.make(head, tail)
		ClearGPT(head, tail)
		if got := Look(head, tail); got != tc.want {
			t.Errorf("%s: found %q, want %q", name, got, tc.want)
		}
	}
	ClearGPT(nil, nil)
}
