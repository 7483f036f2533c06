package snapshotter

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// release removes the snapshot of a content that goes, if it is to go too, and
// lets the content go.
func (m *machine) release(ctx context.Context, k *known, c *content) (*content, error) {
	if c.outcomeUnknown() {
		return m.take(ctx, k, c)
	}
	handle := c.handle()
	if c.deletePolicy && handle != "" && !c.isMember() && !k.removed {
		if err := m.remove(ctx, k, c, handle); err != nil {
			return nil, err
		}
		k.removed = true
	}
	others := len(c.meta.Finalizers)
	if c.protected() {
		others--
	}
	if k.removed && others > 0 && c.status.handle != "" {
		// The object stays for others, and must not name what is gone. The
		// marker goes first: without a handle it would tell of a call that is
		// under way, and the snapshot would be taken again.
		if c.marked() {
			return m.unmark(ctx, c)
		}
		return m.patchStatus(ctx, c, m.kind.cleared())
	}
	if !c.protected() {
		return nil, nil
	}
	return m.letGo(ctx, c)
}

func (m *machine) remove(ctx context.Context, k *known, c *content, handle string) error {
	secrets, err := m.removalSecrets(ctx, c)
	if err == nil {
		err = m.call(ctx, func(ctx context.Context) error { return m.kind.remove(ctx, c, handle, secrets) })
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c.neverWas(err) {
		m.log.WarnContext(ctx, "The driver knows nothing of the snapshot of a content that goes", "content", c.meta.Name, "handle", handle, "error", err)
		return nil
	}
	err = fmt.Errorf("remove %s %s: %w", c.words.noun, handle, err)
	m.cannotRemove(k, c, err)
	return err
}

// cannotRemove tells once that a snapshot is not removed.
func (m *machine) cannotRemove(k *known, c *content, err error) {
	if message := "Failed to delete " + c.words.noun + ": " + err.Error(); message != k.told {
		k.told = message
		m.event(c, c.words.deleteFailed, message)
	}
}

// neverWas reports that a removal failed because the content's author named a
// snapshot that is not there: nobody has seen it, and the handle cannot be
// changed. A handle that makes no sense holds nothing up where no snapshot
// object was bound to it, be it for want of secrets.
func (c *content) neverWas(err error) bool {
	if c.status.handle != "" {
		return false
	}
	code := grpcstatus.Code(err)
	return code == codes.NotFound || code == codes.InvalidArgument && !c.bound()
}
