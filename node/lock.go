package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/csi-windows/csi-windows/host"
)

// lockClass is the sort of object a lock stands for. Its order is the order in
// which one task takes its locks, so that no two tasks wait for one another.
type lockClass uint8

const (
	lockVolume lockClass = iota // a volume, by its CSI id
	lockPath                    // a path, folded
	lockTarget                  // an iSCSI target, by name
	lockShare                   // an SMB share, folded
	lockDisk                    // a disk, by number
)

// lockKey names one lock.
type lockKey struct {
	class lockClass
	name  string
}

func compareKeys(a, b lockKey) int {
	if a.class != b.class {
		return int(a.class) - int(b.class)
	}
	return strings.Compare(a.name, b.name)
}

// lockTable holds the locks of all objects that are in use now, and no others.
type lockTable struct {
	mu    sync.Mutex
	locks map[lockKey]*lock
}

// lock is one object in use. free holds one token while nobody has it.
type lock struct {
	free  chan struct{}
	users int    // holder and waiters; belongs to the table's mutex
	op    string // what the holder does; belongs to the table's mutex
}

func newLockTable() *lockTable { return &lockTable{locks: map[lockKey]*lock{}} }

// acquire takes locks for the task op and returns what gives them back. When ctx
// ends first it takes none, and the error is KindBusy.
func (t *lockTable) acquire(ctx context.Context, op string, keys ...lockKey) (release func(), err error) {
	release, _, err = t.acquireTelling(ctx, op, keys...)
	return release, err
}

// acquireTelling is acquire, and tells whether there was another holder first: what was
// known of the objects before may not be true any more.
func (t *lockTable) acquireTelling(ctx context.Context, op string, keys ...lockKey) (release func(), waited bool, err error) {
	slices.SortFunc(keys, compareKeys)
	keys = slices.Compact(keys)
	for i, key := range keys {
		queued, err := t.acquireOne(ctx, op, key)
		if err != nil {
			t.release(keys[:i])
			return nil, waited, err
		}
		waited = waited || queued
	}
	return func() { t.release(keys) }, waited, nil
}

func (t *lockTable) acquireOne(ctx context.Context, op string, key lockKey) (queued bool, err error) {
	t.mu.Lock()
	l := t.locks[key]
	if l == nil {
		l = &lock{free: make(chan struct{}, 1)}
		l.free <- struct{}{}
		t.locks[key] = l
	}
	queued = l.users > 0
	l.users++
	t.mu.Unlock()
	select {
	case <-l.free:
		t.mu.Lock()
		l.op = op
		t.mu.Unlock()
		return queued, nil
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		t.leaveLocked(key, l)
		return queued, &host.Error{Kind: host.KindBusy, Cause: fmt.Errorf("%s is under way: %w", l.op, ctx.Err())}
	}
}

func (t *lockTable) release(keys []lockKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range slices.Backward(keys) {
		l := t.locks[key]
		l.free <- struct{}{}
		t.leaveLocked(key, l)
	}
}

// leaveLocked forgets a lock nobody uses.
func (t *lockTable) leaveLocked(key lockKey, l *lock) {
	if l.users--; l.users == 0 {
		delete(t.locks, key)
	}
}
