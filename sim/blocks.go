package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// BlockSet is a set of blocks of a disk, one bit each.
type BlockSet struct {
	// BlockBytes is the size of a block.
	BlockBytes int64
	words      []uint64
	blocks     int64
}

func newBlockSet(sizeBytes, blockBytes int64) *BlockSet {
	blocks := (sizeBytes + blockBytes - 1) / blockBytes
	return &BlockSet{BlockBytes: blockBytes, blocks: blocks, words: make([]uint64, (blocks+63)/64)}
}

func (s *BlockSet) add(block int64) { s.words[block/64] |= 1 << (block % 64) }

// Next returns the first run of blocks that begins at block from or later, as
// [start, end); start equals end when there is none.
func (s *BlockSet) Next(from int64) (start, end int64) {
	for start = from; start < s.blocks; {
		word := s.words[start/64] >> (start % 64)
		if word != 0 {
			start += int64(bits.TrailingZeros64(word))
			break
		}
		start = (start/64 + 1) * 64
	}
	start = min(start, s.blocks)
	for end = start; end < s.blocks && s.words[end/64]&(1<<(end%64)) != 0; {
		end++
	}
	return start, end
}

// BlockLayout says how the medium of a disk is seen as blocks. The files of a
// volume are kept beside the image, so they are given places on the disk: the
// pieces of a file follow one another from a block that its path decides.
type BlockLayout struct {
	BlockBytes int64
	// PlacesBytes is the part of the disk in which files have their places. It must
	// not change over the life of a disk, or its files would seem to move.
	PlacesBytes int64
}

// place adds the pieces of a file, or of what else has a name.
func (l BlockLayout) place(set *BlockSet, name string, piece int64) {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // never fails
	places := max(l.PlacesBytes/l.BlockBytes, 1)
	set.add((int64(hash.Sum64()>>1) + piece) % min(places, set.blocks))
}

// AllocatedBlocks are the blocks of a medium that hold data. The medium must not
// be in use.
func AllocatedBlocks(ctx context.Context, image string, layout BlockLayout) (*BlockSet, error) {
	return ChangedBlocks(ctx, "", image, layout)
}

// ChangedBlocks are the blocks in which medium target differs from medium base,
// in the image and in the files of its volumes. Where base is shorter, target's
// data counts; an empty base is an empty disk. Neither may be in use.
func ChangedBlocks(ctx context.Context, base, target string, layout BlockLayout) (*BlockSet, error) {
	info, err := os.Stat(target)
	if err != nil {
		return nil, fmt.Errorf("compare media: %w", err)
	}
	c := &comparer{ctx: ctx, layout: layout, set: newBlockSet(info.Size(), layout.BlockBytes)}
	c.old, c.new = make([]byte, layout.BlockBytes), make([]byte, layout.BlockBytes)
	err = c.images(base, target, info.Size())
	if err == nil {
		err = c.volumes(base, target)
	}
	if err != nil {
		return nil, fmt.Errorf("compare media: %w", err)
	}
	return c.set, nil
}

// comparer holds two blocks, whatever the size of the media.
type comparer struct {
	ctx      context.Context //nolint:containedctx // lives as long as one comparison
	layout   BlockLayout
	set      *BlockSet
	old, new []byte
}

// images compares the places at which either image holds data.
func (c *comparer) images(base, target string, size int64) error {
	after, err := os.Open(target)
	if err != nil {
		return err
	}
	defer func() { _ = after.Close() }()
	var before *os.File
	if base != "" {
		if before, err = os.Open(base); err != nil {
			return err
		}
		defer func() { _ = before.Close() }()
	}
	for at := int64(0); at < size; {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		start, err := nextOfEither(before, after, at, size)
		if err != nil || start >= size {
			return err
		}
		block := start / c.layout.BlockBytes
		at = (block + 1) * c.layout.BlockBytes
		same := before != nil
		if same {
			if same, err = c.same(before, after, block*c.layout.BlockBytes); err != nil {
				return err
			}
		}
		if !same {
			c.set.add(block)
		}
	}
	return nil
}

// nextOfEither is the next byte at which a file holds data.
func nextOfEither(before, after *os.File, at, size int64) (int64, error) {
	first, _, err := nextData(after, at, size)
	if err != nil || before == nil {
		return first, err
	}
	info, err := before.Stat()
	if err != nil || at >= info.Size() {
		return first, err
	}
	other, _, err := nextData(before, at, info.Size())
	if other >= info.Size() { // none
		return first, err
	}
	return min(first, other), err
}

// same compares one block of two files; what is behind the end is zero.
func (c *comparer) same(before, after io.ReaderAt, at int64) (bool, error) {
	for _, side := range []struct {
		file io.ReaderAt
		data []byte
	}{{before, c.old}, {after, c.new}} {
		n, err := side.file.ReadAt(side.data, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		clear(side.data[n:])
	}
	return bytes.Equal(c.old, c.new), nil
}

// volumes compares the files of the volumes as they were flushed.
func (c *comparer) volumes(base, target string) error {
	before := ""
	if base != "" {
		before = base + contentSuffix
	}
	names, _, err := namesOfBoth(before, target+contentSuffix)
	if err != nil {
		return err
	}
	for _, name := range names {
		from := ""
		if before != "" {
			from = filepath.Join(before, name, flushedFolder)
		}
		if err := c.folder(name, from, filepath.Join(target+contentSuffix, name, flushedFolder)); err != nil {
			return err
		}
	}
	return nil
}

// namesOfBoth are the names in two folders, in order, and which are in the first.
// A folder that is not there is empty.
func namesOfBoth(before, after string) (names []string, old map[string]bool, err error) {
	old = map[string]bool{}
	for _, folder := range []string{before, after} {
		if folder == "" {
			continue
		}
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		for _, e := range entries {
			names = append(names, e.Name())
			old[e.Name()] = old[e.Name()] || folder == before
		}
	}
	slices.Sort(names)
	return slices.Compact(names), old, nil
}

func (c *comparer) folder(name, before, after string) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	names, old, err := namesOfBoth(before, after)
	for _, entry := range names {
		from := ""
		if old[entry] {
			from = filepath.Join(before, entry)
		}
		if err == nil {
			err = c.entry(path.Join(name, entry), from, filepath.Join(after, entry))
		}
	}
	return err
}

// entry compares one name. Another kind, size or target, and coming and going, is
// a change of the folder's own data, whose place is the name's first.
func (c *comparer) entry(name, before, after string) error {
	old, err := describe(before)
	if err != nil {
		return err
	}
	now, err := describe(after)
	if err != nil {
		return err
	}
	if old != now {
		c.layout.place(c.set, name, 0)
	}
	if old.kind == fs.ModeDir || now.kind == fs.ModeDir {
		return c.folder(name, only(fs.ModeDir, old, before), only(fs.ModeDir, now, after))
	}
	return c.file(name, only(0, old, before), only(0, now, after), max(old.bytes, now.bytes))
}

// only gives the path of an entry that is of a kind.
func only(kind fs.FileMode, state entryState, path string) string {
	if state.kind != kind {
		return ""
	}
	return path
}

// entryState is what a folder knows of an entry; kind is ModeIrregular for none.
type entryState struct {
	kind   fs.FileMode
	bytes  int64
	target string
}

func describe(path string) (entryState, error) {
	none := entryState{kind: fs.ModeIrregular}
	if path == "" {
		return none, nil
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	state := entryState{kind: info.Mode().Type()}
	switch state.kind {
	case 0:
		state.bytes = info.Size()
	case fs.ModeSymlink:
		state.target, err = os.Readlink(path)
	}
	return state, err
}

// file compares the pieces of a file.
func (c *comparer) file(name, before, after string, size int64) error {
	old, closeOld, err := openPieces(before)
	if err != nil {
		return err
	}
	defer closeOld()
	now, closeNow, err := openPieces(after)
	if err != nil {
		return err
	}
	defer closeNow()
	for piece := int64(0); piece*c.layout.BlockBytes < size; piece++ {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		same, err := c.same(old, now, piece*c.layout.BlockBytes)
		if err != nil {
			return err
		}
		if !same || before == "" {
			c.layout.place(c.set, name, piece)
		}
	}
	return nil
}

// openPieces opens a file; none has no bytes.
func openPieces(path string) (io.ReaderAt, func(), error) {
	if path == "" {
		return bytes.NewReader(nil), func() {}, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	return file, func() { _ = file.Close() }, nil
}
