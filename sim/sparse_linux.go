package sim

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// nextData finds the first run of data at or after at; start equals end at the
// end of the file.
func nextData(file *os.File, at, size int64) (start, end int64, err error) {
	start, err = unix.Seek(int(file.Fd()), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size, size, nil
	}
	if err != nil {
		return 0, 0, err
	}
	end, err = unix.Seek(int(file.Fd()), start, unix.SEEK_HOLE)
	return start, end, err
}
