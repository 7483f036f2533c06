package csikit

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/csi-windows/csi-windows/host"
)

// identity is the Identity service of a Driver.
type identity struct {
	DefaultIdentity
	peers []*reachable
}

func newIdentity(d *Driver) *identity {
	server := &identity{DefaultIdentity: DefaultIdentity{Name: d.name, Version: d.version, Capabilities: d.pluginCapabilities()}}
	for _, value := range []any{d.backend, d.nodeBackend} {
		if prober, ok := value.(Prober); ok {
			server.peers = append(server.peers, newReachable(prober.Probe))
		}
	}
	if d.node != nil {
		server.peers = append(server.peers, newReachable(func(ctx context.Context) error {
			// Whatever it answers, it is there, unless it says that it is not.
			if _, err := d.node.Info(ctx); err != nil && host.IsKind(err, host.KindUnavailable) {
				return err
			}
			return ctx.Err()
		}))
	}
	return server
}

// Probe says whether backend and node can be reached. It waits for nobody: the
// answer is a fresh one, or the last there was.
func (s *identity) Probe(ctx context.Context, _ *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, probeWaitMax)
	defer cancel()
	for _, p := range s.peers {
		p.start()
	}
	ready := true
	for _, p := range s.peers {
		ready = p.ready(ctx) && ready
	}
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(ready)}, nil
}
