package kittest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
)

// Node is a node.Node in memory. It keeps the rules of the contract and has no disks:
// whatever is staged exists. It is safe for concurrent use.
type Node struct {
	// Before, when set, is called at the start of every task, with the name of the
	// method and the volume. Its error is the task's, and should be a *host.Error. It is
	// set before the first call.
	Before func(ctx context.Context, method, volumeID string) error

	mutex     sync.Mutex
	staged    map[string]node.StageRequest
	published map[string]node.PublishRequest
	sizes     map[string]int64
	requests  []any
}

// NewNode makes a node on which nothing is staged.
func NewNode() *Node {
	return &Node{
		staged: map[string]node.StageRequest{}, published: map[string]node.PublishRequest{}, sizes: map[string]int64{},
	}
}

// pathKey is what the spellings of a path have in common.
func pathKey(path string) string {
	key := strings.ToLower(strings.ReplaceAll(path, "/", `\`))
	if strings.HasPrefix(key, `\`) && !strings.HasPrefix(key, `\\`) {
		key = "c:" + key
	}
	return strings.TrimRight(key, `\`)
}

func failure(op, object string, kind host.Kind, format string, args ...any) error {
	return &host.Error{Op: op, Object: object, Kind: kind, Cause: fmt.Errorf(format, args...)}
}

// enter begins a task and notes its request. The caller releases the lock.
func (n *Node) enter(ctx context.Context, method, volumeID string, request any) (leave func(), err error) {
	if n.Before != nil {
		if err := n.Before(ctx, method, volumeID); err != nil {
			return nil, err
		}
	}
	n.mutex.Lock()
	if request != nil {
		n.requests = append(n.requests, request)
	}
	return n.mutex.Unlock, nil
}

// Requests are all requests so far, in order, as values of the types of package node.
func (n *Node) Requests() []any {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return append([]any(nil), n.requests...)
}

// Staged is the volume that is staged at a path, "" when none is.
func (n *Node) Staged(path string) string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.staged[pathKey(path)].VolumeID
}

// Published is the volume that is published at a path, "" when none is.
func (n *Node) Published(path string) string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.published[pathKey(path)].VolumeID
}

// InUse is how many paths have something staged or published.
func (n *Node) InUse() int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return len(n.staged) + len(n.published)
}

// Stage implements node.Node.
func (n *Node) Stage(ctx context.Context, r node.StageRequest) error {
	leave, err := n.enter(ctx, "Stage", r.VolumeID, r)
	if err != nil {
		return err
	}
	defer leave()
	found, ok := n.staged[pathKey(r.StagingPath)]
	if ok && (found.VolumeID != r.VolumeID || found.Access != r.Access) {
		return failure("Stage", r.VolumeID, host.KindExists, "volume %s is staged at %s, or is in another way", found.VolumeID, r.StagingPath)
	}
	n.staged[pathKey(r.StagingPath)] = r
	return nil
}

// Unstage implements node.Node.
func (n *Node) Unstage(ctx context.Context, r node.UnstageRequest) error {
	leave, err := n.enter(ctx, "Unstage", r.VolumeID, r)
	if err != nil {
		return err
	}
	defer leave()
	delete(n.staged, pathKey(r.StagingPath))
	return nil
}

// Publish implements node.Node.
func (n *Node) Publish(ctx context.Context, r node.PublishRequest) error {
	leave, err := n.enter(ctx, "Publish", r.VolumeID, r)
	if err != nil {
		return err
	}
	defer leave()
	if n.staged[pathKey(r.StagingPath)].VolumeID != r.VolumeID {
		return failure("Publish", r.VolumeID, host.KindPrecondition, "it is not staged at %s", r.StagingPath)
	}
	for path, other := range n.published {
		switch {
		case path == pathKey(r.TargetPath) && (other.VolumeID != r.VolumeID || other.ReadOnly != r.ReadOnly):
			return failure("Publish", r.VolumeID, host.KindExists, "volume %s is published at %s, or is in another way", other.VolumeID, path)
		case path != pathKey(r.TargetPath) && other.VolumeID == r.VolumeID && r.Access.SingleWriter:
			return failure("Publish", r.VolumeID, host.KindPrecondition, "it is published at %s, and may be at one path only", path)
		}
	}
	n.published[pathKey(r.TargetPath)] = r
	return nil
}

// Unpublish implements node.Node.
func (n *Node) Unpublish(ctx context.Context, r node.UnpublishRequest) error {
	leave, err := n.enter(ctx, "Unpublish", r.VolumeID, r)
	if err != nil {
		return err
	}
	defer leave()
	delete(n.published, pathKey(r.TargetPath))
	return nil
}

// at returns the volume at a path.
func (n *Node) at(op, path string) (volumeID string, err error) {
	for _, id := range []string{n.staged[pathKey(path)].VolumeID, n.published[pathKey(path)].VolumeID} {
		if id != "" {
			return id, nil
		}
	}
	return "", failure(op, path, host.KindNotFound, "nothing is there")
}

// Expand implements node.Node. The disk is as large as is asked for.
func (n *Node) Expand(ctx context.Context, r node.ExpandRequest) (node.ExpandResult, error) {
	leave, err := n.enter(ctx, "Expand", r.VolumeID, r)
	if err != nil {
		return node.ExpandResult{}, err
	}
	defer leave()
	id, err := n.at("Expand", r.Path)
	if err != nil {
		return node.ExpandResult{}, err
	}
	n.sizes[id] = max(n.sizes[id], r.RequiredBytes)
	if r.LimitBytes > 0 && n.sizes[id] > r.LimitBytes {
		return node.ExpandResult{}, failure("Expand", id, host.KindInvalid, "it has %d bytes, the limit is %d", n.sizes[id], r.LimitBytes)
	}
	return node.ExpandResult{CapacityBytes: n.sizes[id]}, nil
}

// Stats implements node.Node.
func (n *Node) Stats(ctx context.Context, r node.StatsRequest) (node.Stats, error) {
	leave, err := n.enter(ctx, "Stats", r.VolumeID, r)
	if err != nil {
		return node.Stats{}, err
	}
	defer leave()
	id, err := n.at("Stats", r.Path)
	if err != nil {
		return node.Stats{}, err
	}
	total := max(n.sizes[id], VolumeBytesMin)
	return node.Stats{TotalBytes: total, UsedBytes: total / 4, AvailableBytes: total - total/4}, nil
}

// Health implements node.Node: nothing is ever wrong.
func (n *Node) Health(ctx context.Context, r node.HealthRequest) (node.Health, error) {
	leave, err := n.enter(ctx, "Health", r.VolumeID, r)
	if err != nil {
		return node.Health{}, err
	}
	defer leave()
	return node.Health{}, nil
}

// Info implements node.Node.
func (n *Node) Info(ctx context.Context) (node.Info, error) {
	leave, err := n.enter(ctx, "Info", "", nil)
	if err != nil {
		return node.Info{}, err
	}
	defer leave()
	return node.Info{BIOSSerialNumber: "kittest"}, nil
}
