package csiclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errNotReady is a driver that says of itself that it is not ready.
var errNotReady = errors.New("it says that it is not ready")

// meet waits until the driver is ready and asks what it is.
func (l *link) meet(ctx context.Context, conn *grpc.ClientConn) (Info, error) {
	var logged time.Time
	a := &asker{identity: csi.NewIdentityClient(conn), conn: conn, timeout: l.config.Timeout, nameOnly: l.config.NameOnly}
	for {
		dialed := l.dialed.Load()
		info, err := a.ask(ctx)
		if dialed == 0 {
			dialed = 1 // the call itself connected
		}
		if err == nil {
			l.met = dialed
			return info, nil
		}
		if ctx.Err() == nil && time.Since(logged) >= waitLogInterval {
			logged = time.Now()
			l.config.Log.WarnContext(ctx, "The driver is waited for", "address", l.at.String(), "error", err)
		}
		if status.Code(err) == codes.DeadlineExceeded {
			a.timeout = min(2*a.timeout, max(timeoutMax, l.config.Timeout))
		}
		select {
		case <-ctx.Done():
			return Info{}, fmt.Errorf("driver at %s: %w; the last time it was asked: %w", l.at, context.Cause(ctx), err)
		case <-time.After(waitDelay):
		}
	}
}

// nameMaxBytes is more than the 63 that CSI and Kubernetes let a driver's name
// have: who registers it says what is wrong with it.
const nameMaxBytes = 253

// asker asks a driver what it is.
type asker struct {
	conn     *grpc.ClientConn
	identity csi.IdentityClient
	timeout  time.Duration
	nameOnly bool
}

// ask asks the driver once whether it is ready and what it is.
func (a *asker) ask(ctx context.Context) (info Info, err error) {
	steps := []func(context.Context, *Info) error{a.probe, a.askName}
	if !a.nameOnly {
		steps = append(steps, a.askPlugin, a.askController, a.askGroupController)
	}
	for _, step := range steps {
		if err := a.limited(ctx, step, &info); err != nil {
			return Info{}, err
		}
	}
	return info, nil
}

func (a *asker) limited(ctx context.Context, step func(context.Context, *Info) error, info *Info) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	return step(ctx, info)
}

func (a *asker) probe(ctx context.Context, _ *Info) error {
	answer, err := a.identity.Probe(ctx, &csi.ProbeRequest{})
	switch {
	case status.Code(err) == codes.Unimplemented:
		return nil // it has nothing to say about it, and nothing to wait for
	case err != nil:
		return fmt.Errorf("Probe: %w", err)
	}
	// By CSI, a driver that says nothing is ready.
	if ready := answer.GetReady(); ready != nil && !ready.GetValue() {
		return errNotReady
	}
	return nil
}

func (a *asker) askName(ctx context.Context, info *Info) error {
	is, err := a.identity.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	if err != nil {
		return fmt.Errorf("GetPluginInfo: %w", err)
	}
	if is.GetName() == "" {
		return errors.New("GetPluginInfo: the driver's name is empty")
	}
	if n := len(is.GetName()); n > nameMaxBytes {
		return fmt.Errorf("GetPluginInfo: the driver's name has %d bytes, no name in Kubernetes has more than %d", n, nameMaxBytes)
	}
	info.Name, info.VendorVersion = is.GetName(), shortened(is.GetVendorVersion())
	return nil
}

func (a *asker) askPlugin(ctx context.Context, info *Info) error {
	can, err := a.identity.GetPluginCapabilities(ctx, &csi.GetPluginCapabilitiesRequest{})
	if err != nil {
		return fmt.Errorf("GetPluginCapabilities: %w", err)
	}
	info.Plugin = map[csi.PluginCapability_Service_Type]bool{}
	info.Expansion = map[csi.PluginCapability_VolumeExpansion_Type]bool{}
	for _, one := range can.GetCapabilities() {
		if service := one.GetService(); service != nil {
			info.Plugin[service.GetType()] = true
		}
		if expansion := one.GetVolumeExpansion(); expansion != nil {
			info.Expansion[expansion.GetType()] = true
		}
	}
	return nil
}

func (a *asker) askController(ctx context.Context, info *Info) error {
	if !info.Plugin[csi.PluginCapability_Service_CONTROLLER_SERVICE] {
		return nil
	}
	can, err := csi.NewControllerClient(a.conn).ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
	if err != nil && status.Code(err) != codes.Unimplemented {
		return fmt.Errorf("ControllerGetCapabilities: %w", err)
	}
	info.Controller = map[csi.ControllerServiceCapability_RPC_Type]bool{}
	for _, one := range can.GetCapabilities() {
		if rpc := one.GetRpc(); rpc != nil {
			info.Controller[rpc.GetType()] = true
		}
	}
	return nil
}

func (a *asker) askGroupController(ctx context.Context, info *Info) error {
	if !info.Plugin[csi.PluginCapability_Service_GROUP_CONTROLLER_SERVICE] {
		return nil
	}
	can, err := csi.NewGroupControllerClient(a.conn).GroupControllerGetCapabilities(ctx, &csi.GroupControllerGetCapabilitiesRequest{})
	if err != nil && status.Code(err) != codes.Unimplemented {
		return fmt.Errorf("GroupControllerGetCapabilities: %w", err)
	}
	info.GroupController = map[csi.GroupControllerServiceCapability_RPC_Type]bool{}
	for _, one := range can.GetCapabilities() {
		if rpc := one.GetRpc(); rpc != nil {
			info.GroupController[rpc.GetType()] = true
		}
	}
	return nil
}
