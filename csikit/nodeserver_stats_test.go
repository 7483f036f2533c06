package csikit_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/csikit/kittest"
	"github.com/csi-windows/csi-windows/node"
)

// statsBackend can tell sizes where GetPathStats is there.
type statsBackend struct{ *kittest.Backend }

func (statsBackend) CanStat(info node.Info) bool { return !slices.Contains(info.Lacks, "GetPathStats") }

// infoNode says of itself what the test says.
type infoNode struct {
	*kittest.Node
	info func(context.Context) (node.Info, error)
}

func (n infoNode) Info(ctx context.Context) (node.Info, error) { return n.info(ctx) }

func TestSizesArePromisedWhereTheyCanBeTold(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	for name, test := range map[string]struct {
		info func(context.Context) (node.Info, error)
		want bool
	}{
		"everything":    {func(context.Context) (node.Info, error) { return node.Info{}, nil }, true},
		"other lacks":   {func(context.Context) (node.Info, error) { return node.Info{Lacks: []string{"ListDisks"}}, nil }, true},
		"cannot":        {func(context.Context) (node.Info, error) { return node.Info{Lacks: []string{"GetPathStats"}}, nil }, false},
		"nobody there":  {func(context.Context) (node.Info, error) { return node.Info{}, errors.New("as the test says") }, false},
		"panics":        {func(context.Context) (node.Info, error) { panic("as the test says") }, false},
		"never answers": {func(context.Context) (node.Info, error) { <-release; return node.Info{}, nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := serveStats(t, test.info)
			start := time.Now()
			for range 2 {
				if got := promisesSizes(t, nodes); got != test.want {
					t.Errorf("sizes are promised: %t", got)
				}
			}
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("the capabilities took %s", took)
			}
		})
	}
}

// A csi-proxy that comes later is seen, and one answer serves many calls.
func TestSizesArePromisedLater(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	nodes := serveStats(t, func(context.Context) (node.Info, error) {
		if asked.Add(1) == 1 {
			return node.Info{}, errors.New("as the test says")
		}
		return node.Info{}, nil
	})
	for i := range 10 {
		if got := promisesSizes(t, nodes); got != (i > 0) {
			t.Errorf("call %d: sizes are promised: %t", i, got)
		}
	}
	if n := asked.Load(); n > 3 { // a busy machine may need more than the time an answer is good for
		t.Errorf("the node was asked %d times", n)
	}
}

func serveStats(t *testing.T, info func(context.Context) (node.Info, error)) csi.NodeClient {
	t.Helper()
	backend := statsBackend{kittest.NewBackend()}
	_, conn := kittest.Serve(t, csikit.Config{Backend: backend, NodeBackend: backend, Node: infoNode{kittest.NewNode(), info}})
	return csi.NewNodeClient(conn)
}

func promisesSizes(t *testing.T, nodes csi.NodeClient) bool {
	t.Helper()
	answer, err := nodes.NodeGetCapabilities(within(t), &csi.NodeGetCapabilitiesRequest{})
	expect(t, "capabilities", err, codes.OK)
	stages := false
	for _, c := range answer.GetCapabilities() {
		stages = stages || c.GetRpc().GetType() == csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME
	}
	if !stages {
		t.Errorf("capabilities %v", answer)
	}
	return slices.ContainsFunc(answer.GetCapabilities(), func(c *csi.NodeServiceCapability) bool {
		return c.GetRpc().GetType() == csi.NodeServiceCapability_RPC_GET_VOLUME_STATS
	})
}
