package csikit

import (
	"context"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-windows/csi-windows/node"
)

// Time limits of what is known of a node.
const (
	statsWaitMax = 2 * time.Second  // of one call, for the first answer
	statsFresh   = 30 * time.Second // an answer that young is not asked for again
	statsCallMax = 20 * time.Second // given to the node
)

// statsKnown remembers whether the node can tell the sizes of volumes. The node is
// asked by one call at a time; while it is asked again the last answer stands, for a
// csi-proxy is seldom replaced by one that can do less.
type statsKnown struct {
	node    node.Node
	checker StatsChecker

	mutex    sync.Mutex
	asking   chan struct{} // closed when the question under way is over; nil when none is
	can      bool          // the last answer; false until there is one
	answered time.Time
}

// newStatsKnown is nil when a backend makes no difference between nodes.
func newStatsKnown(backend NodeBackend, n node.Node) *statsKnown {
	checker, ok := backend.(StatsChecker)
	if !ok {
		return nil
	}
	return &statsKnown{node: n, checker: checker}
}

// get waits for the first answer, but not for long.
func (s *statsKnown) get(ctx context.Context) bool {
	asking := s.start()
	if asking != nil {
		ctx, cancel := context.WithTimeout(ctx, statsWaitMax)
		defer cancel()
		select {
		case <-asking:
		case <-ctx.Done():
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.can
}

// start asks, unless somebody does, or has just done. It returns what the first answer
// is waited for with.
func (s *statsKnown) start() (first chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.asking == nil && (s.answered.IsZero() || time.Since(s.answered) >= statsFresh) {
		s.asking = make(chan struct{})
		go s.ask(s.asking)
	}
	if s.answered.IsZero() {
		return s.asking
	}
	return nil
}

func (s *statsKnown) ask(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), statsCallMax)
	defer cancel()
	can := false
	err := protect(func() (any, error) {
		info, err := s.node.Info(ctx)
		can = err == nil && s.checker.CanStat(info)
		return nil, err
	}).err
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.asking = nil
	close(done)
	if err == nil {
		s.can, s.answered = can, time.Now()
	}
}

// NodeGetCapabilities says what the node can do with volumes of this backend.
func (s *nodeServer) NodeGetCapabilities(ctx context.Context, r *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	answer, err := s.DefaultNode.NodeGetCapabilities(ctx, r)
	if err != nil || s.stats == nil || s.stats.get(ctx) {
		return answer, err
	}
	known := &csi.NodeGetCapabilitiesResponse{}
	for _, capability := range answer.GetCapabilities() {
		if capability.GetRpc().GetType() != csi.NodeServiceCapability_RPC_GET_VOLUME_STATS {
			known.Capabilities = append(known.Capabilities, capability)
		}
	}
	return known, nil
}
