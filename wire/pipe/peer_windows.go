package pipe

import (
	"net"

	"golang.org/x/sys/windows"
)

// PeerPID returns the process id of whoever opened the connection, and false when
// it is not known. A process id is reused after its process has ended.
//
// Source: GetNamedPipeClientProcessId, Windows API.
func PeerPID(conn net.Conn) (uint32, bool) {
	file, ok := conn.(interface{ Fd() uintptr })
	if !ok {
		return 0, false
	}
	var pid uint32
	if err := windows.GetNamedPipeClientProcessId(windows.Handle(file.Fd()), &pid); err != nil {
		return 0, false
	}
	return pid, true
}
