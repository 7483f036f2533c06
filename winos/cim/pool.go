package cim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// closeTimeout bounds how long closing a session waits for calls in flight.
const closeTimeout = 5 * time.Second

var (
	errClosed = errors.New("cim: session is closed")
	// errOtherThread is what enter fails with when this goroutine's thread will not
	// do, but another one may. The goroutine takes the thread with it.
	errOtherThread = errors.New("cim: the thread is in another apartment")
)

// pool hands jobs to workers, which are goroutines with a state W that nobody
// else uses. The number of workers is bounded, but a job that goes on after its
// context has ended does not count: calls that hang leave room for the others.
type pool[W any] struct {
	// enter makes a worker's state in the worker's goroutine; leave, which is
	// called there too, ends it.
	enter func() (state W, leave func(), err error)
	max   int
	jobs  chan job[W]
	stop  chan struct{}
	once  sync.Once
	group sync.WaitGroup

	mu        sync.Mutex
	waiting   int // jobs for which no worker stood idle
	counted   int // workers without those whose job has outlived its context
	hung      int // the others
	hungTotal uint64
}

// job is run by a worker, or failed when that cannot enter.
type job[W any] struct {
	run     func(W)
	fail    func(error)
	waiting bool // it is among pool.waiting
}

// newPool starts a pool with one worker; it fails when that cannot enter.
func newPool[W any](max int, enter func() (W, func(), error)) (*pool[W], error) {
	p := &pool[W]{enter: enter, max: max, jobs: make(chan job[W]), stop: make(chan struct{})}
	started := make(chan error, 1)
	p.mu.Lock()
	p.addLocked(started)
	p.mu.Unlock()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// close ends the workers. A job that hangs is not waited for longer than closeTimeout.
func (p *pool[W]) close() error {
	p.once.Do(func() {
		p.mu.Lock() // no worker is added from here on
		defer p.mu.Unlock()
		close(p.stop)
	})
	ended := make(chan struct{})
	go func() {
		p.group.Wait()
		close(ended)
	}()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return errors.New("cim: a call in flight did not end")
	}
}

// start hands a job to an idle worker, or to a new one while there are not too
// many, and does not wait for its end. When ctx ends first it is not run. fail is
// called instead of run when the new worker cannot enter, and when run panics: on a
// worker nobody above would catch that, and one bad answer would end every call.
func (p *pool[W]) start(ctx context.Context, run func(W), fail func(error)) error {
	counted := job[W]{fail: fail, run: func(state W) {
		stop := context.AfterFunc(ctx, p.uncount)
		defer func() {
			if !stop() {
				p.recount()
			}
		}()
		defer func() {
			if cause := recover(); cause != nil {
				fail(fmt.Errorf("cim: panic: %v", cause))
			}
		}()
		run(state)
	}}
	if err := ctx.Err(); err != nil {
		return err // an idle worker would take it all the same
	}
	select {
	case <-p.stop:
		return errClosed
	case p.jobs <- counted:
		return nil
	default:
	}
	counted.waiting = true
	p.await()
	select {
	case <-ctx.Done():
		p.awaited()
		return ctx.Err()
	case <-p.stop:
		p.awaited()
		return errClosed
	case p.jobs <- counted:
		return nil
	}
}

// stats counts the workers.
func (p *pool[W]) stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{Workers: p.counted, Hung: p.hung, HungTotal: p.hungTotal}
}

// await counts a job in that waits for a worker, and adds one.
func (p *pool[W]) await() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting++
	p.growLocked()
}

// awaited counts a job out that waited for a worker.
func (p *pool[W]) awaited() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
}

// took notes that a worker has taken a job.
func (p *pool[W]) took(j job[W]) {
	if j.waiting {
		p.awaited()
	}
}

// growLocked adds a worker while the pool is open and there are not too many.
func (p *pool[W]) growLocked() {
	select {
	case <-p.stop:
	default:
		if p.counted < p.max {
			p.addLocked(nil)
		}
	}
}

// uncount gives the place of a worker whose job has outlived its context to
// another: somebody may be waiting for one.
func (p *pool[W]) uncount() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counted--
	p.hung++
	p.hungTotal++
	p.growLocked()
}

// recount is uncount taken back: the job has come to its end.
func (p *pool[W]) recount() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counted++
	p.hung--
}

// addLocked starts a worker and, if wanted, reports how its start went. One that
// is started for a job tells its failure to the first job that comes.
func (p *pool[W]) addLocked(started chan<- error) {
	p.counted++
	p.group.Go(func() {
		state, leave, err := p.enter()
		if errors.Is(err, errOtherThread) && p.replace(started) {
			return
		}
		if started != nil {
			started <- err
		}
		if err == nil {
			defer leave()
			p.serve(state)
			return
		}
		if started == nil {
			p.failOne(err)
			return
		}
		p.leave()
	})
}

// replace starts another worker in the place of this one, unless the pool is closed.
func (p *pool[W]) replace(started chan<- error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.stop:
		return false
	default:
	}
	p.counted--
	p.addLocked(started)
	return true
}

// leave gives a worker's place to another when a job waits for one.
func (p *pool[W]) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counted--
	if p.waiting > 0 {
		p.growLocked()
	}
}

// failOne is the end of a worker that cannot enter. Its place is free before the
// job's caller is told: whoever calls again then finds it.
func (p *pool[W]) failOne(err error) {
	select {
	case <-p.stop:
		p.leave()
	case job := <-p.jobs:
		p.took(job)
		p.leave()
		job.fail(err)
	}
}

// serve runs jobs until the pool is closed, or there are too many workers
// because one that hung has come back.
func (p *pool[W]) serve(state W) {
	for {
		select {
		case <-p.stop:
			return
		case job := <-p.jobs:
			p.took(job)
			job.run(state)
		}
		if p.leaveIfTooMany() {
			return
		}
	}
}

func (p *pool[W]) leaveIfTooMany() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counted <= p.max {
		return false
	}
	p.counted--
	return true
}
