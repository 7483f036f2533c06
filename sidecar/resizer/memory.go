package resizer

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// memory is what this process knows of a claim that needs work, beyond what
// stands in its objects. Only the worker that has the claim's key uses it.
type memory struct {
	uid types.UID
	// claim and volume are what the API server answered last, for as long as
	// the caches are behind.
	claim  *v1.PersistentVolumeClaim
	volume *v1.PersistentVolume

	resize, modify attempt
	// inUse says that the driver refused to expand because of the volume's use.
	inUse bool
	// waits says that an event told what is waited for.
	waits string
}

// idle reports whether there is nothing to remember.
func (m *memory) idle() bool {
	return m.claim == nil && m.volume == nil && m.resize == attempt{} && m.modify == attempt{} && !m.inUse && m.waits == ""
}

// attempt is how the calls for one size or class went.
type attempt struct {
	target   string
	failures int
	// notBefore is when the next call may be made.
	notBefore time.Time
	// ended says that the last call failed for sure, and is not under way.
	ended bool
	// told says that an event told of the call's beginning.
	told bool
}

// wait is how long to wait before a call for a target.
func (a *attempt) wait(target string, now time.Time) time.Duration {
	if a.target != target {
		return 0
	}
	return max(0, a.notBefore.Sub(now))
}

// aim is when a target was chosen.
func (a *attempt) aim(target string) {
	if a.target != target {
		*a = attempt{target: target}
	}
}

// begin is before a call for a target.
func (a *attempt) begin(target string) {
	a.aim(target)
	a.ended = false
}

// fail is after a call that failed. It gives the delay before the next.
func (a *attempt) fail(now time.Time, ended bool, retryMin, retryMax time.Duration) time.Duration {
	delay := retryMax
	// Beyond 30 doublings every delay is the longest.
	if a.failures < 30 {
		delay = min(retryMax, retryMin<<a.failures)
	}
	a.failures++
	a.ended = ended
	a.notBefore = now.Add(delay)
	return delay
}

// memories are those of all claims by their keys.
type memories struct {
	mu  sync.Mutex
	all map[string]*memory
}

func newMemories() *memories { return &memories{all: map[string]*memory{}} }

// of is the memory of a claim; what was known of another of the same name is
// forgotten.
func (m *memories) of(key string, uid types.UID) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.all[key]
	if known == nil || known.uid != uid {
		known = &memory{uid: uid}
		m.all[key] = known
	}
	return known
}

func (m *memories) has(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[key] != nil
}

func (m *memories) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}

// newer reports whether an answer of the API server is newer than the cache's
// state of the same object. A version that is no number is of a test.
func newer(answer, cached metav1.Object) bool {
	if answer.GetUID() != cached.GetUID() {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(answer.GetResourceVersion(), cached.GetResourceVersion())
	if err != nil {
		return cached.GetResourceVersion() == ""
	}
	return order > 0
}
