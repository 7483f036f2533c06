package agent

import "time"

// workerIdleMax is how long a worker without a job stays.
const workerIdleMax = 100 * time.Millisecond

// workers run jobs, each in a goroutine of its own. Goroutines that have just
// run one are used again: their stacks have grown to what a call needs, which
// costs more than the cheapest calls themselves. There is no limit here; the
// locks of the objects are one.
type workers struct {
	jobs chan func()
}

func newWorkers() workers { return workers{jobs: make(chan func())} }

// start runs job and does not wait for it.
func (w workers) start(job func()) {
	select {
	case w.jobs <- job: // somebody stands idle
	default:
		go w.work(job)
	}
}

// work runs a job, then others as long as they come.
func (w workers) work(job func()) {
	job()
	idle := time.NewTimer(workerIdleMax)
	defer idle.Stop()
	for {
		select {
		case job = <-w.jobs:
			job()
			idle.Reset(workerIdleMax)
		case <-idle.C:
			return
		}
	}
}
