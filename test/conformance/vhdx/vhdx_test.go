package vhdx

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/test/conformance"
)

// The structures are those of virtdisk.h in the Windows SDK, byte for byte.
func TestParameters(t *testing.T) {
	t.Parallel()
	const size = 0x0102030405060708
	for name, test := range map[string]struct {
		got   []byte
		bytes int
		set   map[int]string // what is not zero, by offset
	}{
		"VIRTUAL_STORAGE_TYPE":           {storageType(), 20, map[int]string{0: "03", 4: "ec4a98ecf9a0e947901f71415a66345b"}},
		"CREATE_VIRTUAL_DISK_PARAMETERS": {createParameters(size), 128, map[int]string{0: "02", 24: "0807060504030201"}},
		"ATTACH_VIRTUAL_DISK_PARAMETERS": {attachParameters(), 8, map[int]string{0: "01"}},
		"RESIZE_VIRTUAL_DISK_PARAMETERS": {resizeParameters(size), 16, map[int]string{0: "01", 8: "0807060504030201"}},
	} {
		want := make([]byte, test.bytes)
		for at, text := range test.set {
			raw, err := hex.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			copy(want[at:], raw)
		}
		if diff := cmp.Diff(want, test.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestDiskNumber(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int64{`\\.\PhysicalDrive0`: 0, `\\.\PHYSICALDRIVE17`: 17, `\\.\PhysicalDrive`: -1, `\\.\PhysicalDrive-1`: -1, `\\.\PhysicalDrive1x`: -1, `\\.\PhysicalDrive4294967296`: -1, `C:\`: -1, ``: -1} {
		number, err := diskNumber(path)
		if (err != nil) != (want < 0) || err == nil && int64(number) != want {
			t.Errorf("%q: %d, %v; want %d", path, number, err, want)
		}
	}
}

// entry lays out PARTITION_INFORMATION_EX.
func entry(style uint32, offset, size uint64, kind, id string) []byte {
	b := make([]byte, partitionBytes)
	binary.LittleEndian.PutUint32(b, style)
	binary.LittleEndian.PutUint64(b[8:], offset)
	binary.LittleEndian.PutUint64(b[16:], size)
	for at, text := range map[int]string{32: kind, 48: id} {
		raw, _ := hex.DecodeString(text)
		copy(b[at:], raw)
	}
	return b
}

// table lays out DRIVE_LAYOUT_INFORMATION_EX.
func table(style, signature uint32, entries ...[]byte) []byte {
	b := make([]byte, layoutHeaderBytes)
	binary.LittleEndian.PutUint32(b, style)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(entries)))
	binary.LittleEndian.PutUint32(b[8:], signature)
	for _, e := range entries {
		b = append(b, e...)
	}
	return b
}

func TestLayout(t *testing.T) {
	t.Parallel()
	const (
		reserved = "16e3c9e35c0bb84d817df92df00215ae"
		data     = "a2a0d0ebe5b9334487c068b6b72699c7"
		id       = "00112233445566778899aabbccddeeff"
	)
	for name, test := range map[string]struct {
		in         []byte
		style      host.PartitionStyle
		partitions []conformance.Partition
		fails      bool
	}{
		"raw":                       {table(2, 0), host.StyleRaw, nil, false},
		"GPT with a data partition": {table(1, 0, entry(1, 17408, 1<<24, reserved, id), entry(1, 1<<25, 1<<29, data, id)), host.StyleGPT, []conformance.Partition{{ID: id, OffsetBytes: 1 << 25, SizeBytes: 1 << 29}}, false},
		"MBR with an empty entry":   {table(0, 7, entry(0, 1<<20, 1<<21, "07", ""), entry(0, 0, 0, "00", "")), host.StyleMBR, []conformance.Partition{{ID: "offset 1048576", OffsetBytes: 1 << 20, SizeBytes: 1 << 21}}, false},
		"MBR without a signature":   {table(0, 0, entry(0, 0, 0, "00", "")), host.StyleRaw, nil, false},
		"cut off":                   {table(1, 0, entry(1, 0, 0, data, id))[:100], "", nil, true},
		"too short":                 {make([]byte, 47), "", nil, true},
		"nothing":                   {nil, "", nil, true},
	} {
		style, partitions, err := readLayout(test.in)
		if style != test.style || (err != nil) != test.fails || !cmp.Equal(partitions, test.partitions) {
			t.Errorf("%s: %s, %+v, %v", name, style, partitions, err)
		}
	}
}

func TestAttributesAndExtents(t *testing.T) {
	t.Parallel()
	b := make([]byte, 16)
	for bits, want := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		b[8] = byte(bits)
		if offline, readOnly, err := readAttributes(b); err != nil || [2]bool{offline, readOnly} != want {
			t.Errorf("%d: %v, %v, %v", bits, offline, readOnly, err)
		}
	}
	if _, _, err := readAttributes(b[:8]); err == nil {
		t.Error("attributes of 8 bytes")
	}
	extents := make([]byte, 32)
	extents[0], extents[8] = 1, 9
	if disks, err := readExtents(extents); err != nil || !cmp.Equal(disks, []uint32{9}) {
		t.Errorf("%v, %v", disks, err)
	}
	for _, bad := range [][]byte{nil, extents[:4], extents[:31], {2, 0, 0, 0, 0, 0, 0, 0}, {255, 255, 255, 255, 0, 0, 0, 0}} {
		if disks, err := readExtents(bad); err == nil {
			t.Errorf("%v: %v", bad, disks)
		}
	}
}
