package stress

import (
	"context"
	"fmt"
	"sync"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
)

// order notes which task changes the node for which volume, and finds two tasks of
// one volume whose changes interleave.
type order struct {
	mu     sync.Mutex
	next   int
	latest map[string]int // the task that changed last, by volume
	wrong  []string
}

func newOrder() *order { return &order{latest: map[string]int{}} }

// task is one task of one volume.
type task struct {
	volumeID string
	number   int
	name     string
}

type taskKey struct{}

// begin gives a task a number. A later task has a higher one, but may well wait for
// an earlier one.
func (o *order) begin(ctx context.Context, name, volumeID string) context.Context {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next++
	return context.WithValue(ctx, taskKey{}, &task{volumeID: volumeID, number: o.next, name: name})
}

// change notes a change by the task of ctx. Once another task has changed something
// for the volume, an earlier one must not any more.
func (o *order) change(ctx context.Context, call string) {
	t, ok := ctx.Value(taskKey{}).(*task)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !ok:
		o.wrong = append(o.wrong, call+" outside of a task")
	case o.latest[t.volumeID] > t.number:
		o.wrong = append(o.wrong, fmt.Sprintf("%s of %s %s (task %d) after task %d", call, t.name, t.volumeID, t.number, o.latest[t.volumeID]))
	default:
		o.latest[t.volumeID] = t.number
	}
}

func (o *order) faults() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.wrong
}

// watchedNode numbers the tasks.
type watchedNode struct {
	node.Node
	order *order
}

func (w watchedNode) Stage(ctx context.Context, r node.StageRequest) error {
	return w.Node.Stage(w.order.begin(ctx, "Stage", r.VolumeID), r)
}

func (w watchedNode) Unstage(ctx context.Context, r node.UnstageRequest) error {
	return w.Node.Unstage(w.order.begin(ctx, "Unstage", r.VolumeID), r)
}

func (w watchedNode) Publish(ctx context.Context, r node.PublishRequest) error {
	return w.Node.Publish(w.order.begin(ctx, "Publish", r.VolumeID), r)
}

func (w watchedNode) Unpublish(ctx context.Context, r node.UnpublishRequest) error {
	return w.Node.Unpublish(w.order.begin(ctx, "Unpublish", r.VolumeID), r)
}

// Info asks whether there are certain methods, by calls that change nothing.
func (w watchedNode) Info(ctx context.Context) (node.Info, error) {
	return w.Node.Info(w.order.begin(ctx, "Info", "no volume"))
}

// watchedHost notes the changes.
type watchedHost struct {
	host.Host
	order *order
}

func (w watchedHost) PartitionDisk(ctx context.Context, diskNumber uint32) error {
	w.order.change(ctx, "PartitionDisk")
	return w.Host.PartitionDisk(ctx, diskNumber)
}

func (w watchedHost) FormatVolume(ctx context.Context, volumeID string) error {
	w.order.change(ctx, "FormatVolume")
	return w.Host.FormatVolume(ctx, volumeID)
}

func (w watchedHost) FormatVolumeWith(ctx context.Context, volumeID string, options host.FormatOptions) error {
	w.order.change(ctx, "FormatVolumeWith")
	return w.Host.FormatVolumeWith(ctx, volumeID, options)
}

func (w watchedHost) MountVolume(ctx context.Context, volumeID, path string) error {
	w.order.change(ctx, "MountVolume")
	return w.Host.MountVolume(ctx, volumeID, path)
}

func (w watchedHost) UnmountVolume(ctx context.Context, volumeID, path string) error {
	w.order.change(ctx, "UnmountVolume")
	return w.Host.UnmountVolume(ctx, volumeID, path)
}

func (w watchedHost) CreateSymlink(ctx context.Context, source, target string) error {
	w.order.change(ctx, "CreateSymlink")
	return w.Host.CreateSymlink(ctx, source, target)
}

func (w watchedHost) Rmdir(ctx context.Context, path string, force bool) error {
	w.order.change(ctx, "Rmdir")
	return w.Host.Rmdir(ctx, path, force)
}

func (w watchedHost) SetDiskState(ctx context.Context, diskNumber uint32, online bool) error {
	w.order.change(ctx, "SetDiskState")
	return w.Host.SetDiskState(ctx, diskNumber, online)
}
