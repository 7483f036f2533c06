package tree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// hostLinks is set where a reparse point is also a host symbolic link.
	hostLinks = true
	// hostFoldsCase is set where a host lookup may ignore case.
	hostFoldsCase = false
	// voidPath is a place where nothing is and nobody can make anything.
	voidPath = "/proc/no-such-volume/target"
)

// hostObject holds a descriptor that names the object and gives no access to
// its content, so opening a device or a pipe has no effect.
type hostObject struct {
	fd int
}

func openHostFolder(path string) (*hostObject, hostStat, error) {
	return openHost(unix.AT_FDCWD, path, unix.O_DIRECTORY)
}

func openHost(folder int, name string, flags int) (*hostObject, hostStat, error) {
	fd, err := ignoringInterrupts(func() (int, error) {
		return unix.Openat(folder, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
	})
	if err != nil {
		return nil, hostStat{}, err
	}
	object := &hostObject{fd: fd}
	stat, err := object.stat()
	if err != nil {
		object.close()
		return nil, hostStat{}, err
	}
	return object, stat, nil
}

// ignoringInterrupts repeats a call that a signal broke off.
func ignoringInterrupts(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func (o *hostObject) open(name string) (*hostObject, hostStat, error) {
	return openHost(o.fd, name, 0)
}

func (o *hostObject) stat() (hostStat, error) {
	var s unix.Stat_t
	if err := unix.Fstat(o.fd, &s); err != nil {
		return hostStat{}, err
	}
	return makeStat(&s), nil
}

// statChild describes a child without opening it.
func (o *hostObject) statChild(name string) (hostStat, error) {
	var s unix.Stat_t
	if err := unix.Fstatat(o.fd, name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return hostStat{}, err
	}
	return makeStat(&s), nil
}

func makeStat(s *unix.Stat_t) hostStat {
	stat := hostStat{kind: hostSpecial, readOnly: s.Mode&0o222 == 0}
	switch s.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		stat.kind, stat.sizeBytes = hostFile, s.Size
	case unix.S_IFDIR:
		stat.kind = hostFolder
	case unix.S_IFLNK:
		stat.kind = hostLink
	}
	binary.LittleEndian.PutUint64(stat.id[:8], s.Ino)
	binary.LittleEndian.PutUint64(stat.id[8:], uint64(s.Dev)) //nolint:unconvert // its width differs between architectures
	return stat
}

// openList opens the folder that is open for listing.
func (o *hostObject) openList() (*os.File, error) {
	fd, err := ignoringInterrupts(func() (int, error) {
		return unix.Openat(o.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "folder"), nil
}

func (o *hostObject) mkdir(name string) error {
	return unix.Mkdirat(o.fd, name, 0o755)
}

func (o *hostObject) create(name string) error {
	fd, err := ignoringInterrupts(func() (int, error) {
		return unix.Openat(o.fd, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	})
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func (o *hostObject) symlink(target, name string) error {
	return unix.Symlinkat(target, o.fd, name)
}

// readlink returns the text of the link that is open.
func (o *hostObject) readlink() (string, error) {
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(o.fd, "", buffer)
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

func (o *hostObject) remove(name string, folder bool) error {
	flags := 0
	if folder {
		flags = unix.AT_REMOVEDIR
	}
	return unix.Unlinkat(o.fd, name, flags)
}

func (o *hostObject) rename(name string, to *hostObject, newName string) error {
	return unix.Renameat(o.fd, name, to.fd, newName)
}

// openData opens the content of the file that is open, whatever its name is now.
func (o *hostObject) openData(write bool) (*os.File, error) {
	flags := os.O_RDONLY
	if write {
		flags = os.O_WRONLY
	}
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", o.fd), flags, 0)
}

// renamed notes where the object is now, which a descriptor need not know.
func (o *hostObject) renamed(_ *hostObject, _ string) {}

// prepareRemoval lets go of what would keep the name; a descriptor does not.
func (o *hostObject) prepareRemoval() {}

func (o *hostObject) close() { _ = unix.Close(o.fd) }
