package agent

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

func TestLocksAreFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	table := newLockTable()
	ctx := context.Background()
	w := exclusive(lockDisk, 1, "")
	if err := table.acquire(ctx, "first", []want{w}); err != nil {
		t.Fatal(err)
	}
	var order []int
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			if err := table.acquire(ctx, "later", []want{w}); err != nil {
				t.Error(err)
				return
			}
			order = append(order, i) // the lock guards it
			table.release([]want{w})
		})
		for { // wait until it stands in the queue
			table.mu.Lock()
			queued := len(table.locks[w.key].queue)
			table.mu.Unlock()
			if queued == i+1 {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	table.release([]want{w})
	all.Wait()
	for i, got := range order {
		if got != i {
			t.Fatalf("order is %v", order)
		}
	}
	if len(table.locks) != 0 {
		t.Errorf("%d locks left", len(table.locks))
	}
}

func TestLockReadersShareAndWritersDoNot(t *testing.T) {
	t.Parallel()
	table := newLockTable()
	read, write := shared(lockVolume, 0, "v"), exclusive(lockVolume, 0, "v")
	ctx := context.Background()
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	for range 2 {
		if err := table.acquire(ctx, "read", []want{read}); err != nil {
			t.Fatal(err)
		}
	}
	err := table.acquire(short, "write", []want{exclusive(lockDisk, 1, ""), write})
	if !host.IsKind(err, host.KindBusy) {
		t.Fatalf("a writer beside readers: %v", err)
	}
	if table.locks[lockKey{class: lockDisk, number: 1}] != nil {
		t.Error("a call that got nothing keeps a lock")
	}
	table.release([]want{read, read})
	if err := table.acquire(ctx, "write", []want{write}); err != nil {
		t.Fatal(err)
	}
	if err := table.acquire(short, "read", []want{read}); !host.IsKind(err, host.KindBusy) {
		t.Fatalf("a reader beside a writer: %v", err)
	}
	table.release([]want{write})
	if len(table.locks) != 0 {
		t.Errorf("%d locks left", len(table.locks))
	}
}

// Many calls on overlapping sets of objects end, and none sees another.
func TestLocksNeverDeadlock(t *testing.T) {
	t.Parallel()
	table := newLockTable()
	var owners [6]atomic.Int64
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			for range 200 {
				var wants []want
				for _, n := range random.Perm(len(owners))[:3] {
					wants = append(wants, exclusive(lockClass(n%2), uint32(n), ""))
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.IntN(300))*time.Microsecond)
				if err := table.acquire(ctx, "op", wants); err == nil {
					for _, w := range wants {
						if owners[w.key.number].Add(1) != 1 {
							t.Error("two owners")
						}
					}
					for _, w := range wants {
						owners[w.key.number].Add(-1)
					}
					table.release(wants)
				}
				cancel()
			}
		})
	}
	all.Wait()
	if len(table.locks) != 0 {
		t.Errorf("%d locks left", len(table.locks))
	}
}
