package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/csi-windows/csi-windows/cmd/internal/private"
)

// logShape is how large a log may be.
type logShape struct {
	maxBytes int64 // of one file; 0 means no limit
	maxCount int   // of files, the current one and full ones; full ones end in .1, .2 …, the youngest first
}

// at is a log of this shape.
func (s logShape) at(path string, failed func(error)) *logFile {
	return &logFile{logShape: s, path: path, failed: failed}
}

// logFile is a log on a disk that may be full. klog's own files end the process
// when a record cannot be written; storage must not stop for that, so here the
// record is lost, and the next one is tried anew.
type logFile struct {
	logShape
	path string
	// failed is told of a record that is lost, once until records are written again.
	// It must not block.
	failed func(error)

	mu     sync.Mutex
	file   *os.File // nil until the first record
	bytes  int64
	torn   bool // the last record was written in part
	losing bool // the last record was lost
}

// open makes the file, and the folder it is to lie in, when they are missing, and keeps
// both from ordinary users.
func (l *logFile) open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := private.Mkdir(filepath.Dir(l.path)); err != nil {
		return err
	}
	return l.openLocked()
}

func (l *logFile) openLocked() error {
	if l.file != nil {
		return nil
	}
	file, err := private.OpenAppend(l.path)
	if err != nil {
		return err
	}
	l.bytes = 0
	if info, err := file.Stat(); err == nil {
		l.bytes = info.Size()
	}
	l.file = file
	return nil
}

// Write adds a record.
func (l *logFile) Write(record []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.writeLocked(record)
	if err != nil && !l.losing {
		l.failed(err)
	}
	l.losing = err != nil
	return n, err
}

func (l *logFile) writeLocked(record []byte) (int, error) {
	if err := l.openLocked(); err != nil {
		return 0, err
	}
	if l.maxBytes > 0 && l.bytes > 0 && l.bytes+int64(len(record)) > l.maxBytes {
		if err := l.rotateLocked(); err != nil {
			return 0, err
		}
	}
	if l.torn {
		if _, err := l.file.WriteString("\n"); err != nil {
			return 0, err
		}
		l.torn = false
	}
	n, err := l.file.Write(record)
	l.bytes += int64(n)
	l.torn = err != nil && n > 0
	return n, err
}

// rotateLocked sets the full file aside and begins a new one. A renamed file keeps
// its rights. When it cannot be renamed, because somebody reads it for example, it
// starts over: a log without a limit would fill the disk.
func (l *logFile) rotateLocked() error {
	renameErr := l.shiftLocked()
	if renameErr != nil {
		// By path: on Windows a handle for appending may not shorten its file.
		if err := private.Truncate(l.path); err != nil {
			return errors.Join(renameErr, err)
		}
	}
	err := l.closeLocked()
	l.torn = false
	return errors.Join(err, l.openLocked())
}

// shiftLocked gives every file the next number, and the oldest one's place away.
func (l *logFile) shiftLocked() error {
	if l.maxCount < 2 {
		return errors.New("one file only")
	}
	for number := l.maxCount - 1; number > 1; number-- {
		if err := os.Rename(l.numbered(number-1), l.numbered(number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := l.closeLocked(); err != nil {
		return err
	}
	return os.Rename(l.path, l.numbered(1))
}

// numbered is the path of a full file.
func (l *logFile) numbered(number int) string { return l.path + "." + strconv.Itoa(number) }

// Close closes the file; a later record opens it again.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closeLocked()
}

func (l *logFile) closeLocked() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
