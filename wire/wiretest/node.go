package wiretest

import (
	"context"

	"github.com/csi-windows/csi-windows/node"
)

// Node is a node.Node that records every request and answers with what its fields
// hold, like Host.
type Node struct {
	// Before, when set, runs at the start of each call; its error is the answer.
	Before func(ctx context.Context, call string) error

	Expanded   node.ExpandResult
	Sizes      node.Stats
	Conditions node.Health
	About      node.Info

	recorder
	requests []any
}

var _ node.Node = (*Node)(nil)

// Requests returns the requests so far, in order. Info has none.
func (n *Node) Requests() []any {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]any(nil), n.requests...)
}

// record notes the name of the call only: requests hold pointers, and secrets.
func (n *Node) record(ctx context.Context, op string, request any) error {
	n.mu.Lock()
	n.requests = append(n.requests, request)
	n.mu.Unlock()
	return n.note(ctx, op, n.Before)
}

// Stage implements node.Node.
func (n *Node) Stage(ctx context.Context, request node.StageRequest) error {
	return n.record(ctx, "Stage", request)
}

// Unstage implements node.Node.
func (n *Node) Unstage(ctx context.Context, request node.UnstageRequest) error {
	return n.record(ctx, "Unstage", request)
}

// Publish implements node.Node.
func (n *Node) Publish(ctx context.Context, request node.PublishRequest) error {
	return n.record(ctx, "Publish", request)
}

// Unpublish implements node.Node.
func (n *Node) Unpublish(ctx context.Context, request node.UnpublishRequest) error {
	return n.record(ctx, "Unpublish", request)
}

// Expand implements node.Node.
func (n *Node) Expand(ctx context.Context, request node.ExpandRequest) (node.ExpandResult, error) {
	return reply(n.Expanded, n.record(ctx, "Expand", request))
}

// Stats implements node.Node.
func (n *Node) Stats(ctx context.Context, request node.StatsRequest) (node.Stats, error) {
	return reply(n.Sizes, n.record(ctx, "Stats", request))
}

// Health implements node.Node.
func (n *Node) Health(ctx context.Context, request node.HealthRequest) (node.Health, error) {
	return reply(n.Conditions, n.record(ctx, "Health", request))
}

// Info implements node.Node.
func (n *Node) Info(ctx context.Context) (node.Info, error) {
	return reply(n.About, n.note(ctx, "Info", n.Before))
}
