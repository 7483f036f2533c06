package node

import (
	"slices"
	"sync"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

// lacks remembers which additions of the contract the csi-proxy cannot do, so
// that each is asked for once and not at every task.
type lacks struct {
	forgetAfter time.Duration
	mu          sync.Mutex
	since       map[string]time.Time // by method name of host.Host
}

func newLacks(forgetAfter time.Duration) *lacks {
	return &lacks{forgetAfter: forgetAfter, since: map[string]time.Time{}}
}

// knows reports whether an addition is worth asking for.
func (t *Tasks) knows(method string) bool {
	l := t.lacks
	l.mu.Lock()
	defer l.mu.Unlock()
	since, lacking := l.since[method]
	if lacking && time.Since(since) >= l.forgetAfter {
		delete(l.since, method)
		lacking = false
	}
	return !lacking
}

// lacking reports whether err says that the host has no such method, and
// remembers it.
func (t *Tasks) lacking(method string, err error) bool {
	if err == nil || !host.IsKind(err, host.KindUnsupported) {
		return false
	}
	l := t.lacks
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.since[method]; !known {
		t.log.Info("the csi-proxy of this node lacks an addition; doing without", "method", method)
	}
	l.since[method] = time.Now()
	return true
}

// lackingMethods returns what is known to be missing, sorted.
func (t *Tasks) lackingMethods() []string {
	l := t.lacks
	l.mu.Lock()
	defer l.mu.Unlock()
	var methods []string
	for method := range l.since {
		methods = append(methods, method)
	}
	slices.Sort(methods)
	return methods
}
