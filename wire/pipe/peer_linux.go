package pipe

import (
	"net"
	"os"
	"strconv"
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

// ProcessImage returns the path of a process's program, empty when it is not
// known. It is a hint for whoever reads a log, no proof: the process may have
// ended, and another have its id.
//
// Source: proc(5), /proc/pid/exe.
func ProcessImage(pid uint32) string {
	path, err := os.Readlink("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/exe")
	if err != nil {
		return ""
	}
	return path
}
