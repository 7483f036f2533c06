package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"sync/atomic"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
)

// group is one API group and its link, if there is one.
type group struct {
	client   *Client
	name     string
	versions []string // in the order in which they are tried
	link     atomic.Pointer[link]
	// turn is held by whoever chooses a version. It is a channel so that a caller
	// whose context ends does not wait for another's choice.
	turn chan struct{}
}

func newGroup(c *Client, name string, versions []string) *group {
	return &group{client: c, name: name, versions: versions, turn: make(chan struct{}, 1)}
}

// errNoPipe is in the error of choose when none of a group's pipes exists.
var errNoPipe = errors.New("the server offers no version of it")

// errDeadPipe is in it when what exists of them was left behind by a server that
// has ended.
var errDeadPipe = errors.New("nobody serves it any more")

// acquire returns a link with the caller counted in. A link that broke is
// replaced, whatever version the server offers now.
func (g *group) acquire(ctx context.Context) (*link, error) {
	if l := g.current(); l != nil {
		return l, nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.client.dialTimeout)
	defer cancel()
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another call to connect: %w", context.Cause(ctx))
	}
	if g.client.closed.Load() {
		return nil, errClosed
	}
	if l := g.current(); l != nil {
		return l, nil // another call was faster
	}
	l, err := g.choose(ctx)
	if err != nil {
		return nil, err
	}
	l.acquire()
	if old := g.link.Swap(l); old != nil {
		old.retire()
	}
	return l, nil
}

// current returns the link with the caller counted in if it stands.
func (g *group) current() *link {
	if l := g.link.Load(); l != nil && l.ready() && l.acquire() {
		return l
	}
	return nil
}

// choose opens the first of the group's pipes that can be opened. A pipe that
// opens but stays silent ends the search: its server is ill, and an older version
// of the same server would be no better.
func (g *group) choose(ctx context.Context) (*link, error) {
	i, opened, tried := g.open(ctx, g.versions)
	if opened == nil {
		isMissing := func(err error) bool { return errors.Is(err, fs.ErrNotExist) }
		isDead := func(err error) bool { return isMissing(err) || isRefused(err) }
		switch {
		case all(tried, isMissing):
			tried = append(tried, errNoPipe)
		case all(tried, isDead):
			tried = append(tried, errDeadPipe)
		}
		return nil, &choiceError{tried: tried}
	}
	// A server that is just starting may have opened better ones since they were
	// looked at; it opens the newest first, so a second look is enough.
	if better, again, _ := g.open(ctx, g.versions[:i]); again != nil {
		_ = opened.Close()
		i, opened = better, again
	}
	api := wire.API{Group: g.name, Version: g.versions[i]}
	l, err := newLink(api, opened)
	if err == nil {
		if err = l.waitReady(ctx); err == nil {
			return l, nil
		}
		_ = l.close()
	}
	return nil, &choiceError{tried: append(tried, fmt.Errorf("pipe of %s: %w", api, err))}
}

// open opens the first pipe that can be opened, and returns its place among the
// versions and why those before it could not. The connection is nil when none can.
func (g *group) open(ctx context.Context, versions []string) (place int, opened net.Conn, tried []error) {
	for i, version := range versions {
		opened, err := g.client.place.Dial(ctx, g.name, version)
		if err == nil {
			return i, opened, tried
		}
		tried = append(tried, err)
		if ctx.Err() != nil {
			break // the pipe is there and busy, or the caller has gone
		}
	}
	return 0, nil, tried
}

// all reports whether every error is of a kind.
func all(errs []error, isKind func(error) bool) bool {
	return !slices.ContainsFunc(errs, func(err error) bool { return !isKind(err) })
}

// isUnserved reports whether a choice failed because nobody serves the group.
func isUnserved(err error) bool { return errors.Is(err, errNoPipe) || errors.Is(err, errDeadPipe) }

// choiceError lists every pipe that was tried, on one line.
type choiceError struct{ tried []error }

func (e *choiceError) Error() string {
	text := "no pipe can be used"
	for _, err := range e.tried {
		text += "; " + err.Error()
	}
	return text
}

func (e *choiceError) Unwrap() []error { return e.tried }

// kindOfChoice is the kind of a failed choice, apart from errNoPipe.
func kindOfChoice(err error) host.Kind {
	if errors.Is(err, fs.ErrPermission) {
		return host.KindDenied
	}
	return host.KindUnavailable
}

// drop takes a broken link out of use.
func (g *group) drop(l *link) {
	if g.link.CompareAndSwap(l, nil) {
		l.retire()
	}
}

// close closes the link at once. No new one is made once the client is closed.
func (g *group) close() error {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	l := g.link.Swap(nil)
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = true
	return l.close()
}
