package cloud

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// extents collects what is emitted, and fails when it is out of order.
func extents(t *testing.T, run func(emit func([]Extent) error) error) []Extent {
	t.Helper()
	var all []Extent
	err := run(func(batch []Extent) error {
		for _, e := range batch {
			if len(all) > 0 && e.OffsetBytes <= all[len(all)-1].OffsetBytes+all[len(all)-1].SizeBytes || e.SizeBytes <= 0 {
				t.Errorf("%+v after %+v", e, all[len(all)-1])
			}
			all = append(all, e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func snap(t *testing.T, c *Cloud, id, name string) Disk {
	t.Helper()
	s, err := c.SnapshotDisk(ctx, id, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBlocksOfTheImage(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	d := create(t, c, CreateRequest{Name: "a", SizeBytes: 64 << 20})
	write := func(at int64, text string) {
		t.Helper()
		if err := writeAt(c.Image(d.ID), at, text); err != nil {
			t.Fatal(err)
		}
	}
	empty := snap(t, c, d.ID, "0")
	write(3*BlockBytes+17, "x")
	write(5*BlockBytes-1, "yz") // over the border of two blocks
	write(20*BlockBytes, "same")
	first := snap(t, c, d.ID, "1")
	write(3*BlockBytes+17, "\x00") // back to what it was
	write(20*BlockBytes, "same")
	write(30*BlockBytes, "new")
	if _, err := c.GrowDisk(ctx, d.ID, 96<<20); err != nil {
		t.Fatal(err)
	}
	write(96<<20-4, "last")
	second := snap(t, c, d.ID, "2")

	changed := func(base, target Disk, from int64) []Extent {
		t.Helper()
		return extents(t, func(emit func([]Extent) error) error { return c.ChangedBlocks(ctx, base.ID, target.ID, from, emit) })
	}
	allocated := func(s Disk, from int64) []Extent {
		t.Helper()
		return extents(t, func(emit func([]Extent) error) error { return c.AllocatedBlocks(ctx, s.ID, from, emit) })
	}
	check := func(what string, got []Extent, want ...Extent) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	const b = BlockBytes
	last := Extent{96<<20 - b, b}
	check("empty", allocated(empty, 0))
	check("allocated", allocated(first, 0), Extent{3 * b, 3 * b}, Extent{20 * b, b})
	check("from an empty one", changed(empty, first, 0), Extent{3 * b, 3 * b}, Extent{20 * b, b})
	check("changed", changed(first, second, 0), Extent{3 * b, b}, Extent{30 * b, b}, last)
	check("the rest", changed(first, second, 3*b+1), Extent{3 * b, b}, Extent{30 * b, b}, last)
	check("later", changed(first, second, 4*b), Extent{30 * b, b}, last)
	check("the end", changed(first, second, 96<<20))
	check("itself", changed(second, second, 0))

	none := func([]Extent) error { return nil }
	other := create(t, c, CreateRequest{Name: "b"})
	for err, want := range map[error]error{
		c.ChangedBlocks(ctx, second.ID, first.ID, 0, none):                           ErrUnrelated,
		c.ChangedBlocks(ctx, first.ID, snap(t, c, other.ID, "o").ID, 0, none):        ErrUnrelated,
		c.ChangedBlocks(ctx, "no", first.ID, 0, none):                                ErrNotFound,
		c.ChangedBlocks(ctx, first.ID, "no", 0, none):                                ErrNotFound,
		c.AllocatedBlocks(ctx, first.ID, 64<<20+1, none):                             ErrSize,
		c.AllocatedBlocks(ctx, first.ID, -1, none):                                   ErrSize,
		c.AllocatedBlocks(ctx, d.ID, 0, none):                                        ErrNotFound,
		c.AllocatedBlocks(ctx, first.ID, 0, func([]Extent) error { return errStop }): errStop,
	} {
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.AllocatedBlocks(ended, first.ID, 0, none); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

var errStop = errors.New("stop")

// What programs write to the files of a volume shows in the blocks, though the
// files lie beside the image; and what they leave alone does not.
func TestBlocksOfFiles(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	n := openNode(t)
	d := create(t, c, CreateRequest{Name: "a"})
	number, err := c.AttachDisk(ctx, d.ID, "n", n)
	if err != nil {
		t.Fatal(err)
	}
	volume := volumeOf(t, n, number)
	write := func(name, text string) {
		t.Helper()
		if err := n.WriteFile(ctx, volume+name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		flushAll(t, n)
	}
	changed := func(base, target Disk) int64 {
		t.Helper()
		var sum int64
		for _, e := range extents(t, func(emit func([]Extent) error) error { return c.ChangedBlocks(ctx, base.ID, target.ID, 0, emit) }) {
			sum += e.SizeBytes
		}
		return sum / BlockBytes
	}
	large := strings.Repeat("l", 3*BlockBytes)
	write("large", large)
	write("kept", "kept")
	one := snap(t, c, d.ID, "1")
	two := snap(t, c, d.ID, "2")
	if got := changed(one, two); got != 0 {
		t.Errorf("%d blocks changed while nothing was written", got)
	}
	write("large", large[:BlockBytes+5]+"X"+large[BlockBytes+6:])
	three := snap(t, c, d.ID, "3")
	if got := changed(two, three); got != 1 {
		t.Errorf("%d blocks changed for one byte", got)
	}
	write(`folder\new`, large)
	four := snap(t, c, d.ID, "4")
	if got := changed(three, four); got < 2 || got > 4 { // the folder's name, and the file's three pieces
		t.Errorf("%d blocks changed for a new file", got)
	}
	if err := n.RemoveFile(ctx, volume+`folder\new`); err != nil {
		t.Fatal(err)
	}
	flushAll(t, n)
	if got := changed(four, snap(t, c, d.ID, "5")); got < 1 || got > 3 {
		t.Errorf("%d blocks changed for a file that went", got)
	}
}

func flushAll(t *testing.T, n *sim.Node) {
	t.Helper()
	rows, err := n.Query(ctx, cim.NamespaceStorage, "SELECT ObjectId, Path FROM MSFT_Volume")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if _, err := n.Exec(ctx, cim.NamespaceStorage, r.Path, "Flush", nil); err != nil {
			t.Fatal(err)
		}
	}
}

// Blocks over the whole of a large disk come a few at a time.
func TestBlocksComeInParts(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	d := create(t, c, CreateRequest{Name: "a", SizeBytes: MaxDiskBytes / 8})
	file, err := os.OpenFile(c.Image(d.ID), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	const count = 3 * extentsPerCall / 2
	for i := range int64(count) {
		if _, err := file.WriteAt([]byte{1}, i*(d.SizeBytes/count)/BlockBytes*BlockBytes); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	s := snap(t, c, d.ID, "s")
	calls, blocks := 0, 0
	err = c.AllocatedBlocks(ctx, s.ID, 0, func(batch []Extent) error {
		calls, blocks = calls+1, blocks+len(batch)
		return nil
	})
	if err != nil || calls != 2 || blocks != count {
		t.Errorf("%d calls with %d extents, %v", calls, blocks, err)
	}
}
