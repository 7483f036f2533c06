package node

import "context"

// Held is a lock a test has taken, as another task would.
type Held struct {
	// Release gives it back.
	Release func()
	// IsWanted reports whether a task waits for it.
	IsWanted func() bool
}

// HoldDisk takes the lock of a disk.
func (t *Tasks) HoldDisk(ctx context.Context, number uint32) (Held, error) {
	return t.hold(ctx, diskKey(number))
}

// HoldShare takes the lock of the share a path is in.
func (t *Tasks) HoldShare(ctx context.Context, path string) (Held, error) {
	share, err := parseShare("path", path)
	if err != nil {
		return Held{}, err
	}
	return t.hold(ctx, lockKey{lockShare, share.key()})
}

// HoldTarget takes the lock of an iSCSI target.
func (t *Tasks) HoldTarget(ctx context.Context, iqn string) (Held, error) {
	return t.hold(ctx, targetKey(iqn))
}

// DiskIsWanted reports whether a task waits for the lock of a disk that another task has.
func (t *Tasks) DiskIsWanted(number uint32) bool { return t.locks.usersOf(diskKey(number)) > 1 }

func (t *Tasks) hold(ctx context.Context, key lockKey) (Held, error) {
	release, err := t.locks.acquire(ctx, "Test", key)
	return Held{Release: release, IsWanted: func() bool { return t.locks.usersOf(key) > 1 }}, err
}
