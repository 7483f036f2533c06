package provisioner

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// clockSkewMax is how far the clocks of API server and process may be
	// apart before a claim's age is misjudged.
	clockSkewMax = 30 * time.Second
	// memoryMax is how many provisioned claims are remembered.
	memoryMax = 4096
)

// memory knows whether a claim in the cache can be trusted to lack a volume.
// A cache may be old: the claim may have got its volume and be deleted with
// it. The API server has to be asked unless nobody but this run can have made
// the volume, and this run would know.
type memory struct {
	// leading is when this run began.
	leading time.Time

	mu sync.Mutex
	// horizon is the youngest claim that may have been forgotten.
	horizon time.Time
	made    map[types.UID]time.Time
	order   []types.UID
}

func newMemory(leading time.Time) *memory {
	return &memory{leading: leading, made: map[types.UID]time.Time{}}
}

// add remembers that a claim made at that time has got its volume.
func (m *memory) add(uid types.UID, created time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.made[uid]; known {
		return
	}
	m.made[uid] = created
	m.order = append(m.order, uid)
	if len(m.order) <= memoryMax {
		return
	}
	oldest := m.order[0]
	m.order = m.order[1:]
	when := m.made[oldest]
	delete(m.made, oldest)
	if when.After(m.horizon) {
		m.horizon = when
	}
}

// doubtful reports whether only the API server can tell that the claim, which
// has no volume in the cache, still exists and has none.
func (m *memory) doubtful(claim *v1.PersistentVolumeClaim) bool {
	created := claim.CreationTimestamp.Time
	m.mu.Lock()
	defer m.mu.Unlock()
	_, made := m.made[claim.UID]
	return made || !created.After(m.horizon) || !created.After(m.leading.Add(clockSkewMax))
}
