package provisioner

import (
	"context"
	"errors"
	"time"
)

// roomWait is how long a volume waits for room in the journal before it is
// tried again later.
const roomWait = time.Second

// waitForRoom waits until an entry was removed, but no longer than roomWait since
// a time.
func (j *journal) waitForRoom(ctx context.Context, removed <-chan struct{}, since time.Time) error {
	timer := j.clock.NewTimer(roomWait - j.clock.Since(since))
	defer timer.Stop()
	select {
	case <-removed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C():
	}
	select {
	case <-removed:
		return nil
	default:
		return errors.New("the driver has given no final answer for the volumes in it")
	}
}
