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

// ProcessImage returns the path of a process's program, empty when it is not
// known. It is a hint for whoever reads a log, no proof: the process may have
// ended, and another have its id.
//
// Source: QueryFullProcessImageNameW, Windows API.
func ProcessImage(pid uint32) string {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return ""
	}
	defer func() { _ = windows.CloseHandle(process) }()
	// Nearly every path fits into the first; none is longer than the second.
	for _, units := range []uint32{windows.MAX_PATH, windows.MAX_LONG_PATH} {
		path := make([]uint16, units)
		if err := windows.QueryFullProcessImageName(process, 0, &path[0], &units); err == nil {
			return windows.UTF16ToString(path[:units])
		}
	}
	return ""
}
