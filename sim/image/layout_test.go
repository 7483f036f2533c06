package image_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/csi-windows/csi-windows/sim/image"
)

const (
	diskGUID = "{01234567-89ab-cdef-0123-456789abcdef}"
	partGUID = "{cf468ffa-ae17-4139-a575-717547d4df09}"
)

var ignorePrivate = cmpopts.IgnoreUnexported(image.Layout{}, image.Entry{})

func layoutOf(tb testing.TB, im *image.Image) image.Layout {
	tb.Helper()
	l, err := im.Layout()
	must(tb, err)
	return l
}

// reopened is the disk as another process would find it.
func reopened(tb testing.TB, im *image.Image, path string) image.Layout {
	tb.Helper()
	must(tb, im.Flush())
	again, err := image.Open(path)
	must(tb, err)
	defer again.Close()
	return layoutOf(tb, again)
}

func TestGPTAsWindowsMakesIt(t *testing.T) {
	t.Parallel()
	const size = 3 * gib // below 4 GiB: 64 KiB boundaries
	path := filepath.Join(t.TempDir(), "d")
	im, err := image.Create(path, size)
	must(t, err)
	defer im.Close()
	if got := layoutOf(t, im); !cmp.Equal(got, image.Layout{}, ignorePrivate) {
		t.Errorf("fresh disk: %+v", got)
	}
	must(t, im.InitGPT(diskGUID))
	made, err := im.AddPartition(image.PartitionSpec{UseMaximumSize: true, GUID: partGUID})
	must(t, err)
	must(t, im.SetAttributes(2, 1<<63))

	// Offsets and sizes as Get-Partition and GetSupportedSize print them for
	// such a disk: MSR 17408 and 16759808, data 16777216 and 3204382720,
	// SizeMax 3204431360.
	data := image.Entry{
		Number: 2, OffsetBytes: 16777216, SizeBytes: 3204382720, GPTType: image.GPTTypeBasicData,
		GUID: partGUID, Name: "Basic data partition",
	}
	if diff := cmp.Diff(data, made, ignorePrivate); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
	data.GPTAttributes = 1 << 63
	got := reopened(t, im, path)
	msr := got.Entries[0]
	if msr.Number != 1 || msr.OffsetBytes != 17408 || msr.SizeBytes != 16759808 || msr.GPTType != image.GPTTypeReserved {
		t.Errorf("reserved partition: %+v", msr)
	}
	want := image.Layout{
		Style: image.StyleGPT, DiskGUID: diskGUID, Entries: []image.Entry{msr, data},
		FirstUsableBytes: 17408, EndUsableBytes: size - 33*512,
		LargestFreeExtentBytes: 65536 - 33*512, AllocatedBytes: 16777216 + 3204382720,
	}
	if diff := cmp.Diff(want, got, ignorePrivate); diff != "" {
		t.Errorf("layout (-want +got):\n%s", diff)
	}
	if largest := got.MaxPartitionBytes(2); largest != 3204431360 {
		t.Errorf("SizeMax %d", largest)
	}
	if largest := got.MaxPartitionBytes(1); largest != msr.SizeBytes {
		t.Errorf("SizeMax of the hemmed-in partition %d", largest)
	}
}

func TestMBRAsWindowsMakesIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d")
	im, err := image.Create(path, 5*gib)
	must(t, err)
	defer im.Close()
	must(t, im.InitMBR(0xDEADBEEF))
	if l := layoutOf(t, im); l.Style != image.StyleMBR || len(l.Entries) != 0 || l.LargestFreeExtentBytes != 5*gib-mib {
		t.Errorf("empty table: %+v", l)
	}
	made, err := im.AddPartition(image.PartitionSpec{UseMaximumSize: true, MBRType: image.MBRTypeIFS, Active: true})
	must(t, err)
	want := image.Layout{
		Style: image.StyleMBR, Signature: 0xDEADBEEF, FirstUsableBytes: mib, EndUsableBytes: 5 * gib,
		Entries:                []image.Entry{{Number: 1, OffsetBytes: mib, SizeBytes: 5*gib - 2*mib, MBRType: image.MBRTypeIFS, Active: true}},
		LargestFreeExtentBytes: mib, AllocatedBytes: 5*gib - 2*mib,
	}
	if diff := cmp.Diff(want, reopened(t, im, path), ignorePrivate); diff != "" {
		t.Errorf("layout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Entries[0], made, ignorePrivate); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
}

func TestInitializeRefuses(t *testing.T) {
	t.Parallel()
	small := newDisk(t, image.MinGPTBytes-1)
	if err := small.InitGPT(diskGUID); !errors.Is(err, image.ErrTooSmallForGPT) {
		t.Errorf("small disk: %v", err)
	}
	must(t, small.InitMBR(1))
	for name, err := range map[string]error{
		"MBR over MBR": small.InitMBR(2),
		"GPT over MBR": small.InitGPT(diskGUID),
	} {
		if !errors.Is(err, image.ErrAlreadyInitialized) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if l := layoutOf(t, small); l.Signature != 1 {
		t.Error("a refusal changed the table")
	}
	if err := newDisk(t, gib).InitGPT("nonsense"); !errors.Is(err, image.ErrInvalid) {
		t.Errorf("bad GUID: %v", err)
	}
}

func TestClearMakesRAW(t *testing.T) {
	t.Parallel()
	im := newDisk(t, 64*mib)
	must(t, im.InitGPT(diskGUID))
	must(t, im.Clear())
	if l := layoutOf(t, im); l.Style != image.StyleRAW {
		t.Errorf("after Clear: %+v", l)
	}
	must(t, im.InitMBR(7))
	tiny := newDisk(t, 512)
	must(t, tiny.Clear())
	if l := layoutOf(t, tiny); l.Style != image.StyleRAW {
		t.Errorf("one sector: %+v", l)
	}
}

func TestGrowNeedsMoveBackup(t *testing.T) {
	t.Parallel()
	im := newDisk(t, gib)
	must(t, im.InitGPT(diskGUID))
	e, err := im.AddPartition(image.PartitionSpec{UseMaximumSize: true})
	must(t, err)
	before := layoutOf(t, im)
	if err := im.Grow(gib - 1); !errors.Is(err, image.ErrSize) {
		t.Errorf("shrink: %v", err)
	}
	must(t, im.Grow(2*gib))
	if diff := cmp.Diff(before, layoutOf(t, im), ignorePrivate); diff != "" {
		t.Errorf("growing alone changed the table:\n%s", diff)
	}
	must(t, im.SetAttributes(e.Number, 1)) // an edit before the backup moved
	must(t, im.MoveBackup())
	must(t, im.MoveBackup())
	l := layoutOf(t, im)
	if want := 2*gib - 33*512; l.EndUsableBytes != want {
		t.Errorf("usable to %d, want %d", l.EndUsableBytes, want)
	}
	must(t, im.ResizePartition(e.Number, l.MaxPartitionBytes(e.Number)))
	mustWrite(t, im, 512, make([]byte, 512)) // only the backup is left
	got, _ := layoutOf(t, im).Partition(e.Number)
	if got.OffsetBytes+got.SizeBytes != l.EndUsableBytes || got.GPTAttributes != 1 {
		t.Errorf("after the resize, by the backup: %+v", got)
	}
	mbr := newDisk(t, gib)
	must(t, mbr.InitMBR(1))
	must(t, mbr.MoveBackup())
}
