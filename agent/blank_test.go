package agent

import (
	"context"
	"errors"
	"testing"

	"github.com/csi-windows/csi-windows/agent/probe"
)

// What was not seen could be somebody's data.
func TestReadEndsWantsEveryByte(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var offsets []int64
	whole := func(_ context.Context, offsetBytes int64, buffer []byte) (int, error) {
		offsets = append(offsets, offsetBytes)
		return len(buffer), nil
	}
	const size = 10<<20 + 777
	head, tail, err := readEnds(ctx, whole, size)
	if err != nil || len(head) != probe.HeadBytes || len(tail) != probe.TailBytes {
		t.Fatalf("read %d and %d bytes, %v", len(head), len(tail), err)
	}
	if offsets[0] != 0 || offsets[1] != size/sectorBytes*sectorBytes-probe.TailBytes {
		t.Errorf("read at %v", offsets)
	}
	if head, tail, err = readEnds(ctx, whole, 8192); err != nil || len(head) != 8192 || len(tail) != 8192 {
		t.Errorf("of a tiny device: %d and %d bytes, %v", len(head), len(tail), err)
	}
	failing := errors.New("bad sector")
	for name, read := range map[string]readRaw{
		"short": func(_ context.Context, _ int64, buffer []byte) (int, error) { return len(buffer) - sectorBytes, nil },
		"short at the end": func(_ context.Context, offsetBytes int64, buffer []byte) (int, error) {
			if offsetBytes > 0 {
				return 0, nil
			}
			return len(buffer), nil
		},
		"failing": func(context.Context, int64, []byte) (int, error) { return 0, failing },
	} {
		if _, _, err := readEnds(ctx, read, size); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, size := range []int64{-1, 0, 4095} {
		if _, _, err := readEnds(ctx, whole, size); err == nil {
			t.Errorf("size %d: no error", size)
		}
	}
}
