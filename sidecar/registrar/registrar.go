package registrar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/csi-windows/csi-windows/sidecar"
)

var (
	errRefused = errors.New("the kubelet did not register the driver")
	errSilent  = errors.New("the kubelet did not register the driver in time")
)

// Registrar registers the driver of its environment. It is a
// [sidecar.Component].
type Registrar struct {
	env    *sidecar.Env
	config Config
	log    *slog.Logger
	// current is the socket the kubelet may call, for the health.
	current atomic.Pointer[socket]
}

// Name is the component's name.
func (r *Registrar) Name() string { return sidecar.Registrar }

// Run registers the driver, and registers it again when the kubelet or the
// driver has to be met anew. It returns nil when ctx ends, and an error when
// the kubelet refuses the driver or does not call in time.
func (r *Registrar) Run(ctx context.Context) error {
	if err := r.run(ctx); err != nil {
		return fmt.Errorf("%s: %w", sidecar.Registrar, err)
	}
	return nil
}

func (r *Registrar) run(ctx context.Context) error {
	name := r.env.Driver.Name()
	path, err := r.config.socketPath(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	back, watched := make(chan struct{}), make(chan error, 1)
	var watch sync.WaitGroup
	runs := r.env.Driver.Runs()
	watch.Go(func() { watched <- r.watchDriver(ctx, name, runs, back) })
	defer watch.Wait()
	defer cancel()

	marker := markerPath(r.config.KubeletRegistrationPath, runtime.GOOS)
	defer r.unmark(ctx, marker)
	for tries := 0; ; {
		r.unmark(ctx, marker)
		one := &session{Registrar: r, driver: name, path: path, marker: marker, back: back, watched: watched}
		again, err := one.run(ctx)
		if one.isRegistered {
			tries = 0
		}
		switch {
		case errors.Is(err, errSilent):
			if tries++; tries >= r.config.Tries {
				return fmt.Errorf("%w: %d times in a row, each with a new socket at %s", err, tries, path)
			}
			r.log.WarnContext(ctx, "The registration socket is made anew", "socket", path, "try", tries, "error", err)
		case err != nil || !again:
			return err
		}
	}
}

func (r *Registrar) unmark(ctx context.Context, path string) {
	if err := clearMarker(path); err != nil {
		r.log.WarnContext(ctx, "The marker of an earlier registration stays, exec probes may be wrong", "error", err)
	}
}

// session is the life of one registration socket.
type session struct {
	*Registrar
	driver, path, marker string
	// back comes when the driver is back, watched when it cannot be watched.
	back    <-chan struct{}
	watched <-chan error

	socket       *socket
	isRegistered bool
	isTaken      bool
}

// run makes the socket and serves it. Another is to be made when it returns
// true; after an error only when it is errSilent.
func (s *session) run(ctx context.Context) (again bool, err error) {
	socket, err := openSocket(s.path)
	if err != nil {
		return false, err
	}
	s.socket = socket
	s.current.Store(socket)
	over := make(chan struct{})
	server := newServer(s.driver, s.config.KubeletRegistrationPath, over)
	stop, failed := server.serve(socket)
	defer func() {
		close(over)
		s.current.Store(nil)
		err = errors.Join(err, socket.Close())
		stop()
	}()
	s.log.InfoContext(ctx, "Waiting for the kubelet", "driver", s.driver, "socket", s.path, "endpoint", s.config.KubeletRegistrationPath)
	return s.serve(ctx, server.calls, failed)
}

func (s *session) serve(ctx context.Context, calls <-chan call, failed <-chan error) (again bool, err error) {
	limit := s.env.Clock.NewTimer(s.config.RegistrationTimeout)
	defer limit.Stop()
	look := s.env.Clock.NewTicker(s.config.WatchInterval)
	defer look.Stop()
	waits := s.config.RegistrationTimeout
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case err := <-s.watched:
			return false, err
		case err := <-failed:
			return false, fmt.Errorf("registration socket %s: %w", s.path, err)
		case <-s.back:
			if !s.isTaken { // else it is for the other registrar
				return true, nil
			}
		case <-limit.C():
			if !s.isRegistered && !s.isTaken {
				return false, fmt.Errorf("%w, which is %s", errSilent, waits)
			}
		case <-look.C():
			if s.isLost(ctx) {
				return true, nil
			}
		case c := <-calls:
			if c.kind == callInfo && !s.isRegistered {
				waits = s.config.ConfirmTimeout
				restart(limit, waits)
			}
			if err := s.take(ctx, c); err != nil {
				return false, err
			}
		}
	}
}

func restart(timer interface {
	Stop() bool
	C() <-chan time.Time
	Reset(time.Duration) bool
}, after time.Duration) {
	if !timer.Stop() {
		select {
		case <-timer.C():
		default:
		}
	}
	timer.Reset(after)
}

// take notes what the kubelet called for.
func (s *session) take(ctx context.Context, c call) error {
	switch c.kind {
	case callInfo:
		s.log.InfoContext(ctx, "The kubelet asks for the driver", "driver", s.driver)
	case callRefused:
		return fmt.Errorf("%w %s: %s", errRefused, s.driver, c.text)
	case callRegistered:
		s.isRegistered = true
		s.log.InfoContext(ctx, "The kubelet has registered the driver", "driver", s.driver)
		if err := setMarker(s.marker); err != nil {
			s.log.WarnContext(ctx, "No marker of the registration can be kept, exec probes cannot see it", "error", err)
		}
	}
	return nil
}

// isLost looks at the socket's file and reports whether it is gone.
func (s *session) isLost(ctx context.Context) bool {
	state := s.socket.state(ctx)
	if ctx.Err() != nil {
		return false // the look was broken off, and says nothing
	}
	switch state {
	case fileGone:
		s.log.WarnContext(ctx, "Somebody has removed the registration socket, it is made anew", "socket", s.path)
		return true
	case fileOthers:
		if !s.isTaken {
			s.log.WarnContext(ctx, "Another registrar has taken over; this one waits until it ends", "driver", s.driver, "socket", s.path)
		}
		s.isTaken = true
	case fileOwn:
	}
	return false
}
