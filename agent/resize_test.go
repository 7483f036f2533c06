package agent

import (
	"context"
	"testing"

	"github.com/csi-windows/csi-windows/host"
)

// sizesOS knows only how large a partition can be.
type sizesOS struct {
	OS
	maxBytes int64
}

func (sizesOS) SystemDrive() byte { return 'C' }

func (o sizesOS) SupportedSizes(context.Context, string) (minBytes, maxBytes int64, err error) {
	return 0, o.maxBytes, nil
}

func TestResizeTarget(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, tc := range []struct {
		name                         string
		fileSystem                   string
		fsBytes, partitionBytes, max int64
		asked, want                  int64
		kind                         host.Kind // when want is -1
	}{
		{"C011 the report", "NTFS", 3204378624, 3204382720, 3204431360, 0, 0, 0},
		{"C011 at the threshold", "NTFS", 1000 * mib, 1000 * mib, 1100 * mib, 0, 0, 0},
		{"C011 a byte below", "NTFS", 1000 * mib, 1000 * mib, 1100*mib - 1, 0, 0, 0},
		{"C011 a byte above", "NTFS", 1000 * mib, 1000 * mib, 1100*mib + 1, 0, 1100*mib + 1, 0},
		{"asked for less", "NTFS", 1000 * mib, 1000 * mib, 5000 * mib, 500 * mib, 0, 0},
		{"asked for more", "NTFS", 1000 * mib, 1000 * mib, 5000 * mib, 2000 * mib, 2000 * mib, 0},
		{"asked for too much", "NTFS", 1000 * mib, 1000 * mib, 5000 * mib, 5000*mib + 1, -1, host.KindExhausted},
		{"C013 no answer is not zero", "NTFS", 1000 * mib, 1000 * mib, 0, 0, -1, host.KindUnavailable},
		{"Invariant4 cut off after the partition grew", "NTFS", 1000 * mib, 5000 * mib, 5000 * mib, 0, 5000 * mib, 0},
		{"Invariant4 cut off, size asked for", "NTFS", 1000 * mib, 5000 * mib, 5000 * mib, 2000 * mib, 5000 * mib, 0},
		{"Invariant4 cut off, nothing to gain", "NTFS", 1000 * mib, 5000 * mib, 5000 * mib, 1000 * mib, 0, 0},
		{"raw volume", "RAW", 0, 1000 * mib, 1000 * mib, 0, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := newTestAgent(t, sizesOS{maxBytes: tc.max}, Policy{})
			volume := OSVolume{FileSystem: tc.fileSystem, SizeBytes: tc.fsBytes, PartitionSizeBytes: tc.partitionBytes}
			got, err := a.resizeTarget(context.Background(), volume, tc.asked)
			if tc.want < 0 {
				if !host.IsKind(err, tc.kind) {
					t.Errorf("got %d, %v; want kind %q", got, err, tc.kind)
				}
			} else if err != nil || got != tc.want {
				t.Errorf("got %d, %v; want %d", got, err, tc.want)
			}
		})
	}
}
