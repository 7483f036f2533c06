package agent

import (
	"context"
	"sync"
	"time"
)

// watchInterval is how often the contexts of calls on their way are looked at,
// and so how late a caller may learn that its time is up.
const watchInterval = 5 * time.Millisecond

// watch notices calls whose context ends before their job does. It looks at all
// of them once in a while: nearly every call is over by then, and a timer and a
// second channel to wait on for each would be a good part of what it costs.
type watch struct {
	mu      sync.Mutex
	calls   map[*call]watched
	looking bool // a look is due
}

// watched is a call on its way: late is called once when ctx has ended. It must
// not block.
type watched struct {
	ctx  context.Context
	late func()
}

func newWatch() *watch { return &watch{calls: map[*call]watched{}} }

func (w *watch) add(ctx context.Context, c *call, late func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[c] = watched{ctx, late}
	if !w.looking {
		w.looking = true
		time.AfterFunc(watchInterval, w.look)
	}
}

// remove ends the watch: late is not called from here on.
func (w *watch) remove(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, c)
}

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, one := range w.calls {
		if one.ctx.Err() != nil {
			delete(w.calls, c)
			one.late()
		}
	}
	w.looking = len(w.calls) > 0
	if w.looking {
		time.AfterFunc(watchInterval, w.look)
	}
}
