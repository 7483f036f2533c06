package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

// Defaults of Options.
const (
	// DefaultFolder is the folder of the node tasks' own, where the kubelet keeps
	// those of plugins.
	DefaultFolder = `C:\var\lib\kubelet\plugins\csi-windows`
	// DefaultCallTimeout bounds a task whose caller sets no nearer deadline.
	DefaultCallTimeout = 2 * time.Minute
	// DefaultDiskTimeout is how long a stage waits for its disk to arrive.
	DefaultDiskTimeout = 30 * time.Second
	// DefaultForgetAfter is how long it is remembered that a csi-proxy lacks an
	// addition; it may have been replaced by a newer one.
	DefaultForgetAfter = 5 * time.Minute
)

// Options are the choices of a Tasks. The zero value has the defaults.
type Options struct {
	// Folder is the tasks' own folder for their holds (see hold.go). It must lie
	// below a working folder of the csi-proxy.
	Folder string
	// Logger gets what is worth knowing beside the errors; nil means none.
	Logger *slog.Logger
	// CallTimeout bounds every task.
	CallTimeout time.Duration
	// DiskTimeout bounds the wait for a disk to arrive.
	DiskTimeout time.Duration
	// ForgetAfter is how long a missing addition is remembered.
	ForgetAfter time.Duration
}

// Tasks is a Node over a host. It is safe for concurrent use.
type Tasks struct {
	host    host.Host
	options Options
	log     *slog.Logger
	locks   *lockTable
	lacks   *lacks
}

var _ Node = (*Tasks)(nil)

// New returns the tasks of the node behind h. It asks nothing of it. It fails
// when an option is out of its range, and names it.
func New(h host.Host, options Options) (*Tasks, error) {
	if h == nil {
		return nil, fmt.Errorf("node: no host given")
	}
	t := &Tasks{host: h, options: options, log: options.Logger, locks: newLockTable()}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if t.options.Folder == "" {
		t.options.Folder = DefaultFolder
	}
	for _, d := range []struct {
		field    string
		value    *time.Duration
		standard time.Duration
	}{
		{"CallTimeout", &t.options.CallTimeout, DefaultCallTimeout},
		{"DiskTimeout", &t.options.DiskTimeout, DefaultDiskTimeout},
		{"ForgetAfter", &t.options.ForgetAfter, DefaultForgetAfter},
	} {
		if *d.value == 0 {
			*d.value = d.standard
		}
		if *d.value < 0 {
			return nil, fmt.Errorf("node: Options.%s is negative: %v", d.field, *d.value)
		}
	}
	t.lacks = newLacks(t.options.ForgetAfter)
	return t, nil
}

// task is one call of Node on its way.
type task struct {
	op       string
	volumeID string
	paths    []string // the first is in errors
	problem  error    // of the request's Validate
	reads    bool     // changes nothing, so it needs no locks
}

// problemOf says what is wrong with the request of a task. At a path in the tasks' own
// folder, or above it, a volume would lie over the holds, or one of them be removed.
func (t *Tasks) problemOf(k task) error {
	if k.problem != nil || k.reads {
		return k.problem
	}
	for _, path := range k.paths {
		if isWithin(path, t.options.Folder) || isWithin(t.options.Folder, path) {
			return invalidRequest(k.op, k.volumeID, fmt.Errorf("path %s: the folder of the node tasks' own is in it or above it", host.PrintableText(path)))
		}
	}
	return nil
}

// run takes the locks of a task and carries it out within its time. Two tasks on
// one volume or one path never meet.
func (t *Tasks) run(ctx context.Context, k task, do func(context.Context) error) error {
	if err := t.problemOf(k); err != nil {
		return err
	}
	object := host.PrintableText(k.volumeID) + " at " + host.PrintableText(k.paths[0])
	ctx, cancel := context.WithTimeout(ctx, t.options.CallTimeout)
	defer cancel()
	keys := []lockKey{{lockVolume, k.volumeID}}
	for _, path := range k.paths {
		keys = append(keys, lockKey{lockPath, pathKey(path)})
	}
	if k.reads {
		return named(k.op, object, do(ctx))
	}
	release, err := t.locks.acquire(ctx, k.op, keys...)
	if err != nil {
		return named(k.op, object, err)
	}
	defer release()
	return named(k.op, object, do(ctx))
}
