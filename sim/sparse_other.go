//go:build !linux

package sim

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// nextData finds the next MiB that is not zero; start equals end at the end of
// the file.
func nextData(file *os.File, at, size int64) (start, end int64, err error) {
	const step = 1 << 20
	block, zero := make([]byte, step), make([]byte, step)
	for ; at < size; at += step {
		n, err := file.ReadAt(block, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		if !bytes.Equal(block[:n], zero[:n]) {
			return at, at + int64(n), nil
		}
	}
	return size, size, nil
}
