package agent_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/image"
)

// Invariant 1: a partition table without partitions proves nothing. Formats
// that cover a whole disk leave room for a boot sector, and a disk is soon
// given an empty table by mistake; the data is still there.
func TestInvariant1_EmptyTableOverForeignData(t *testing.T) {
	t.Parallel()
	const bootMark = "\x55\xaa"
	for name, tc := range map[string]struct {
		bytes   map[int64]string
		initGPT bool
	}{
		"ext4 with a boot sector":  {bytes: map[int64]string{510: bootMark, 1080: "\x53\xef"}},
		"XFS with a boot mark":     {bytes: map[int64]string{0: "XFSB", 510: bootMark}},
		"btrfs with a boot sector": {bytes: map[int64]string{510: bootMark, 65600: "_BHRfS_M"}},
		"LVM with a boot sector":   {bytes: map[int64]string{510: bootMark, 512: "LABELONE"}},
		"RAID with a boot sector":  {bytes: map[int64]string{510: bootMark, -8192: "\xfc\x4e\x2b\xa9\x01\x00\x00\x00"}},
		"ZFS under a new GPT":      {bytes: map[int64]string{128 << 10: "\x0c\xb1\xba\x00\x00\x00\x00\x00"}, initGPT: true},
		"btrfs under a new GPT":    {bytes: map[int64]string{65600: "_BHRfS_M"}, initGPT: true},
		"header that names entries elsewhere": {bytes: map[int64]string{
			512: "EFI PART\x00\x00\x01\x00" + string(make([]byte, 12)) + "\x01" + string(make([]byte, 47)) + "\x00\x10" + string(make([]byte, 6)) + "\x80\x00\x00\x00\x80\x00\x00\x00",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			path := filepath.Join(t.TempDir(), "disk")
			img, err := image.Create(path, 64*mib)
			l.ok(err)
			for offset, data := range tc.bytes {
				if offset < 0 {
					offset += 64 * mib
				}
				_, err := img.WriteAt([]byte(data), offset)
				l.ok(err)
			}
			if tc.initGPT {
				l.ok(img.InitGPT("{11111111-2222-3333-4444-555555555555}"))
			}
			l.ok(img.Close())
			before := readFile(t, path)
			number, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: path})
			l.ok(err)
			l.want(host.KindPrecondition, l.agent.PartitionDisk(l.ctx, number))
			l.ok(l.node.DetachDisk(l.ctx, number))
			if !bytes.Equal(before, readFile(t, path)) {
				t.Error("the disk's bytes have changed")
			}
		})
	}
}

// Invariant 1: the protective MBR hides a GPT from what does not know it. When
// it is damaged, Windows sees an MBR without partitions; they are still there.
func TestInvariant1_DamagedProtectiveMBR(t *testing.T) {
	t.Parallel()
	const typeOffset = 446 + 4
	for name, damage := range map[string]map[int]byte{
		"type cleared": {typeOffset: 0},
		"entry gone":   {typeOffset: 0, typeOffset - 2: 0, typeOffset + 4: 0, typeOffset + 8: 0},
		"other type":   {typeOffset: 0x83},
		"mark gone":    {510: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			path := filepath.Join(t.TempDir(), "disk")
			attach := func() uint32 {
				number, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: path, SizeBytes: 64 * mib})
				l.ok(err)
				return number
			}
			number := attach()
			l.ok(l.agent.PartitionDisk(l.ctx, number))
			l.ok(l.agent.FormatVolume(l.ctx, l.onlyVolume(number)))
			l.ok(l.node.DetachDisk(l.ctx, number))
			data := readFile(t, path)
			for offset, value := range damage {
				data[offset] = value
			}
			writeFile(t, path, data)
			number = attach()
			_ = l.agent.PartitionDisk(l.ctx, number) // refused, or left alone for the partition Windows sees
			l.ok(l.node.DetachDisk(l.ctx, number))
			if !bytes.Equal(data, readFile(t, path)) {
				t.Error("the disk's bytes have changed")
			}
		})
	}
}
