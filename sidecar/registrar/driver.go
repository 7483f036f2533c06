package registrar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

const (
	// driverRetry is the delay before a driver that is not ready is asked again.
	driverRetry = time.Second
	// waitLogInterval is the time between two lines about a wait.
	waitLogInterval = time.Minute
	// askTimeoutMax is the most a driver is given for an answer: one that took too
	// long gets twice as much the next time.
	askTimeoutMax = 2 * time.Minute
)

// errNotReady is why a driver that answers is not ready.
var errNotReady = errors.New("the driver answers that it is not ready")

// watchDriver sends on back each time another run of the driver is there than those
// counted before. It ends with ctx, or with why the driver that came back
// cannot be registered. Nothing is sent while the connection stays, or when the
// same run of the driver has only closed it: some do so with one that is idle, and
// a registration costs more than it seems, since the kubelet begins it by
// forgetting the driver.
func (r *Registrar) watchDriver(ctx context.Context, name string, runs int, back chan<- struct{}) error {
	conn := r.env.Driver.Conn()
	// A connection that nobody has used yet is none that was lost. One that was made
	// and lost before anybody looked is to be made again, or nobody ever will.
	for state := conn.GetState(); state == connectivity.Idle || state == connectivity.Connecting; state = conn.GetState() {
		conn.Connect()
		if !conn.WaitForStateChange(ctx, state) {
			return nil
		}
	}
	for ctx.Err() == nil {
		if r.env.Driver.Runs() == runs {
			// A state that is another one already is no wait, not even one that ctx ends.
			if !conn.WaitForStateChange(ctx, connectivity.Ready) {
				return nil
			}
			r.log.WarnContext(ctx, "The connection to the driver is lost, it is registered again if another run of it comes back", "driver", name)
		}
		if err := r.awaitDriver(ctx, name); err != nil {
			return err
		}
		now := r.env.Driver.Runs()
		if now == runs {
			continue
		}
		runs = now
		select {
		case back <- struct{}{}:
		case <-ctx.Done():
		}
	}
	return nil
}

// awaitDriver waits until the driver is ready and has the same name, with a
// line in the log each minute. It returns nil when ctx has ended.
func (r *Registrar) awaitDriver(ctx context.Context, name string) error {
	logAt := r.env.Clock.Now().Add(waitLogInterval)
	timeout := r.config.Timeout
	for ctx.Err() == nil {
		now, err := r.askDriver(ctx, timeout)
		switch {
		case err == nil && now == name:
			r.log.InfoContext(ctx, "The driver is back", "driver", name)
			return nil
		case err == nil:
			return fmt.Errorf("the driver that came back is named %q, the one registered is %q", now, name)
		case status.Code(err) == codes.DeadlineExceeded:
			timeout = min(2*timeout, max(askTimeoutMax, r.config.Timeout))
		}
		if at := r.env.Clock.Now(); !at.Before(logAt) {
			r.log.WarnContext(ctx, "Waiting for the driver", "driver", name, "error", err)
			logAt = at.Add(waitLogInterval)
		}
		select {
		case <-r.env.Clock.After(driverRetry):
		case <-ctx.Done():
		}
	}
	return nil
}

// askDriver asks whether the driver is ready, and for its name.
func (r *Registrar) askDriver(ctx context.Context, timeout time.Duration) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// The delay between tries is ours: gRPC's own grows to minutes.
	r.env.Driver.Conn().ResetConnectBackoff()
	client := csi.NewIdentityClient(r.env.Driver.Conn())
	probe, err := client.Probe(ctx, &csi.ProbeRequest{})
	switch {
	case status.Code(err) == codes.Unimplemented: // nothing to wait for
	case err != nil:
		return "", err
	case probe.GetReady() != nil && !probe.GetReady().GetValue():
		return "", errNotReady
	}
	info, err := client.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	return info.GetName(), err
}
