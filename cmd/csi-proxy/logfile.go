package main

import (
	"os"
	"sync"
)

// logFile is a log on a disk that may be full. klog's own files end the process
// when a record cannot be written; storage must not stop for that, so here the
// record is lost, and the next one is tried anew.
type logFile struct {
	path     string
	maxBytes int64 // beyond it the file starts over; 0 means no limit

	mu    sync.Mutex
	file  *os.File // nil until the first record
	bytes int64
	torn  bool // the last record was written in part
}

// open makes the file when it is missing, and keeps it from ordinary users.
func (l *logFile) open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.openLocked()
}

func (l *logFile) openLocked() error {
	if l.file != nil {
		return nil
	}
	if err := protectFile(l.path); err != nil {
		return err
	}
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
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
	if err := l.openLocked(); err != nil {
		return 0, err
	}
	if l.maxBytes > 0 && l.bytes+int64(len(record)) > l.maxBytes {
		// By path: on Windows a handle for appending may not shorten its file.
		if err := os.Truncate(l.path, 0); err != nil {
			return 0, err
		}
		l.bytes, l.torn = 0, false
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

// Close closes the file; a later record opens it again.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
