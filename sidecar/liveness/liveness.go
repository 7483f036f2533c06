package liveness

import (
	"context"
	"log/slog"
	"net"
	"sync"

	"github.com/csi-windows/csi-windows/sidecar"
)

// healthPath is where the kubelet asks.
const healthPath = "/healthz"

// Liveness probes a driver when it is asked to. It is a [sidecar.Component].
type Liveness struct {
	config  Config
	log     *slog.Logger
	dial    func(ctx context.Context) (net.Conn, error)
	metrics *meter

	mu sync.Mutex
	// running is the probe under way, nil when there is none.
	running *probe
	// failures are those since the last probe that ended well.
	failures int
}

// probe is one look at the driver.
type probe struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // once done is closed
}

func newLiveness(log *slog.Logger, config Config, dial func(context.Context) (net.Conn, error)) *Liveness {
	return &Liveness{config: config, log: log, dial: dial, metrics: newMeter()}
}

// Name is the component's name.
func (l *Liveness) Name() string { return sidecar.LivenessProbe }

// Check probes the driver, or waits for the probe under way. It returns nil
// when the driver is ready.
func (l *Liveness) Check(ctx context.Context) error {
	p := l.join()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join gives the probe under way, or begins one. It lasts no longer than the
// probe timeout whoever waits for it.
func (l *Liveness) join() *probe {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running != nil {
		return l.running
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.config.ProbeTimeout)
	p := &probe{cancel: cancel, done: make(chan struct{})}
	l.running = p
	go func() {
		defer cancel()
		err := l.ask(ctx)
		l.mu.Lock()
		l.report(err)
		p.err, l.running = err, nil
		l.mu.Unlock()
		close(p.done)
	}()
	return p
}

// report logs what has changed: the kubelet asks every few seconds, and a
// driver that crashes for hours must not fill the log. Called with the lock.
func (l *Liveness) report(err error) {
	switch {
	case err != nil:
		if l.failures++; l.failures == 1 {
			l.log.Error("The driver is not healthy", "error", err)
		} else {
			l.log.Debug("The driver is still not healthy", "failures", l.failures, "error", err)
		}
	case l.failures > 0:
		l.log.Info("The driver is healthy again", "failures", l.failures)
		l.failures = 0
	default:
		l.log.Debug("The driver is healthy")
	}
}

// end ends the probe under way.
func (l *Liveness) end() {
	l.mu.Lock()
	p := l.running
	l.mu.Unlock()
	if p != nil {
		p.cancel()
		<-p.done
	}
}
