package scratch

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/test/conformance"
	"github.com/csi-windows/csi-windows/test/conformance/vhdx"
	"github.com/csi-windows/csi-windows/test/wine/bed"
)

const mib = int64(1) << 20

// place is a fresh node and a folder for scratch disks.
type place struct {
	*testing.T
	node    *control.Client
	lab     *bed.Node
	folder  string
	scratch conformance.Scratch
}

func open(t *testing.T) *place {
	t.Helper()
	b := &place{T: t, lab: bed.Connect(t), folder: t.TempDir()}
	b.lab.Fresh()
	b.node = b.lab.Control
	var err error
	b.scratch, err = vhdx.New(b.folder)
	b.ok(err)
	return b
}

func (b *place) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// disk makes a scratch disk.
func (b *place) disk() conformance.Disk {
	b.Helper()
	d, err := b.scratch.Create(b.Context(), 256*mib)
	b.ok(err)
	return d
}

// isEmpty fails the test when a file or a disk was left.
func (b *place) isEmpty() {
	b.Helper()
	if left, err := os.ReadDir(b.folder); err != nil || len(left) > 0 {
		b.Errorf("files left: %v, %v", left, err)
	}
	disks, err := b.node.Disks(b.Context())
	b.ok(err)
	for _, d := range disks {
		if !d.System {
			b.Errorf("disk %d was left", d.Number)
		}
	}
}

// A disk that cannot be made or attached leaves no file.
func TestFailedCreateLeavesNothing(t *testing.T) {
	b := open(t)
	for _, op := range []string{"CreateDisk", "AttachDisk"} {
		b.lab.Post("fault", `{"op":"`+op+`","kind":"hresult","code":5}`)
		if _, err := b.scratch.Create(t.Context(), 256*mib); err == nil || !strings.Contains(err.Error(), "Windows error 5") {
			t.Errorf("%s fails: %v", op, err)
		}
		b.isEmpty()
	}
	if _, err := vhdx.New(b.folder + `\file`); err != nil {
		t.Errorf("a folder that is made later: %v", err)
	}
	missing, err := vhdx.New(b.folder + `\missing`)
	b.ok(err)
	if _, err := missing.Create(t.Context(), 256*mib); err == nil {
		t.Error("a disk in a folder that is not there")
	}
}

// Windows that does not resize an attached disk gets it detached.
func TestGrowDetaches(t *testing.T) {
	b := open(t)
	d := b.disk()
	b.lab.Post("fault", `{"op":"ResizeDisk","kind":"hresult","code":170}`)
	b.ok(d.Grow(t.Context(), 512*mib))
	state, err := d.Look(t.Context())
	if err != nil || state.SizeBytes != 512*mib || state.Style != host.StyleRaw {
		t.Errorf("grown, the disk is %+v, %v", state, err)
	}
	b.lab.Post("fault", `{"op":"ResizeDisk","kind":"hresult","code":170,"times":2}`)
	if err := d.Grow(t.Context(), 768*mib); err == nil {
		t.Error("what cannot be grown was grown")
	}
	b.ok(d.Remove(t.Context()))
	b.isEmpty()
}

// A disk that is not the suite's any more is not looked at, written to or grown.
func TestOtherDiskIsRefused(t *testing.T) {
	b := open(t)
	ctx := t.Context()
	other, err := b.node.AttachDisk(ctx, sim.DiskSpec{Image: "other.img", SizeBytes: 256 * mib})
	b.ok(err)
	d := b.disk()
	if d.Number() == other {
		t.Fatalf("two disks have number %d", other)
	}
	if state, err := d.Look(ctx); err != nil || state.Number != d.Number() || state.Offline || state.ReadOnly {
		t.Errorf("the new disk is %+v, %v", state, err)
	}
	disks, err := b.node.Disks(ctx)
	b.ok(err)
	for _, id := range disks[0].Volumes { // of the system disk
		if holds, err := d.Holds(ctx, id); err != nil || holds {
			t.Errorf("the scratch disk holds %s: %v, %v", id, holds, err)
		}
	}
	if holds, err := d.Holds(ctx, `\\?\Volume{5f0c1e5a-0000-4c5f-8a11-000000000000}\`); err == nil || holds {
		t.Errorf("the scratch disk holds a volume that is not there: %v, %v", holds, err)
	}
	b.lab.Post("fault", `{"op":"PhysicalPath","kind":"hresult","code":21,"times":-1}`)
	for what, err := range refusals(ctx, d) {
		if err == nil {
			t.Errorf("without a place on the node, %s succeeded", what)
		}
	}
	b.lab.Post("reset", "")
	b.ok(d.Remove(ctx))
	b.ok(d.Remove(ctx))
	for what, err := range refusals(ctx, d) {
		if err == nil {
			t.Errorf("of a removed disk, %s succeeded", what)
		}
	}
	b.ok(b.node.DetachDisk(ctx, other))
	b.isEmpty()
}

// refusals are the errors of everything that can be done with a disk but its removal.
func refusals(ctx context.Context, d conformance.Disk) map[string]error {
	_, lookErr := d.Look(ctx)
	_, holdsErr := d.Holds(ctx, `\\?\Volume{5f0c1e5a-0000-4c5f-8a11-000000000000}\`)
	return map[string]error{
		"Look": lookErr, "Holds": holdsErr, "WriteRaw": d.WriteRaw(ctx, 0, []byte("x")),
		"Grow": d.Grow(ctx, 1024*mib), "Replug": d.Replug(ctx),
	}
}
