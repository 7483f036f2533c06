package csikit

import (
	"context"
	"sync"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

// Time limits of probes. Liveness probes of Kubernetes wait a second by default.
const (
	probeWaitMax    = 400 * time.Millisecond // of all that one call waits for
	probeFresh      = 5 * time.Second        // an answer that young is not asked for again
	probeCallMax    = 20 * time.Second       // given to the one who is asked
	probeSilenceMax = 2 * time.Minute        // without an answer for that long, it counts as gone
)

// reachable asks somebody whether he is there. One question is under way at a time,
// however long it hangs and however often it is wanted. A late answer is no bad
// answer: what takes long is not gone, and a driver that is restarted for it loses
// the operations it has under way.
type reachable struct {
	ask func(ctx context.Context) error

	mutex    sync.Mutex
	asking   chan struct{} // closed when the question under way is answered; nil when none is
	good     bool          // the last answer
	answered time.Time     // when it came
}

func newReachable(ask func(ctx context.Context) error) *reachable { return &reachable{ask: ask} }

// start asks, unless somebody does, or has just done.
func (r *reachable) start() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.asking != nil || r.good && time.Since(r.answered) < probeFresh {
		return
	}
	done := make(chan struct{})
	r.asking = done
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), probeCallMax)
		defer cancel()
		err := protect(func() (any, error) { return nil, r.ask(ctx) }).err
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.asking = nil
		close(done)
		if isLate(err) || err != nil && ctx.Err() != nil {
			return
		}
		r.good, r.answered = err == nil, time.Now()
	}()
}

// isLate reports whether an error says no more than that somebody is slow.
func isLate(err error) bool {
	return err != nil && (host.IsKind(err, host.KindTimeout) || host.IsKind(err, host.KindBusy))
}

// ready waits for the question under way while ctx lasts and returns the last answer.
func (r *reachable) ready(ctx context.Context) bool {
	r.mutex.Lock()
	asking := r.asking
	r.mutex.Unlock()
	if asking != nil {
		select {
		case <-asking:
		case <-ctx.Done():
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.good && time.Since(r.answered) < probeSilenceMax
}
