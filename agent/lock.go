package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

// lockClass is the sort of object a lock stands for. Its order is the order in
// which one call takes its locks, so that no two calls wait for one another.
type lockClass uint8

const (
	lockNode      lockClass = iota // a listing or rescan of the whole node
	lockDisk                       // a disk, by number
	lockVolume                     // a volume, by id
	lockSMBServer                  // a file server: Windows keeps one set of credentials a server
	lockPortal                     // an iSCSI portal
	lockTarget                     // an iSCSI target
	lockInitiator                  // the initiator's own secret
	lockService                    // a Windows service
	lockPath                       // a path as it was written, folded
	lockPlace                      // a path as the OS names it once links and short names are resolved
)

// lockKey names one lock.
type lockKey struct {
	class  lockClass
	number uint32
	name   string
}

func compareKeys(a, b lockKey) int {
	switch {
	case a.class != b.class:
		return int(a.class) - int(b.class)
	case a.number < b.number:
		return -1
	case a.number > b.number:
		return 1
	default:
		return strings.Compare(a.name, b.name)
	}
}

// want is a lock a call needs. Shared holders see the object together; an
// exclusive one is alone.
type want struct {
	key    lockKey
	shared bool
}

func shared(class lockClass, number uint32, name string) want {
	return want{key: lockKey{class, number, name}, shared: true}
}

func exclusive(class lockClass, number uint32, name string) want {
	return want{key: lockKey{class, number, name}}
}

// lockTable holds the locks of all objects that are in use now, and no others.
type lockTable struct {
	mu    sync.Mutex
	locks map[lockKey]*lock
}

// lock is the state of one object. All fields belong to the table's mutex.
type lock struct {
	readers int
	writer  bool
	// stuck counts holders whose caller has given up. While there is one, no
	// reader is let in beside it either: it would get stuck as well.
	stuck  int
	holder string // the operation that took the lock last
	since  time.Time
	queue  []*waiter // first come, first served
}

type waiter struct {
	want    want
	op      string
	granted chan struct{}
}

func newLockTable() *lockTable {
	return &lockTable{locks: make(map[lockKey]*lock)}
}

// acquire takes the locks in canonical order for a call named op. When ctx ends
// first it takes none, and the error is KindBusy.
func (t *lockTable) acquire(ctx context.Context, op string, wants []want) error {
	if len(wants) > 1 {
		slices.SortFunc(wants, func(a, b want) int { return compareKeys(a.key, b.key) })
	}
	for i, w := range wants {
		if err := t.acquireOne(ctx, op, w); err != nil {
			t.release(wants[:i])
			return err
		}
	}
	return nil
}

func (t *lockTable) acquireOne(ctx context.Context, op string, w want) error {
	t.mu.Lock()
	l := t.locks[w.key]
	if l == nil {
		l = &lock{}
		t.locks[w.key] = l
	}
	if len(l.queue) == 0 && l.admits(w) {
		l.grant(op, w)
		t.mu.Unlock()
		return nil
	}
	entry := &waiter{want: w, op: op, granted: make(chan struct{})}
	l.queue = append(l.queue, entry)
	t.mu.Unlock()
	select {
	case <-entry.granted:
		return nil
	case <-ctx.Done():
		return t.giveUp(l, entry)
	}
}

// giveUp leaves the queue of a lock. A lock that was granted in the same
// instant is kept.
func (t *lockTable) giveUp(l *lock, entry *waiter) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(l.queue, entry)
	if at < 0 {
		return nil
	}
	l.queue = slices.Delete(l.queue, at, at+1)
	t.settle(entry.want.key, l)
	state := "held by " + l.holder
	if l.stuck > 0 {
		state = "stuck in " + l.holder
	}
	return refuse(host.KindBusy, "%s for %v", state, time.Since(l.since).Round(time.Millisecond))
}

// release gives locks back that acquire took.
func (t *lockTable) release(wants []want) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range wants {
		t.releaseOneLocked(w, false)
	}
}

func (t *lockTable) releaseOneLocked(w want, wasStuck bool) {
	l := t.locks[w.key]
	if w.shared {
		l.readers--
	} else {
		l.writer = false
	}
	if wasStuck {
		l.stuck--
	}
	t.settle(w.key, l)
}

// settle lets in whoever may go in now, and forgets a lock nobody needs.
func (t *lockTable) settle(key lockKey, l *lock) {
	for len(l.queue) > 0 && l.admits(l.queue[0].want) {
		first := l.queue[0]
		l.queue = l.queue[1:]
		l.grant(first.op, first.want)
		close(first.granted)
	}
	if l.readers == 0 && !l.writer && len(l.queue) == 0 {
		delete(t.locks, key)
	}
}

func (l *lock) admits(w want) bool {
	if w.shared {
		return !l.writer && l.stuck == 0
	}
	return !l.writer && l.readers == 0
}

func (l *lock) grant(op string, w want) {
	if w.shared {
		l.readers++
	} else {
		l.writer = true
	}
	if l.stuck == 0 {
		l.holder, l.since = op, time.Now()
	}
}
