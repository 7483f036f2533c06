package attacher

import (
	"context"
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// attachment is a volume that may be published to a node: enough to unpublish
// it even when every object that told so is gone.
type attachment struct {
	uid                  types.UID // of the VolumeAttachment
	volumeName, nodeName string    // in Kubernetes; the volume's is "" if it is inline
	volumeID, nodeID     string    // for the driver
	secret               *v1.SecretReference
	isMigrated           bool
	// isWritten says that the status has been told, even if the cache lags.
	isWritten bool
}

// isAt reports whether two attachments are the same for the driver.
func (a attachment) isAt(b attachment) bool { return a.volumeID == b.volumeID && a.nodeID == b.nodeID }

// isOf reports whether a VolumeAttachment asks for the attachment, be it one
// that was made anew.
func (a attachment) isOf(va *storagev1.VolumeAttachment) bool {
	return a.volumeName != "" && a.volumeName == volumeName(va) && a.nodeName == va.Spec.NodeName
}

// memory is what a run knows beside the caches.
type memory struct {
	mu sync.Mutex
	// held are the volumes that may be attached, by the name of their
	// VolumeAttachment. One is there from before the first call to publish it
	// until a call to unpublish it succeeded.
	held map[string]attachment
	// verdicts are what the last listing said of an attachment, by its name,
	// until it is worked on.
	verdicts map[string]verdict
	// lost are the attachments to nodes that are gone: they wait for the node.
	lost map[types.UID]bool
	// misses are the attachments that the driver's listings lack.
	misses map[types.UID]miss
	// past are the versions of an attachment that its last status was decided on.
	past map[types.UID][]string
}

// verdict is that the driver does not list a volume as published.
type verdict struct {
	uid types.UID
	// isFirst says that the listing before had it, or that there was none.
	isFirst bool
}

// miss counts how often an attachment was missing, and the listings until it
// is to be minded again.
type miss struct{ count, skip int }

func newMemory() *memory {
	return &memory{
		held: map[string]attachment{}, verdicts: map[string]verdict{},
		lost: map[types.UID]bool{}, misses: map[types.UID]miss{}, past: map[types.UID][]string{},
	}
}

func (m *memory) hold(name string, a attachment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[name] = a
}

// written says that the status has what the driver answered.
func (m *memory) written(name string, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, ok := m.held[name]; ok && a.uid == uid {
		a.isWritten = true
		m.held[name] = a
	}
}

// outdate says that a new status was written, which was decided on the versions
// given. A write that changed nothing has not made them the past.
func (m *memory) outdate(written *storagev1.VolumeAttachment, versions ...string) {
	if slices.Contains(versions, written.ResourceVersion) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.past[written.UID] = versions
}

// isPast reports whether the cache is behind the status that was written last.
func (m *memory) isPast(va *storagev1.VolumeAttachment) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.past[va.UID], va.ResourceVersion)
}

func (m *memory) release(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, name)
}

func (m *memory) holding(name string) (attachment, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.held[name]
	return a, ok
}

// isShared reports whether another VolumeAttachment holds the same volume on
// the same node.
func (m *memory) isShared(name string, a attachment) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other, held := range m.held {
		if other != name && held.isAt(a) {
			return true
		}
	}
	return false
}

func (m *memory) judge(name string, v verdict) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.verdicts[name] = v
}

// takeVerdict gives the verdict on an attachment, once.
func (m *memory) takeVerdict(name string, uid types.UID) (verdict, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.verdicts[name]
	delete(m.verdicts, name)
	return v, ok && v.uid == uid
}

func (m *memory) setLost(uid types.UID, isLost bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if isLost {
		m.lost[uid] = true
	} else {
		delete(m.lost, uid)
	}
}

func (m *memory) isLost(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost[uid]
}

// listed says that a listing had the attachment.
func (m *memory) listed(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.misses, uid)
}

// skipMax bounds how many listings pass before an attachment that they go on
// to lack is minded again.
const skipMax = 31

// missed says that a listing lacked the attachment, and reports whether to
// mind: ever less often, since a driver may never list what it attached.
func (m *memory) missed(uid types.UID) (isFirst, mind bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.misses[uid]
	if was.skip > 0 {
		m.misses[uid] = miss{was.count, was.skip - 1}
		return false, false
	}
	count := min(was.count+1, 5)
	m.misses[uid] = miss{count, min(1<<count-1, skipMax)}
	return was.count == 0, true
}

// forget drops what is known of an attachment that is gone from the API
// server, but not that its volume may still be attached.
func (m *memory) forget(name string, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.verdicts[name]; ok && v.uid == uid {
		delete(m.verdicts, name)
	}
	delete(m.lost, uid)
	delete(m.misses, uid)
	delete(m.past, uid)
}

// locks keeps calls for one volume and node apart, whichever objects ask for
// them.
type locks struct {
	mu    sync.Mutex
	taken map[string]chan struct{} // closed when the lock is free again
}

func newLocks() *locks { return &locks{taken: map[string]chan struct{}{}} }

// lock waits until no one else has the lock of a volume and a node.
func (l *locks) lock(ctx context.Context, a attachment) (unlock func(), err error) {
	key := a.volumeID + "\x00" + a.nodeID
	for {
		l.mu.Lock()
		busy, isTaken := l.taken[key]
		if !isTaken {
			free := make(chan struct{})
			l.taken[key] = free
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.taken, key)
				close(free)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another call on volume %q and node %q: %w", a.volumeID, a.nodeID, context.Cause(ctx))
		}
	}
}
