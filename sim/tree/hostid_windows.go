package tree

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// hostID is the file index of an object. Source: GetFileInformationByHandle.
func hostID(root *os.Root, name string, _ os.FileInfo) (id [16]byte, err error) {
	file, err := root.Open(name)
	if err != nil {
		return id, err
	}
	defer func() { _ = file.Close() }()
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(file.Fd()), &info); err != nil {
		return id, err
	}
	binary.LittleEndian.PutUint32(id[0:], info.FileIndexLow)
	binary.LittleEndian.PutUint32(id[4:], info.FileIndexHigh)
	binary.LittleEndian.PutUint32(id[8:], info.VolumeSerialNumber)
	return id, nil
}

// errnoCode is the number itself.
func errnoCode(err error) (uint32, bool) {
	var errno syscall.Errno
	ok := errors.As(err, &errno) && errno < syscall.APPLICATION_ERROR
	return uint32(errno), ok
}
