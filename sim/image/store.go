package image

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// pageBytes is the unit in which unflushed writes are held.
const pageBytes = 4096

// store is a file with a write-back cache in front of it. It does not lock.
type store struct {
	file      *os.File
	sizeBytes int64
	dirty     map[int64][]byte // page number -> pageBytes bytes not yet in file
}

// ReadAt implements io.ReaderAt over file and cache.
func (s *store) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read at %d: %w", off, ErrOutOfRange)
	}
	if off >= s.sizeBytes {
		return 0, io.EOF
	}
	var short error
	if rest := s.sizeBytes - off; int64(len(p)) > rest {
		p, short = p[:rest], io.EOF
	}
	if n, err := s.file.ReadAt(p, off); err != nil && n < len(p) {
		return n, fmt.Errorf("read disk image: %w", err)
	}
	if len(s.dirty) > 0 {
		s.overlay(p, off)
	}
	return len(p), short
}

// overlay replaces what the file said by what was written since the last flush.
func (s *store) overlay(p []byte, off int64) {
	for done := 0; done < len(p); {
		page, in := (off+int64(done))/pageBytes, int((off+int64(done))%pageBytes)
		n := min(pageBytes-in, len(p)-done)
		if data, ok := s.dirty[page]; ok {
			copy(p[done:done+n], data[in:])
		}
		done += n
	}
}

// WriteAt implements io.WriterAt. A write that does not fit changes nothing.
func (s *store) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off > s.sizeBytes || int64(len(p)) > s.sizeBytes-off {
		return 0, fmt.Errorf("write %d bytes at %d: %w", len(p), off, ErrOutOfRange)
	}
	for done := 0; done < len(p); {
		page, in := (off+int64(done))/pageBytes, int((off+int64(done))%pageBytes)
		n := min(pageBytes-in, len(p)-done)
		data, err := s.dirtyPage(page, n == pageBytes)
		if err != nil {
			return done, err
		}
		copy(data[in:], p[done:done+n])
		done += n
	}
	return len(p), nil
}

// dirtyPage returns the page in the cache, fetched first unless it is about to
// be overwritten whole.
func (s *store) dirtyPage(page int64, whole bool) ([]byte, error) {
	if data, ok := s.dirty[page]; ok {
		return data, nil
	}
	data := make([]byte, pageBytes)
	if !whole {
		if _, err := s.file.ReadAt(data, page*pageBytes); err != nil && err != io.EOF {
			return nil, fmt.Errorf("read disk image: %w", err)
		}
	}
	s.dirty[page] = data
	return data, nil
}

// flush writes the cache to the file in ascending order. Pages that a failure
// kept from being written stay in the cache.
func (s *store) flush() error {
	for _, page := range slices.Sorted(maps.Keys(s.dirty)) {
		data := s.dirty[page]
		if rest := s.sizeBytes - page*pageBytes; rest < pageBytes {
			data = data[:rest]
		}
		if _, err := s.file.WriteAt(data, page*pageBytes); err != nil {
			return fmt.Errorf("write disk image: %w", err)
		}
		delete(s.dirty, page)
	}
	return nil
}
