package csiclient

import (
	"io/fs"
	"os"
	"sync"

	"github.com/csi-windows/csi-windows/internal/endpoint"
)

// Runs is how many runs of the driver have been connected to, as far as can be
// told: a driver that starts makes its socket anew, while one that only closes a
// connection, since it was idle or old, still has the same. It is 0 for a driver
// that is not watched; without a socket's file each connection counts as a run.
func (d *Driver) Runs() int {
	if d.link == nil {
		return 0
	}
	return d.link.runs.count()
}

// runs counts runs of a driver by the file of its socket.
type runs struct {
	mu   sync.Mutex
	n    int
	file fs.FileInfo // of the last connection; nil when it cannot be told
}

func (r *runs) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// connected takes what was at the socket's path before and after a connection was
// made. When it is not the same nobody knows which of the two was reached.
func (r *runs) connected(before, after fs.FileInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !isSame(before, after) {
		after = nil
	}
	if !isSame(r.file, after) {
		r.n++
	}
	r.file = after
}

// isSame compares the times too: a number of a file that is gone is given to the
// next one.
func isSame(one, other fs.FileInfo) bool {
	return one != nil && other != nil && os.SameFile(one, other) && one.ModTime().Equal(other.ModTime())
}

// socketFile looks at the file of a socket; nil where there is none.
func socketFile(at endpoint.Endpoint) fs.FileInfo {
	if at.Network != "unix" {
		return nil
	}
	info, err := os.Lstat(at.Address)
	if err != nil {
		return nil
	}
	// On Windows the identity of a file is read when it is first compared.
	os.SameFile(info, info)
	return info
}
