package snapshotter

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-windows/csi-windows/sidecar/queue"
)

// take has the driver take a snapshot, or finds out what became of an earlier
// call that did.
func (m *machine) take(ctx context.Context, k *known, c *content) (*content, error) {
	const text = "Failed to create"
	request, secret, err := m.requestOf(ctx, c)
	if err != nil {
		return nil, m.failed(ctx, k, c, c.words.createFailed, text+" "+c.words.noun, err)
	}
	// By a clock that is behind the API server's, the content is not made yet.
	if age := m.clock.Since(c.meta.CreationTimestamp.Time); !c.marked() && !c.protected() && age >= 0 && age < finalizerWait {
		return nil, queue.After(finalizerWait - age)
	}
	if !c.marked() || !k.sure {
		if c, err = m.mark(ctx, c, secret); err != nil {
			return nil, err
		}
		k.newest, k.sure = c, true
	}
	taken, err := m.callTake(ctx, c, request)
	if err == nil {
		return m.record(ctx, k, c, taken, request.secrets)
	}
	if final(err) {
		next, err := m.unmark(ctx, c)
		if err != nil {
			return nil, err
		}
		k.newest = next
		if c = next; c.released() {
			return c, nil // no snapshot was made: there is nothing to wait for
		}
	}
	return nil, m.failed(ctx, k, c, c.words.createFailed, text+" "+c.words.noun, err)
}

func (m *machine) callTake(ctx context.Context, c *content, request request) (*answer, error) {
	var taken *answer
	err := m.call(ctx, func(ctx context.Context) (err error) {
		taken, err = m.kind.take(ctx, c, request)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s %s of %s: %w", c.words.call, request.name, strings.Join(c.volumes, ", "), err)
	}
	if c.status.handle != "" && taken.handle != c.status.handle {
		return nil, fmt.Errorf("%s %s: the driver names %s %q, and named it %q before",
			c.words.call, request.name, c.words.noun, taken.handle, c.status.handle)
	}
	return taken, nil
}

// record puts what the driver said into the status. It gives no new state when
// the snapshot is to be looked at again later.
func (m *machine) record(ctx context.Context, k *known, c *content, a *answer, secrets map[string]string) (*content, error) {
	next := c
	if fields := m.kind.statusOf(c, a, m.clock.Now()); len(fields) > 0 {
		var err error
		next, err = m.patchStatus(ctx, c, fields)
		if errors.Is(err, errGone) && c.outcomeUnknown() && c.deletePolicy {
			m.orphan(ctx, c, a, secrets)
		}
		if err != nil {
			return nil, err
		}
		k.newest = next
	}
	if !next.status.ready {
		delay := k.again(m.clock.Now(), m.config.RetryMin, m.config.RetryMax)
		if !next.released() && !next.marked() {
			return nil, queue.After(delay)
		}
	}
	return next, nil
}

// orphan removes a snapshot whose content was taken away by force while it was
// being made: no object names it, and none can any more. A content that was
// made again under the same name waits for this one in the queue, so it has
// not been told of the snapshot yet, and gets a new one.
func (m *machine) orphan(ctx context.Context, c *content, a *answer, secrets map[string]string) {
	err := m.call(ctx, func(ctx context.Context) error { return m.kind.remove(ctx, c, a.handle, secrets) })
	if err != nil {
		m.log.ErrorContext(ctx, "A snapshot without a content is left at the back-end", "content", c.meta.Name,
			"handle", a.handle, "error", err)
		return
	}
	m.log.WarnContext(ctx, "A snapshot was removed whose content vanished while it was taken", "content", c.meta.Name, "handle", a.handle)
}

// check looks whether a snapshot has become ready.
func (m *machine) check(ctx context.Context, k *known, c *content) (*content, error) {
	if wait := k.due.Sub(m.clock.Now()); wait > 0 {
		return nil, queue.After(wait)
	}
	a, err := m.lookAt(ctx, k, c)
	if errors.Is(err, errGone) || apierrors.IsConflict(err) {
		return nil, err
	}
	if err != nil {
		return nil, m.failed(ctx, k, c, c.words.checkFailed, "Failed to check and update "+c.words.noun+" content", err)
	}
	return m.record(ctx, k, c, a, nil)
}

// lookAt asks the driver for the state of a snapshot. A driver that cannot
// tell is asked to take it once more, which tells the same; one that was there
// before is believed to be ready.
func (m *machine) lookAt(ctx context.Context, k *known, c *content) (*answer, error) {
	if !m.kind.canLook() && !c.dynamic() {
		handle := c.status.handle
		if handle == "" {
			handle = c.given
		}
		return &answer{handle: handle, ready: true}, nil
	}
	if !m.kind.canLook() || k.blind {
		return m.takeAgain(ctx, k, c)
	}
	secrets, err := m.lookSecrets(ctx, c)
	if err != nil {
		return nil, err
	}
	var a *answer
	err = m.call(ctx, func(ctx context.Context) (err error) {
		a, err = m.kind.look(ctx, c, secrets)
		return err
	})
	if c.dynamic() && refusesToTell(err) {
		// It refuses to tell, maybe for want of secrets: a class that was made for
		// upstream's program, which asks by the other call, has none for this one.
		m.log.WarnContext(ctx, "The driver refuses to tell of a snapshot, and is asked by the call that took it", "content", c.meta.Name, "error", err)
		k.blind = true
		return m.takeAgain(ctx, k, c)
	}
	return a, err
}

// refusesToTell reports whether an answer says nothing of a snapshot but that this
// call will never tell. Any other failure may be the back-end's, which may have lost
// the snapshot, so that taking it again would make another one.
func refusesToTell(err error) bool {
	switch grpcstatus.Code(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return true
	default:
		return false
	}
}

// takeAgain asks the driver for the state of a snapshot by the call that took it.
func (m *machine) takeAgain(ctx context.Context, k *known, c *content) (*answer, error) {
	request, _, err := m.requestOf(ctx, c)
	if err != nil {
		return nil, err
	}
	if !k.sure {
		// It would be made again if it was removed after the cache's state.
		if _, err := m.patchMeta(ctx, c, map[string]any{"resourceVersion": c.meta.ResourceVersion}); err != nil {
			return nil, err
		}
		k.sure = true
	}
	return m.callTake(ctx, c, request)
}
