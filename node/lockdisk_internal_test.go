package node

import (
	"context"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

// A disk for whose lock a stage has waited is looked at again: it may be offline by
// now, and its number that of another disk.
func TestADiskIsLookedAtAgainAfterAWait(t *testing.T) {
	t.Parallel()
	for now, want := range map[uint32]host.Kind{1: 0, 2: host.KindBusy} {
		tasks := &Tasks{locks: newLockTable()}
		release, err := tasks.locks.acquire(t.Context(), "Unstage", diskKey(1))
		if err != nil {
			t.Fatal(err)
		}
		looks := 0
		find := func(context.Context) (disk, error) {
			looks++
			number := uint32(1)
			if looks > 1 {
				number = now
			}
			return disk{DiskInfo: host.DiskInfo{Number: number, Offline: looks > 1}}, nil
		}
		go func() {
			for tasks.locks.usersOf(diskKey(1)) < 2 {
				time.Sleep(time.Millisecond)
			}
			release()
		}()
		d, unlock, err := diskKind{tasks}.lockDisk(t.Context(), find)
		if want == 0 && (err != nil || !d.Offline) || want != 0 && !host.IsKind(err, want) {
			t.Errorf("the disk is %+v, %v", d, err)
		}
		if err == nil {
			unlock()
		}
		if n := len(tasks.locks.locks); n > 0 {
			t.Errorf("%d locks are left", n)
		}
	}
}

func (t *lockTable) usersOf(key lockKey) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.locks[key]; l != nil {
		return l.users
	}
	return 0
}
