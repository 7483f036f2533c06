package registrar

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// watchFolder tells what is in a folder, and then what is made and removed
// there, until stop is called.
func watchFolder(t *testing.T, folder string) (events <-chan fileEvent, stop func()) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	watch := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, folder, unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVE); err != nil {
		t.Fatal(err)
	}
	told := make(chan fileEvent, 1000)
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		told <- fileEvent{path: filepath.Join(folder, entry.Name())}
	}
	go func() {
		defer close(told)
		buffer := make([]byte, 1<<14)
		for {
			n, err := watch.Read(buffer)
			if err != nil {
				return
			}
			for rest := buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
				mask := binary.NativeEndian.Uint32(rest[4:])
				nameEnd := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
				name := string(bytes.TrimRight(rest[unix.SizeofInotifyEvent:nameEnd], "\x00"))
				told <- fileEvent{filepath.Join(folder, name), mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0}
				rest = rest[nameEnd:]
			}
		}
	}()
	return told, func() { _ = watch.Close() }
}
