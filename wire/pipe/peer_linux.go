package pipe

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// PeerPID returns the process id of whoever opened the connection, and false when
// it is not known. A process id is reused after its process has ended.
//
// Source: unix(7), SO_PEERCRED.
func PeerPID(conn net.Conn) (uint32, bool) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return 0, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, false
	}
	var credentials *unix.Ucred
	err = raw.Control(func(fd uintptr) {
		credentials, _ = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil || credentials == nil || credentials.Pid <= 0 {
		return 0, false
	}
	return uint32(credentials.Pid), true
}
