package snapshotter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/queue"
)

// kind is what differs between snapshots and group snapshots.
type kind interface {
	// contentOf reads an object of the cache.
	contentOf(object any) (*content, error)
	// cached gives a content as the cache has it, nil if it has none.
	cached(name string) (*content, error)
	// class gives a class' parameters and driver, and whether there is one.
	class(name string) (parameters map[string]string, driver string, found bool, err error)
	// patch changes an object, or its status, by a merge patch.
	patch(ctx context.Context, name string, data []byte, subresources ...string) (*content, error)
	// take has the driver take the snapshot, or tells of the one taken before.
	take(ctx context.Context, c *content, request request) (*answer, error)
	// look tells of a snapshot that is there; canLook whether the driver can.
	look(ctx context.Context, c *content, secrets map[string]string) (*answer, error)
	canLook() bool
	// remove has the driver remove it.
	remove(ctx context.Context, c *content, handle string, secrets map[string]string) error
	// statusOf gives the fields of the status that are to change.
	statusOf(c *content, a *answer, now time.Time) map[string]any
	// cleared gives those that are to go with the snapshot.
	cleared() map[string]any
}

// request is what the driver gets with a call that takes a snapshot.
type request struct {
	name                string
	parameters, secrets map[string]string
}

// machine walks contents of one kind through their states.
type machine struct {
	words *words
	kind  kind
	// lacks is the capability that the driver lacks for this kind, or empty.
	lacks  string
	config Config
	driver string
	// namePrefix and uidLength make the name at the back-end.
	namePrefix string
	uidLength  int

	kube   kubernetes.Interface
	events record.EventRecorder
	clock  clock.WithTicker
	log    *slog.Logger
	memory memory
}

// errGone says that the object is no more.
var errGone = errors.New("the object is gone")

// finalizerWait is how long a new content is left to the snapshot-controller,
// which puts the finalizer on it. Without it the content could vanish while
// its snapshot is being taken.
const finalizerWait = 5 * time.Second

// handle does what there is to do for a content.
func (m *machine) handle(ctx context.Context, name string) error {
	c, err := m.kind.cached(name)
	if err != nil {
		return err
	}
	if c == nil {
		m.memory.forget(name)
		return nil
	}
	if !m.mine(c) {
		return nil
	}
	k := m.memory.of(name, c.meta.UID)
	c = k.latest(c)
	for c != nil && !k.gone && ctx.Err() == nil {
		next, err := m.step(ctx, k, c)
		switch {
		case errors.Is(err, errGone):
			k.gone = true
			return nil
		case apierrors.IsConflict(err):
			// The cache is behind: the change will be seen, or is looked for.
			return queue.After(m.config.RetryMin)
		case err != nil:
			return err
		}
		if next != nil {
			k.newest = next
			// The object went with the write that took its last finalizer.
			k.gone = next.deleting() && len(next.meta.Finalizers) == 0
		}
		c = next
	}
	return nil
}

// mine reports that a content is this driver's and says what it is of.
func (m *machine) mine(c *content) bool {
	if c.driver != m.driver || len(c.volumes) == 0 && c.given == "" {
		return false
	}
	if c.className == "" {
		return true
	}
	_, driver, found, err := m.kind.class(c.className)
	return err != nil || !found || driver == m.driver
}

// step does the next thing for a content, and gives its new state, or nil when
// there is nothing more to do for now.
func (m *machine) step(ctx context.Context, k *known, c *content) (*content, error) {
	switch {
	case m.lacks != "":
		return m.refuse(ctx, k, c)
	case c.released():
		return m.release(ctx, k, c)
	case c.marked() && !c.outcomeUnknown():
		return m.unmark(ctx, c)
	case c.dynamic() && c.status.handle == "":
		if c.deleting() && !c.protected() {
			return nil, nil // it may vanish at any time
		}
		return m.take(ctx, k, c)
	case c.status.ready:
		return nil, nil
	case c.has(annMember) && (c.status.handle == "" || c.status.groupHandle == ""):
		return nil, nil // the snapshot-controller will tell
	default:
		return m.check(ctx, k, c)
	}
}

// call runs a call of the driver within its time.
func (m *machine) call(ctx context.Context, what func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, m.config.Timeout)
	defer cancel()
	return what(ctx)
}

// failed puts a failure into the status and an event, unless it is there
// already, and gives it back.
func (m *machine) failed(ctx context.Context, k *known, c *content, reason, text string, failure error) error {
	if ctx.Err() != nil {
		return ctx.Err() // the process ends: nothing has failed
	}
	message := text + ": " + failure.Error()
	if c.status.failure == message {
		return failure
	}
	m.event(c, reason, message)
	next, err := m.patchStatus(ctx, c, map[string]any{
		"readyToUse": false,
		"error":      map[string]any{"time": m.clock.Now().UTC().Format(time.RFC3339), "message": message},
	})
	switch {
	case errors.Is(err, errGone):
		return err
	case err != nil:
		return fmt.Errorf("%w (and this could not be put in its status: %w)", failure, err)
	}
	k.newest = next // else a try before the cache has it tells the same again
	return failure
}

// event tells of trouble with a content. The object is named by a reference,
// which needs no list of kinds to be understood.
func (m *machine) event(c *content, reason, message string) {
	m.events.Event(&v1.ObjectReference{
		Kind: c.words.kind, APIVersion: c.words.apiGroup + "/v1",
		Name: c.meta.Name, UID: c.meta.UID, ResourceVersion: c.meta.ResourceVersion,
	}, v1.EventTypeWarning, reason, message)
}

// final reports that a call is over for sure and has left no snapshot.
func final(err error) bool { return csiclient.IsFinal(err) }
