package image_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/csi-windows/csi-windows/sim/image"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
	tib = int64(1) << 40
)

// newDisk makes an image that is closed with the test.
func newDisk(tb testing.TB, sizeBytes int64) *image.Image {
	tb.Helper()
	im, err := image.Create(filepath.Join(tb.TempDir(), "disk.img"), sizeBytes)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := im.Close(); err != nil {
			tb.Error(err)
		}
	})
	return im
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func mustRead(tb testing.TB, r io.ReaderAt, off int64, n int) []byte {
	tb.Helper()
	b := make([]byte, n)
	if _, err := r.ReadAt(b, off); err != nil {
		tb.Fatal(err)
	}
	return b
}

func mustWrite(tb testing.TB, w io.WriterAt, off int64, b []byte) {
	tb.Helper()
	if _, err := w.WriteAt(b, off); err != nil {
		tb.Fatal(err)
	}
}

func TestWritesAreSeenAndSurviveOnlyAFlush(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "disk.img")
	im, err := image.Create(path, mib)
	must(t, err)
	old, fresh := bytes.Repeat([]byte{1}, 10000), bytes.Repeat([]byte{2}, 10000)
	mustWrite(t, im, 4090, old) // crosses pages, starts within one
	must(t, im.Flush())
	mustWrite(t, im, 4100, fresh)
	if got := mustRead(t, im, 4090, 10); !bytes.Equal(got, old[:10]) {
		t.Errorf("bytes beside a write changed: %v", got)
	}
	if got := mustRead(t, im, 4100, len(fresh)); !bytes.Equal(got, fresh) {
		t.Error("a read does not see an unflushed write")
	}
	im.PowerCut()
	if got := mustRead(t, im, 4090, len(old)); !bytes.Equal(got, old) {
		t.Error("a power cut lost flushed bytes or kept unflushed ones")
	}
	mustWrite(t, im, 0, []byte("kept"))
	must(t, im.Close())
	must(t, im.Close())

	again, err := image.Open(path)
	must(t, err)
	defer again.Close()
	if got := mustRead(t, again, 0, 4); string(got) != "kept" {
		t.Errorf("after an orderly close: %q", got)
	}
	if again.SizeBytes() != mib {
		t.Errorf("size %d", again.SizeBytes())
	}
}

func TestBoundsAreTheDisk(t *testing.T) {
	t.Parallel()
	im := newDisk(t, 10*image.SectorBytes+100)
	size := int64(10 * image.SectorBytes)
	if im.SizeBytes() != size {
		t.Fatalf("size %d, want whole sectors", im.SizeBytes())
	}
	for _, off := range []int64{-1, size - 1, size, size + 1, 1<<63 - 1} {
		if _, err := im.WriteAt([]byte{1, 2}, off); !errors.Is(err, image.ErrOutOfRange) {
			t.Errorf("write at %d: %v", off, err)
		}
	}
	if n, err := im.ReadAt(make([]byte, 4), size-2); n != 2 || err != io.EOF {
		t.Errorf("read over the end: %d, %v", n, err)
	}
	if n, err := im.ReadAt(make([]byte, 4), size); n != 0 || err != io.EOF {
		t.Errorf("read behind the end: %d, %v", n, err)
	}
	if _, err := im.ReadAt(make([]byte, 4), -1); !errors.Is(err, image.ErrOutOfRange) {
		t.Errorf("read before the start: %v", err)
	}
	mustWrite(t, im, size-1, []byte{9}) // the last page is a short one
	must(t, im.Flush())
	if im.SizeBytes() != size {
		t.Error("a flush changed the size")
	}
}

func TestCreateAndOpenRefuse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := image.Create(filepath.Join(dir, "a"), 511); !errors.Is(err, image.ErrSize) {
		t.Errorf("below a sector: %v", err)
	}
	short := filepath.Join(dir, "short")
	must(t, os.WriteFile(short, make([]byte, 100), 0o600))
	if _, err := image.Open(short); !errors.Is(err, image.ErrSize) {
		t.Errorf("open of a short file: %v", err)
	}
	if _, err := image.Create(short, mib); !errors.Is(err, os.ErrExist) {
		t.Errorf("create over a file: %v", err)
	}
	if _, err := image.Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open of nothing: %v", err)
	}
}

func TestClosedImageSaysSo(t *testing.T) {
	t.Parallel()
	im := newDisk(t, mib)
	must(t, im.Close())
	_, layoutErr := im.Layout()
	_, readErr := im.ReadAt(make([]byte, 1), 0)
	_, writeErr := im.WriteAt(make([]byte, 1), 0)
	for what, err := range map[string]error{
		"layout": layoutErr, "read": readErr, "write": writeErr,
		"flush": im.Flush(), "grow": im.Grow(2 * mib), "init": im.InitMBR(1), "clear": im.Clear(),
	} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	im := newDisk(t, 64*mib)
	must(t, im.InitGPT(diskGUID))
	var wg sync.WaitGroup
	for i := range int64(4) {
		wg.Go(func() {
			block := bytes.Repeat([]byte{byte(i + 1)}, 5000)
			for range 20 {
				mustWrite(t, im, 20*mib+i*5000, block)
				if got := mustRead(t, im, 20*mib+i*5000, 5000); !bytes.Equal(got, block) {
					t.Error("torn write")
				}
				if _, err := im.Layout(); err != nil {
					t.Error(err)
				}
				if err := im.Flush(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestImageIsSparse(t *testing.T) {
	t.Parallel()
	// Neither the file nor the memory of a disk of 8 TiB may be real.
	im := newDisk(t, 8*tib)
	must(t, im.InitGPT(diskGUID))
	e, err := im.AddPartition(image.PartitionSpec{UseMaximumSize: true})
	must(t, err)
	must(t, image.Format(im, e.OffsetBytes, e.SizeBytes, image.FormatSpec{Name: image.NTFS}))
	must(t, im.Flush())
}
