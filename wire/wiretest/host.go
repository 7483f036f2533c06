// Package wiretest helps to test what speaks csi-proxy's protocol: a host that
// records what it is asked, and a server on a folder of its own.
package wiretest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/csi-windows/csi-windows/host"
)

// Host is a host.Host that records every call and answers with what its fields
// hold. Set the fields before the first call. The zero value answers with zero
// values and no error.
type Host struct {
	// Before, when set, runs at the start of each call; its error is the answer.
	Before func(ctx context.Context, call string) error

	Locations    map[uint32]host.DiskLocation
	IDs          map[uint32]host.DiskIDs
	DiskStats    host.DiskStats
	Online       bool
	Disks        []host.DiskInfo
	VolumeIDs    []string
	VolumeID     string // of a path
	DiskNumber   uint32 // of a volume
	Formatted    bool
	VolumeStats  host.VolumeStats
	Volumes      []host.VolumeInfo
	Mounts       []host.Mount
	Exists       bool // of a path
	Symlink      bool // of a path
	Link         host.LinkInfo
	Mappings     []host.SmbMapping
	IQNs         []string
	Portals      []host.TargetPortal
	TargetDisks  []uint32
	Targets      []host.TargetInfo
	SerialNumber string
	Service      host.ServiceInfo

	mu    sync.Mutex
	calls []string
}

var _ host.Host = (*Host)(nil)

// Calls returns what was asked so far, in order: the name of the operation and
// its arguments, texts in quotes, e.g. `Rmdir("C:\\x", true)`.
func (h *Host) Calls() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.calls...)
}

// Reset forgets the calls.
func (h *Host) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = nil
}

// Printed returns a call as Calls holds it.
func Printed(op string, args ...any) string {
	printed := make([]string, len(args))
	for i, arg := range args {
		printed[i] = fmt.Sprintf("%#v", arg)
		if text, ok := arg.(string); ok {
			printed[i] = fmt.Sprintf("%q", text)
		}
		if number, ok := arg.(uint32); ok {
			printed[i] = fmt.Sprint(number)
		}
	}
	return op + "(" + strings.Join(printed, ", ") + ")"
}

func (h *Host) record(ctx context.Context, op string, args ...any) error {
	call := Printed(op, args...)
	h.mu.Lock()
	h.calls = append(h.calls, call)
	h.mu.Unlock()
	if h.Before != nil {
		return h.Before(ctx, call)
	}
	return nil
}

// reply is an answer and the error of record: no answer comes with an error.
func reply[T any](answer T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return answer, nil
}
