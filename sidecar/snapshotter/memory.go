package snapshotter

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// memory is what is known of contents beside their objects, and may be lost
// with the process. What is in it is used by the handler of its content only.
type memory struct {
	mu  sync.Mutex
	all map[string]*known
}

// known is what is known of one content, the object of one uid.
type known struct {
	uid types.UID
	// newest is the object as the last write of it was answered.
	newest *content
	// sure: this process has seen the object as it really was, and knows of
	// its own writes since. What a cache shows may be from before another
	// process, or an earlier run, took the snapshot and removed it.
	sure bool
	// gone: the object is no more, whatever the cache says.
	gone bool
	// removed: the snapshot is no more.
	removed bool
	// looks counts how often the snapshot was not ready yet, and due is when
	// it is to be looked at again.
	looks int
	due   time.Time
	// blind: the driver refuses to tell of the snapshot.
	blind bool
	// told is the last event about the removal.
	told string
}

// of gives what is known of a content. An object of the same name with another
// uid is another content, of which nothing is known.
func (m *memory) of(name string, uid types.UID) *known {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.all[name]; k != nil && k.uid == uid {
		return k
	}
	if m.all == nil {
		m.all = map[string]*known{}
	}
	k := &known{uid: uid}
	m.all[name] = k
	return k
}

// forget drops what is known of a content that is gone.
func (m *memory) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, name)
}

// latest is the newer one of the cached state and that of the last write.
func (k *known) latest(cached *content) *content {
	if k.newest == nil {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(k.newest.meta.ResourceVersion, cached.meta.ResourceVersion)
	if err != nil || order <= 0 {
		k.newest = nil
		return cached
	}
	return k.newest
}

// again gives the delay before a snapshot that is not ready is looked at again,
// which doubles with each look.
func (k *known) again(now time.Time, delayMin, delayMax time.Duration) time.Duration {
	delay := delayMax
	if k.looks < 30 {
		delay = min(delayMin<<k.looks, delayMax)
	}
	k.looks++
	k.due = now.Add(delay)
	return delay
}
