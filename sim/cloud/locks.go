package cloud

import (
	"context"
	"slices"
	"sync"
)

// locks are locks by key: an operation on one disk waits for none on another. A
// wait ends with its context.
type locks struct {
	mu   sync.Mutex
	held map[string]*held
}

// held is a lock that somebody has or waits for.
type held struct {
	free  chan struct{} // holds one token while nobody has the lock
	users int
}

// lock takes the locks of all keys, in one order whoever asks, so that two can
// never wait for one another.
func (l *locks) lock(ctx context.Context, keys ...string) (unlock func(), err error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	for i, key := range keys {
		if err := l.lockOne(ctx, key); err != nil {
			l.unlock(keys[:i])
			return nil, err
		}
	}
	return func() { l.unlock(keys) }, nil
}

func (l *locks) lockOne(ctx context.Context, key string) error {
	l.mu.Lock()
	h := l.held[key]
	if h == nil {
		h = &held{free: make(chan struct{}, 1)}
		h.free <- struct{}{}
		l.held[key] = h
	}
	h.users++
	l.mu.Unlock()
	select {
	case <-h.free:
		return nil
	case <-ctx.Done():
		l.leave(key, h)
		return ctx.Err()
	}
}

func (l *locks) unlock(keys []string) {
	for _, key := range keys {
		l.mu.Lock()
		h := l.held[key]
		l.mu.Unlock()
		h.free <- struct{}{}
		l.leave(key, h)
	}
}

func (l *locks) leave(key string, h *held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(l.held, key)
	}
}

// Keys of the locks. A name is locked before the disks that are worked on.
func diskKey(id string) string         { return "id " + id }
func nameKey(kind, name string) string { return "name " + kind + " " + name }
