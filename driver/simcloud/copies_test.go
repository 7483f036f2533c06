package simcloud

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/sim/cloud"
)

// A snapshot outlives its volume, and so does what is made of it, in any order.
func TestCopiesOutliveTheirSource(t *testing.T) {
	t.Parallel()
	b, _ := openBackend(t)
	data := bytes.Repeat([]byte("precious"), 1<<16)
	const at = 32 << 20
	holds := func(what, id string) {
		t.Helper()
		file, err := os.Open(b.Cloud().Image(id))
		must(t, err)
		defer file.Close()
		got := make([]byte, len(data))
		if _, err := file.ReadAt(got, at); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s holds other data, %v", what, err)
		}
	}
	snapshotOf := func(id, name string) *csikit.ContentSource {
		t.Helper()
		s, err := b.CreateSnapshot(ctx, csikit.CreateSnapshotRequest{SourceVolumeID: id, Name: name})
		must(t, err)
		return &csikit.ContentSource{SnapshotID: s.ID}
	}
	first := mustVolume(t, b, csikit.CreateVolumeRequest{Name: "first"})
	file, err := os.OpenFile(b.Cloud().Image(first.ID), os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteAt(data, at)
	must(t, err)
	must(t, file.Close())

	one := snapshotOf(first.ID, "one")
	must(t, b.DeleteVolume(ctx, csikit.VolumeRequest{VolumeID: first.ID}))
	restored := mustVolume(t, b, csikit.CreateVolumeRequest{Name: "restored", Source: one, Capacity: csikit.CapacityRange{RequiredBytes: 2 << 30}})
	holds("a volume of a snapshot of a deleted volume", restored.ID)
	two := snapshotOf(restored.ID, "two")
	clone := mustVolume(t, b, csikit.CreateVolumeRequest{Name: "clone", Source: &csikit.ContentSource{VolumeID: restored.ID}})
	must(t, b.DeleteSnapshot(ctx, csikit.SnapshotRequest{SnapshotID: one.SnapshotID}))
	must(t, b.DeleteVolume(ctx, csikit.VolumeRequest{VolumeID: restored.ID}))
	holds("a clone", clone.ID)
	last := mustVolume(t, b, csikit.CreateVolumeRequest{Name: "last", Source: two})
	holds("a volume of a snapshot of a restored volume", last.ID)
	if last.CapacityBytes != 2<<30 {
		t.Errorf("%d bytes", last.CapacityBytes)
	}
}

// What the cloud says of a failure decides what the caller does next.
func TestErrorsOfTheCloudKeepTheirKind(t *testing.T) {
	t.Parallel()
	for of, want := range map[error]error{
		cloud.ErrNotFound: csikit.ErrNotFound, cloud.ErrAttached: csikit.ErrInUse, cloud.ErrExists: csikit.ErrExists,
		cloud.ErrSize: csikit.ErrOutOfRange, cloud.ErrInvalid: csikit.ErrInvalid, cloud.ErrInGroup: csikit.ErrInvalid,
		cloud.ErrUnrelated: csikit.ErrInvalid, cloud.ErrExhausted: csikit.ErrExhausted, cloud.ErrToken: csikit.ErrBadToken,
		cloud.ErrZone: csikit.ErrPrecondition, cloud.ErrChanging: csikit.ErrBusy, cloud.ErrNode: csikit.ErrUnavailable,
		errnoFull:                csikit.ErrExhausted,
		context.DeadlineExceeded: context.DeadlineExceeded, context.Canceled: context.Canceled,
	} {
		cause := fmt.Errorf("snapshot: %w", of)
		err := kit(cause)
		wantError(t, of.Error(), err, want)
		if err.Error() != cause.Error() {
			t.Errorf("%q became %q", cause, err)
		}
	}
	// The end of a call's time is one, also when the node is what took it.
	if err := kit(fmt.Errorf("%w: %w", cloud.ErrNode, context.DeadlineExceeded)); errors.Is(err, csikit.ErrUnavailable) {
		t.Error(err)
	}
}

func TestCapacityHasNoOverflow(t *testing.T) {
	t.Parallel()
	b, err := New(Config{Dir: t.TempDir(), Zones: []cloud.Zone{{Name: "a", CapacityBytes: math.MaxInt64}, {Name: "b", CapacityBytes: math.MaxInt64}}})
	must(t, err)
	defer b.Close()
	got, err := b.GetCapacity(ctx, csikit.CapacityRequest{})
	if err != nil || got.AvailableBytes != math.MaxInt64 || got.MaximumBytes != cloud.MaxDiskBytes {
		t.Errorf("%+v, %v", got, err)
	}
}
