package tree

import "os"

// hostKind is what a host object is.
type hostKind uint8

const (
	hostFile hostKind = iota
	hostFolder
	hostLink
	hostSpecial // a device, pipe or socket: seen as an empty file, never opened
)

// hostStat describes a host object.
type hostStat struct {
	kind      hostKind
	sizeBytes int64
	id        [16]byte // device and inode, or volume serial and file index
	readOnly  bool
}

// The type hostObject, one per operating system, is an open host file, folder
// or link. Its methods take single host names and never follow a link. Errors
// are those of the host; hostCode makes system error numbers of them.

// names lists the folder that is open.
func (o *hostObject) names() ([]string, error) {
	return listAndClose(o.openList())
}

// listAndClose reads every name of an open folder.
func listAndClose(folder *os.File, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	return folder.Readdirnames(-1)
}
