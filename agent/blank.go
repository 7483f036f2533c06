package agent

import (
	"context"
	"fmt"

	"github.com/csi-windows/csi-windows/agent/probe"
	"github.com/csi-windows/csi-windows/host"
)

// sectorBytes is the unit of raw reads; it is a multiple of every sector size.
const sectorBytes = 4096

// readRaw reads raw bytes of a disk or volume, under the rules of OS.ReadDisk.
type readRaw func(ctx context.Context, offsetBytes int64, buffer []byte) (int, error)

// mustBeBlankDisk refuses a disk without data partitions whose bytes look like
// somebody's data all the same: a file system or volume manager on the whole
// disk, or, when it has no partition table either, anything that is not zero. A
// table without partitions proves nothing: some whole-disk formats leave room
// for a boot sector, and a table can be written over a file system.
func (a *Agent) mustBeBlankDisk(ctx context.Context, disk OSDisk) error {
	read := func(ctx context.Context, offsetBytes int64, buffer []byte) (int, error) {
		return a.os.ReadDisk(ctx, disk.Number, offsetBytes, buffer)
	}
	head, tail, err := readEnds(ctx, read, disk.SizeBytes)
	if err != nil {
		return err
	}
	if probe.IsEmptyTable(head, tail) {
		// What a run leaves behind that was cut off while it made the table.
		return nil
	}
	switch disk.Style {
	case host.StyleGPT:
		probe.ClearGPT(head, tail)
	case host.StyleMBR:
		probe.ClearMBR(head)
	default:
		return mustBeBlank(head, tail)
	}
	return mustHoldNothingKnown(head, tail)
}

// mustBeBlankVolume is mustBeBlankDisk for a volume Windows sees no file system on.
func (a *Agent) mustBeBlankVolume(ctx context.Context, volume OSVolume) error {
	read := func(ctx context.Context, offsetBytes int64, buffer []byte) (int, error) {
		return a.os.ReadVolume(ctx, volume.ID, offsetBytes, buffer)
	}
	head, tail, err := readEnds(ctx, read, max(volume.SizeBytes, volume.PartitionSizeBytes))
	if err != nil {
		return err
	}
	return mustBeBlank(head, tail)
}

func mustHoldNothingKnown(head, tail []byte) error {
	if found := probe.Look(head, tail); found != "" {
		return refuse(host.KindPrecondition, "it holds data: %s", found)
	}
	return nil
}

func mustBeBlank(head, tail []byte) error {
	if err := mustHoldNothingKnown(head, tail); err != nil {
		return err
	}
	if at := probe.FirstNonZero(head); at >= 0 {
		return refuse(host.KindPrecondition, "it holds data of an unknown kind at byte %d", at)
	}
	return nil
}

// readEnds reads the first and last bytes in which data is recognised. A read
// that brings less than asked for is an error, for what was not seen could be
// somebody's data.
func readEnds(ctx context.Context, read readRaw, sizeBytes int64) (head, tail []byte, err error) {
	if sizeBytes < sectorBytes {
		return nil, nil, refuse(host.KindPrecondition, "the size is not known: %d bytes", sizeBytes)
	}
	sizeBytes -= sizeBytes % sectorBytes
	head, err = readFull(ctx, read, 0, min(sizeBytes, probe.HeadBytes))
	if err != nil {
		return nil, nil, err
	}
	length := min(sizeBytes, probe.TailBytes)
	tail, err = readFull(ctx, read, sizeBytes-length, length)
	return head, tail, err
}

func readFull(ctx context.Context, read readRaw, offsetBytes, lengthBytes int64) ([]byte, error) {
	buffer := make([]byte, lengthBytes)
	n, err := read(ctx, offsetBytes, buffer)
	if err != nil {
		return nil, err
	}
	if int64(n) != lengthBytes {
		return nil, fmt.Errorf("read %d of %d bytes at byte %d", n, lengthBytes, offsetBytes)
	}
	return buffer, nil
}
