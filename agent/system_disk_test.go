package agent

import (
	"context"
	"testing"

	"github.com/csi-windows/csi-windows/host"
)

// systemDiskOS is a node whose system disk looks as new as a disk can. Every
// change of it would panic: there is no method for one.
type systemDiskOS struct{ OS }

func (systemDiskOS) SystemDrive() byte { return 'C' }

func (systemDiskOS) Disk(_ context.Context, number uint32) (OSDisk, error) {
	return OSDisk{Number: number, Style: host.StyleRaw, SizeBytes: 1 << 30, System: true}, nil
}

func (systemDiskOS) Partitions(context.Context, uint32) ([]Partition, error) { return nil, nil }

func (systemDiskOS) Volume(_ context.Context, id string) (OSVolume, error) {
	return OSVolume{ID: id, FileSystem: "RAW", PartitionSizeBytes: 1 << 30}, nil
}

func TestInvariant1_SystemDiskIsNeverPreparedForUse(t *testing.T) {
	t.Parallel()
	a := newTestAgent(t, systemDiskOS{}, Policy{})
	ctx := context.Background()
	const id = `\\?\Volume{12345678-1234-1234-1234-123456789abc}\`
	for name, err := range map[string]error{
		"PartitionDisk":    a.PartitionDisk(ctx, 0),
		"FormatVolume":     a.FormatVolume(ctx, id),
		"FormatVolumeWith": a.FormatVolumeWith(ctx, id, host.FormatOptions{FileSystem: "ReFS"}),
		"offline":          a.SetDiskState(ctx, 0, false),
		"read-only":        a.SetDiskReadOnly(ctx, 0, true),
	} {
		if !host.IsKind(err, host.KindPrecondition) {
			t.Errorf("%s: %v, want KindPrecondition", name, err)
		}
	}
}
