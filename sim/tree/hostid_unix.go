//go:build unix && !linux

package tree

import (
	"encoding/binary"
	"os"
	"syscall"
)

// hostID is the inode of an object.
func hostID(_ *os.Root, _ string, info os.FileInfo) (id [16]byte, _ error) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		binary.LittleEndian.PutUint64(id[:8], uint64(stat.Ino))
		binary.LittleEndian.PutUint64(id[8:], uint64(stat.Dev))
	}
	return id, nil
}
