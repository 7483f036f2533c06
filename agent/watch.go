package agent

import (
	"context"
	"sync"
	"time"
)

// watchInterval is how often the contexts of waiting callers are looked at, and
// so how late a caller may learn that its time is up.
const watchInterval = 5 * time.Millisecond

// watch wakes callers whose context ends before their job does. It looks at all
// of them once in a while: nearly every call is over by then, and a timer and a
// second channel to wait on for each would be a good part of what it costs.
type watch struct {
	mu      sync.Mutex
	waiting map[chan<- struct{}]context.Context
	looking bool // a look is due
}

func newWatch() *watch { return &watch{waiting: map[chan<- struct{}]context.Context{}} }

// add has something sent to wake, which must have room for it, once ctx has ended.
func (w *watch) add(ctx context.Context, wake chan<- struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[wake] = ctx
	if !w.looking {
		w.looking = true
		time.AfterFunc(watchInterval, w.look)
	}
}

func (w *watch) remove(wake chan<- struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, wake)
}

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for wake, ctx := range w.waiting {
		if ctx.Err() != nil {
			wake <- struct{}{}
			delete(w.waiting, wake)
		}
	}
	w.looking = len(w.waiting) > 0
	if w.looking {
		time.AfterFunc(watchInterval, w.look)
	}
}
