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

	recorder
}

var _ host.Host = (*Host)(nil)

// recorder records calls.
type recorder struct {
	mu    sync.Mutex
	calls []string
}

// Calls returns what was asked so far, in order: the name of the operation and
// its arguments, texts in quotes, e.g. `Rmdir("C:\\x", true)`.
func (r *recorder) Calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.calls...)
}

// Reset forgets the calls.
func (r *recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// note records a call and runs what is to run before its answer.
func (r *recorder) note(ctx context.Context, call string, before func(context.Context, string) error) error {
	r.mu.Lock()
	r.calls = append(r.calls, call)
	r.mu.Unlock()
	if before != nil {
		return before(ctx, call)
	}
	return nil
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
	return h.note(ctx, Printed(op, args...), h.Before)
}

// reply is an answer and the error of record: no answer comes with an error.
func reply[T any](answer T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return answer, nil
}
