package winos

import (
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/layout"
)

var le = binary.LittleEndian

func TestLayouts(t *testing.T) {
	t.Parallel()
	b := make([]byte, 12)
	le.PutUint32(b, 7)
	le.PutUint32(b[4:], 3)
	le.PutUint32(b[8:], 2)
	if got, err := decodeDeviceNumber(b); err != nil || got != (deviceNumber{7, 3, 2}) {
		t.Errorf("device number = %+v, %v", got, err)
	}
	if _, err := decodeDeviceNumber(b[:11]); err == nil {
		t.Error("short device number was read")
	}
	length := le.AppendUint64(nil, 5<<40)
	if got, err := decodeLength(length); err != nil || got != 5<<40 {
		t.Errorf("length = %d, %v", got, err)
	}
	for _, bad := range [][]byte{length[:7], le.AppendUint64(nil, 1<<63)} {
		if got, err := decodeLength(bad); err == nil {
			t.Errorf("length of % x = %d", bad, got)
		}
	}
	attributes := make([]byte, 16)
	attributes[0], attributes[8] = 16, 3
	if got, err := decodeDiskAttributes(attributes); err != nil || got != 3 {
		t.Errorf("attributes = %d, %v", got, err)
	}
	if _, err := decodeDiskAttributes(attributes[:15]); err == nil {
		t.Error("short attributes were read")
	}
}

func TestEncodedRequests(t *testing.T) {
	t.Parallel()
	if got := encodePropertyQuery(2); !reflect.DeepEqual(got, []byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("property query = % x", got)
	}
	got := encodeDiskAttributes(2, 3)
	want := make([]byte, 40)
	want[0], want[4], want[8], want[16] = 40, 1, 2, 3
	if !reflect.DeepEqual(got, want) {
		t.Errorf("disk attributes = % x", got)
	}
}

func extentsBuffer(count uint32, extents ...extent) []byte {
	b := le.AppendUint32(nil, count)
	b = append(b, 0, 0, 0, 0)
	for _, e := range extents {
		b = le.AppendUint32(b, e.disk)
		b = append(b, 0, 0, 0, 0)
		b = le.AppendUint64(b, uint64(e.offsetBytes))
		b = le.AppendUint64(b, uint64(e.lengthBytes))
	}
	return b
}

func TestDecodeExtents(t *testing.T) {
	t.Parallel()
	one, two := extent{1, 1 << 20, 1 << 30}, extent{2, 16 << 20, 1 << 40}
	got, count, err := decodeExtents(extentsBuffer(2, one, two))
	if err != nil || count != 2 || !reflect.DeepEqual(got, []extent{one, two}) {
		t.Errorf("extents = %+v of %d, %v", got, count, err)
	}
	got, count, err = decodeExtents(extentsBuffer(5, one))
	if err != nil || count != 5 || len(got) != 1 {
		t.Errorf("short list = %+v of %d, %v", got, count, err)
	}
	if _, _, err := decodeExtents(make([]byte, 7)); err == nil {
		t.Error("short buffer was read")
	}
}

// layoutEntry lays out one PARTITION_INFORMATION_EX.
func layoutEntry(style uint32, p agent.Partition, kind []byte) []byte {
	b := make([]byte, 144)
	le.PutUint32(b, style)
	le.PutUint64(b[8:], uint64(p.OffsetBytes))
	le.PutUint64(b[16:], uint64(p.SizeBytes))
	le.PutUint32(b[24:], p.Number)
	copy(b[32:], kind)
	return b
}

func layoutBuffer(style uint32, entries ...[]byte) []byte {
	b := make([]byte, 48)
	le.PutUint32(b, style)
	le.PutUint32(b[4:], uint32(len(entries)))
	for _, e := range entries {
		b = append(b, e...)
	}
	return b
}

var (
	rawReserved  = []byte{0x16, 0xe3, 0xc9, 0xe3, 0x5c, 0x0b, 0xb8, 0x4d, 0x81, 0x7d, 0xf9, 0x2d, 0xf0, 0x02, 0x15, 0xae}
	rawBasicData = []byte{0xa2, 0xa0, 0xd0, 0xeb, 0xe5, 0xb9, 0x33, 0x44, 0x87, 0xc0, 0x68, 0xb6, 0xb7, 0x26, 0x99, 0xc7}
)

func TestC003_DecodeDriveLayout(t *testing.T) {
	t.Parallel()
	reserved := agent.Partition{Number: 1, OffsetBytes: 17408, SizeBytes: 16759808, Type: gptReserved, Role: agent.RoleReserved}
	data := agent.Partition{Number: 2, OffsetBytes: 16 << 20, SizeBytes: 1 << 40, Type: gptBasicData}
	ifs := agent.Partition{Number: 1, OffsetBytes: 1 << 20, SizeBytes: 1 << 30, Type: "0x07"}
	for _, tt := range []struct {
		name string
		b    []byte
		want driveLayout
	}{
		{"raw", layoutBuffer(win32StyleRaw), driveLayout{style: host.StyleRaw}},
		{"GPT with the reserved partition only", layoutBuffer(win32StyleGPT, layoutEntry(1, reserved, rawReserved)),
			driveLayout{host.StyleGPT, []agent.Partition{reserved}}},
		{"GPT with data and an empty entry", layoutBuffer(win32StyleGPT, layoutEntry(1, reserved, rawReserved),
			layoutEntry(1, data, rawBasicData), layoutEntry(1, agent.Partition{}, nil)),
			driveLayout{host.StyleGPT, []agent.Partition{reserved, data}}},
		{"MBR with three empty slots", layoutBuffer(win32StyleMBR, layoutEntry(0, ifs, []byte{7}),
			layoutEntry(0, agent.Partition{}, nil), layoutEntry(0, agent.Partition{}, nil), layoutEntry(0, agent.Partition{}, nil)),
			driveLayout{host.StyleMBR, []agent.Partition{ifs}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeDriveLayout(tt.b)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("layout = %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
	whole := layoutBuffer(win32StyleGPT, layoutEntry(1, data, rawBasicData))
	many := layoutBuffer(win32StyleGPT)
	le.PutUint32(many[4:], 1<<32-1)
	for _, bad := range [][]byte{nil, whole[:len(whole)-1], many, layoutBuffer(9)} {
		if got, err := decodeDriveLayout(bad); err == nil {
			t.Errorf("%d bytes read as %+v", len(bad), got)
		}
	}
}

func FuzzDecodeDriveLayout(f *testing.F) {
	f.Add(layoutBuffer(win32StyleRaw))
	f.Add(layoutBuffer(win32StyleMBR, layoutEntry(0, agent.Partition{Number: 1}, []byte{7})))
	f.Add(layoutBuffer(win32StyleGPT, layoutEntry(1, agent.Partition{Number: 1}, rawReserved)))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := decodeDriveLayout(b)
		if err == nil && len(table.partitions)*layout.PartitionBytes > len(b) {
			t.Errorf("%d partitions in %d bytes", len(table.partitions), len(b))
		}
	})
}
