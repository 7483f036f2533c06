package image_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-windows/csi-windows/sim/image"
)

// flip changes one byte of a disk.
func flip(tb testing.TB, im *image.Image, off int64) {
	tb.Helper()
	b := mustRead(tb, im, off, 1)
	mustWrite(tb, im, off, []byte{^b[0]})
}

// seal makes a changed header pass its checksum again.
func seal(header []byte) []byte {
	header = bytes.Clone(header)
	binary.LittleEndian.PutUint32(header[16:], 0)
	binary.LittleEndian.PutUint32(header[16:], crc32.ChecksumIEEE(header[:92]))
	return header
}

func TestDamagedGPT(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	end := int64(size)
	for name, c := range map[string]struct {
		flips []int64
		want  image.Style
	}{
		"boot code":                     {[]int64{0, 100}, image.StyleGPT},
		"primary signature":             {[]int64{512}, image.StyleGPT},
		"primary disk GUID":             {[]int64{512 + 56}, image.StyleGPT},
		"primary array":                 {[]int64{1024 + 130}, image.StyleGPT},
		"unused entry":                  {[]int64{1024 + 127*128}, image.StyleGPT},
		"backup header":                 {[]int64{end - 512}, image.StyleGPT},
		"backup array":                  {[]int64{end - 33*512}, image.StyleGPT},
		"both headers":                  {[]int64{512, end - 512}, image.StyleRAW},
		"primary header, backup array":  {[]int64{512, end - 33*512}, image.StyleRAW},
		"primary array, backup header":  {[]int64{1024, end - 512}, image.StyleRAW},
		"both arrays":                   {[]int64{1024, end - 33*512}, image.StyleRAW},
		"type of the protective entry":  {[]int64{446 + 4}, image.StyleMBR}, // a type like any other
		"mark of the protective record": {[]int64{510}, image.StyleRAW},
	} {
		im := gptDisk(t, size)
		_, err := im.AddPartition(image.PartitionSpec{UseMaximumSize: true})
		must(t, err)
		before := layoutOf(t, im)
		for _, off := range c.flips {
			flip(t, im, off)
		}
		after := layoutOf(t, im)
		if after.Style != c.want {
			t.Errorf("%s: style %d, want %d", name, after.Style, c.want)
			continue
		}
		if c.want != image.StyleGPT {
			continue
		}
		if diff := cmp.Diff(before, after, ignorePrivate); diff != "" {
			t.Errorf("%s changed what is seen:\n%s", name, diff)
		}
		// The next edit repairs both copies.
		must(t, im.SetAttributes(2, 1))
		flip(t, im, 512)
		if l := layoutOf(t, im); l.Style != image.StyleGPT || l.Entries[1].GPTAttributes != 1 {
			t.Errorf("%s: the backup was not repaired: %+v", name, l)
		}
	}
}

// A header whose checksum is right can still lie.
func TestLyingGPTHeader(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	le := binary.LittleEndian
	for name, lie := range map[string]func(h []byte){
		"another place":              func(h []byte) { le.PutUint64(h[24:], 5) },
		"backup behind the disk":     func(h []byte) { le.PutUint64(h[32:], size/512) },
		"usable from 0":              func(h []byte) { le.PutUint64(h[40:], 0) },
		"usable behind the disk":     func(h []byte) { le.PutUint64(h[48:], size/512) },
		"usable to before its start": func(h []byte) { le.PutUint64(h[48:], 33) },
		"usable over the backup":     func(h []byte) { le.PutUint64(h[48:], size/512-3) },
		"array behind the disk":      func(h []byte) { le.PutUint64(h[72:], 1<<63) },
		"array over the header":      func(h []byte) { le.PutUint64(h[72:], 1) },
		"no entries":                 func(h []byte) { le.PutUint32(h[80:], 0) },
		"too many entries":           func(h []byte) { le.PutUint32(h[80:], 1<<31) },
		"entries of 0 bytes":         func(h []byte) { le.PutUint32(h[84:], 0) },
		"entries of 100 bytes":       func(h []byte) { le.PutUint32(h[84:], 100) },
		"entries of 384 bytes":       func(h []byte) { le.PutUint32(h[84:], 384) },
		"huge entries":               func(h []byte) { le.PutUint32(h[84:], 1<<31) },
		"header of 0 bytes":          func(h []byte) { le.PutUint32(h[12:], 0) },
		"header beyond its sector":   func(h []byte) { le.PutUint32(h[12:], 513) },
	} {
		im := gptDisk(t, size)
		flip(t, im, size-512) // no backup to fall back on
		h := mustRead(t, im, 512, 512)
		lie(h)
		mustWrite(t, im, 512, seal(h))
		if l := layoutOf(t, im); l.Style != image.StyleRAW {
			t.Errorf("%s is believed: %+v", name, l)
		}
	}
}

// A table whose checksums are right can hold impossible entries.
func TestLyingGPTEntries(t *testing.T) {
	t.Parallel()
	for name, bounds := range map[string][2]uint64{
		"ends before it starts": {5000, 4999}, "ends behind the disk": {5000, 64 * 2048}, "wraps around": {1, 1<<64 - 1},
	} {
		im := gptDisk(t, 64*mib)
		flip(t, im, 64*mib-512)
		array := mustRead(t, im, 1024, 128*128)
		binary.LittleEndian.PutUint64(array[32:], bounds[0])
		binary.LittleEndian.PutUint64(array[40:], bounds[1])
		mustWrite(t, im, 1024, array)
		h := mustRead(t, im, 512, 512)
		binary.LittleEndian.PutUint32(h[88:], crc32.ChecksumIEEE(array))
		mustWrite(t, im, 512, seal(h))
		if l := layoutOf(t, im); l.Style != image.StyleRAW {
			t.Errorf("an entry that %s is believed: %+v", name, l)
		}
	}
}

func TestLayoutIsTheCallersOwn(t *testing.T) {
	t.Parallel()
	im := gptDisk(t, gib)
	layoutOf(t, im).Entries[0].Number = 99
	if l := layoutOf(t, im); l.Entries[0].Number != 1 {
		t.Error("a caller changed the layout that the next one sees")
	}
}
