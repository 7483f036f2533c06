// Package image is a disk in a file: sparse, with a write cache that a power
// cut empties, with real partition tables (MBR, GPT) and the boot sectors by
// which file systems are told apart.
//
// The bytes are the truth. A layout is read from them every time they changed,
// so that an image made by a foreign tool, or damaged on purpose, is seen the
// way Windows would see the disk. Sectors are 512 bytes. The package knows
// nothing of WMI, letters or volumes.
package image

import (
	"fmt"
	"os"
	"slices"
	"sync"
)

// SectorBytes is the sector size of every image, in bytes.
const SectorBytes = 512

// Image is one disk. It is safe for concurrent use. Two Images on the same path
// do not know of each other.
type Image struct {
	mu     sync.RWMutex
	store  store
	layout *Layout // nil after any change of the bytes
	closed bool
}

// Create makes a new sparse file of sizeBytes, rounded down to whole sectors.
// It fails when the file exists, and with ErrSize when less than one sector
// is asked for.
func Create(path string, sizeBytes int64) (*Image, error) {
	sizeBytes = sizeBytes / SectorBytes * SectorBytes
	if sizeBytes <= 0 {
		return nil, fmt.Errorf("create disk image of %d bytes: %w", sizeBytes, ErrSize)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create disk image: %w", err)
	}
	makeSparse(file)
	if err := file.Truncate(sizeBytes); err != nil {
		_ = file.Close()
		_ = os.Remove(path)
		return nil, fmt.Errorf("create disk image: %w", err)
	}
	return newImage(file, sizeBytes), nil
}

// Open opens an existing file as it is, whoever made it. The disk's size is
// that of the file rounded down to whole sectors; a file below one sector is
// ErrSize.
func Open(path string) (*Image, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open disk image: %w", err)
	}
	info, err := file.Stat()
	if err == nil && info.Size() < SectorBytes {
		err = ErrSize
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("open disk image %s: %w", path, err)
	}
	return newImage(file, info.Size()/SectorBytes*SectorBytes), nil
}

func newImage(file *os.File, sizeBytes int64) *Image {
	return &Image{store: store{file: file, sizeBytes: sizeBytes, dirty: map[int64][]byte{}}}
}

// SizeBytes returns the size of the disk in bytes.
func (im *Image) SizeBytes() int64 {
	im.mu.RLock()
	defer im.mu.RUnlock()
	return im.store.sizeBytes
}

// ReadAt implements io.ReaderAt. It sees unflushed writes.
func (im *Image) ReadAt(p []byte, off int64) (int, error) {
	im.mu.RLock()
	defer im.mu.RUnlock()
	if im.closed {
		return 0, os.ErrClosed
	}
	return im.store.ReadAt(p, off)
}

// WriteAt implements io.WriterAt. What it writes can be lost by PowerCut until
// Flush. A write beyond the end is ErrOutOfRange and changes nothing.
func (im *Image) WriteAt(p []byte, off int64) (int, error) {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.closed {
		return 0, os.ErrClosed
	}
	im.layout = nil
	return im.store.WriteAt(p, off)
}

// Flush moves all writes to the file, which stands for the platter: what is in
// it survives PowerCut. (The file is not synced; the crash of the machine that
// runs the simulation is not part of the simulation.)
func (im *Image) Flush() error {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.closed {
		return os.ErrClosed
	}
	return im.store.flush()
}

// PowerCut drops every write since the last Flush.
func (im *Image) PowerCut() {
	im.mu.Lock()
	defer im.mu.Unlock()
	clear(im.store.dirty)
	im.layout = nil
}

// Grow makes the disk larger, rounded down to whole sectors. It is the act of
// the storage behind the disk: no power cut undoes it, and the partition table
// is left as it is until MoveBackup. A smaller size is ErrSize.
func (im *Image) Grow(newSizeBytes int64) error {
	newSizeBytes = newSizeBytes / SectorBytes * SectorBytes
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.closed {
		return os.ErrClosed
	}
	if newSizeBytes < im.store.sizeBytes {
		return fmt.Errorf("grow disk from %d to %d bytes: %w", im.store.sizeBytes, newSizeBytes, ErrSize)
	}
	if err := im.store.file.Truncate(newSizeBytes); err != nil {
		return fmt.Errorf("grow disk image: %w", err)
	}
	im.store.sizeBytes, im.layout = newSizeBytes, nil
	return nil
}

// Close flushes and closes the file, as an orderly removal does. To lose what
// was not flushed, call PowerCut first. A second Close does nothing.
func (im *Image) Close() error {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.closed {
		return nil
	}
	im.closed = true
	err := im.store.flush()
	if cerr := im.store.file.Close(); err == nil {
		err = cerr
	}
	return err
}

// Layout reads the partition table. A damaged or missing table is not an error
// but StyleRAW; errors are those of reading the file.
func (im *Image) Layout() (Layout, error) {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.closed {
		return Layout{}, os.ErrClosed
	}
	if im.layout == nil {
		t, err := readTable(&im.store, im.store.sizeBytes)
		if err != nil {
			return Layout{}, err
		}
		l := t.layout()
		im.layout = &l
	}
	l := *im.layout
	l.Entries = slices.Clone(l.Entries)
	return l, nil
}
