// Package winos does on Windows what the agent asks of an operating system: the
// CIM classes of storage management, SMB and iSCSI, the control codes of disks
// and volumes, the mount manager, reparse points, the service manager. It is
// portable: what is Windows-only stands behind cim.Session and win32.API.
//
// What a control code or a volume call answers is asked that way; WMI, which is
// slower by orders, serves for what only it knows and for changes, so that
// Windows keeps its own view of the disks.
package winos

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// Options are the bounds of waiting. The zero value serves production.
type Options struct {
	// ArrivalTimeout is how long a new volume may take to appear after its
	// partition was made; 60 s when 0. The context can end it earlier.
	ArrivalTimeout time.Duration
	// PollInterval is the first pause between two looks, doubled up to 1 s; 10 ms when 0.
	PollInterval time.Duration
	// Retry bounds the repetition of WMI calls that fail for a moment.
	Retry cim.RetryPolicy
}

const (
	defaultArrivalTimeout = 60 * time.Second
	defaultPollInterval   = 10 * time.Millisecond
	longestPollInterval   = time.Second
)

// OS is a Windows node. It implements agent.OS, has no state of its own and is
// safe for concurrent use. It does not close what it was made of.
type OS struct {
	session cim.Session
	api     win32.API
	options Options
}

var _ agent.OS = (*OS)(nil)

// New returns the operating system behind a CIM session and the Windows API.
func New(session cim.Session, api win32.API, options Options) *OS {
	if options.ArrivalTimeout == 0 {
		options.ArrivalTimeout = defaultArrivalTimeout
	}
	if options.PollInterval == 0 {
		options.PollInterval = defaultPollInterval
	}
	return &OS{session: cim.Retrying(session, options.Retry), api: api, options: options}
}

// described is what every cim.Table says of itself.
type described interface {
	Class() string
	Namespace() string
}

// call runs a method of an object of a class. A code other than 0 is a
// *cim.ReturnError with its documented name.
func (o *OS) call(ctx context.Context, table described, path, method string, in cim.Values) (cim.Values, error) {
	out, err := cim.Call(ctx, o.session, table.Namespace(), table.Class(), path, method, in)
	var e *cim.ReturnError
	if errors.As(err, &e) {
		e.Name = meaningOfReturn(e.Class, e.Code).name
	}
	return out, err
}

// callStatic runs a static method of a class.
func (o *OS) callStatic(ctx context.Context, table described, method string, in cim.Values) (cim.Values, error) {
	return o.call(ctx, table, table.Class(), method, in)
}

// poll calls check with growing pauses until it is done, fails, or the time is
// up; then it returns what ended the wait.
func (o *OS) poll(ctx context.Context, check func() (done bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, o.options.ArrivalTimeout)
	defer cancel()
	pause := o.options.PollInterval
	for {
		done, err := check()
		if done || err != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		pause = min(2*pause, longestPollInterval)
	}
}

// withHandle opens an object, hands it to use, and closes it on every way out.
func (o *OS) withHandle(ctx context.Context, path string, open win32.Open, use func(win32.Handle) error) error {
	h, err := o.api.CreateFile(ctx, path, open)
	if err != nil {
		return err
	}
	err = use(h)
	if closed := o.api.CloseHandle(h); err == nil {
		err = closed
	}
	return err
}

// control sends a control code whose answer has a known size, and returns the
// bytes that came.
func (o *OS) control(ctx context.Context, h win32.Handle, code uint32, in []byte, outBytes int) ([]byte, error) {
	out := make([]byte, outBytes)
	n, err := o.api.DeviceIoControl(ctx, h, code, in, out)
	return out[:min(n, len(out))], err
}

// controlGrowing is control for answers of unknown size: it doubles the buffer
// while Windows says that it is too small.
func (o *OS) controlGrowing(ctx context.Context, h win32.Handle, code uint32, in []byte, outBytes int) ([]byte, error) {
	const limitBytes = 1 << 20
	for {
		out, err := o.control(ctx, h, code, in, outBytes)
		tooSmall := isWin32(err, win32.ErrInsufficientBuffer, win32.ErrMoreData)
		if !tooSmall || outBytes >= limitBytes {
			return out, err
		}
		outBytes *= 2
	}
}

// devicePath is the path that opens a volume as a device: its id without the
// final backslash, which would open its root folder.
func devicePath(volumeID string) string { return strings.TrimSuffix(volumeID, `\`) }
