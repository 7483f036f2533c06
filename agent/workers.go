package agent

import (
	"sync"
	"sync/atomic"
	"time"
)

// workerIdleMax is how long a worker without a job stays at the least; at the
// most it is twice that.
const workerIdleMax = 100 * time.Millisecond

// workers run jobs, each in a goroutine of its own. Goroutines that have just
// run one are used again: their stacks have grown to what a call needs, which
// costs more than the cheapest calls themselves. There is no limit here; the
// locks of the objects are one.
type workers struct {
	jobs chan func() // nil tells a worker to end
	used atomic.Int64

	mu       sync.Mutex
	alive    int
	reaping  bool  // a look at the idle ones is due
	usedThen int64 // used at the last look
}

func newWorkers() *workers { return &workers{jobs: make(chan func())} }

// start runs job and does not wait for it.
func (w *workers) start(job func()) {
	w.used.Add(1)
	select {
	case w.jobs <- job: // somebody stands idle
	default:
		w.hire()
		go w.work(job)
	}
}

// work runs a job, then others as long as they come.
func (w *workers) work(job func()) {
	for ; job != nil; job = <-w.jobs {
		job()
	}
	w.mu.Lock()
	w.alive--
	w.mu.Unlock()
}

func (w *workers) hire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.alive++
	if !w.reaping {
		w.reaping = true
		time.AfterFunc(workerIdleMax, w.reap)
	}
}

// reap ends the idle workers when there was no job for a while. One look in a
// while costs less than a timer for each worker and job.
func (w *workers) reap() {
	w.mu.Lock()
	used := w.used.Load()
	quiet := used == w.usedThen
	w.usedThen = used
	w.reaping = w.alive > 0
	if w.reaping {
		time.AfterFunc(workerIdleMax, w.reap)
	}
	w.mu.Unlock()
	for quiet {
		select {
		case w.jobs <- nil:
		default:
			return
		}
	}
}
