package wire

import (
	"context"
	"sync/atomic"
	"time"
)

// taskGrace is how long a node task may go on after its context has ended before
// it is reported. What it asks of the agent returns at that end, so all it does is
// to return.
const taskGrace = 10 * time.Second

// flight is a call in progress.
type flight struct {
	pipe  *pipeServer
	state atomic.Int32
}

// The states of a flight.
const (
	flying   = iota
	deserted // its client has gone
	landed
)

// leave notes that the client has gone, so that the call takes nobody's place,
// although it goes on.
func (f *flight) leave() {
	if f.state.CompareAndSwap(flying, deserted) {
		f.pipe.calls.Add(-1)
		f.pipe.hung.Add(1)
	}
}

func (f *flight) end() {
	if f.state.CompareAndSwap(flying, landed) {
		f.pipe.calls.Add(-1)
		return
	}
	f.pipe.hung.Add(-1)
}

// watchTask reports a node task that goes on long after its end, and gives back
// its place when nobody waits for it. client is the context that ends when the
// client goes. The caller calls stop when the task has returned.
func (f *flight) watchTask(client, bounded context.Context, m *method) (stop func()) {
	started, returned := time.Now(), make(chan struct{})
	report := func() {
		select {
		case <-returned:
			return
		case <-time.After(f.pipe.limits.taskGrace):
		}
		f.pipe.logger.Warn("node task does not end", "method", m.name, "running", time.Since(started))
		if client.Err() != nil {
			f.leave()
		}
	}
	unwatch := context.AfterFunc(bounded, report)
	return func() {
		close(returned)
		unwatch()
	}
}
