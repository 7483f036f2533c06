package wire

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/csi-windows/csi-windows/wire/pipe"
)

// What gRPC may use for a connection. There are many pipes and few calls, so
// buffers are small, and those for writing are lent only while they are used.
const (
	bufferBytes        = 8 << 10
	maxHeaderBytes     = 16 << 10
	maxStreamsPerConn  = 128
	connIdleMax        = 30 * time.Minute // then the client connects again when it needs to
	connAgeMax         = 4 * time.Hour    // ends streams whose request never came
	keepaliveInterval  = 5 * time.Minute
	keepaliveTimeout   = 20 * time.Second
	clientKeepaliveMin = 10 * time.Second // more frequent pings end the connection
	cutOffTimeout      = 2 * time.Second  // for calls to notice that their context has ended
)

// pipeServer is one pipe: a gRPC server that has one API's service and nothing
// else but health and reflection.
type pipeServer struct {
	shared
	version version

	grpc     *grpc.Server
	health   *health
	listener *servedListener
	calls    atomic.Int64 // in flight

	draining  chan struct{} // closed when the pipe stops
	drainOnce sync.Once
}

// shared is what the pipes of a server have in common.
type shared struct {
	site     *site
	limits   Limits
	logger   *slog.Logger
	observer Observer
}

func newPipeServer(v version, s shared) *pipeServer {
	p := &pipeServer{shared: s, version: v, health: &health{service: v.serviceName()}, draining: make(chan struct{})}
	limits := s.limits
	p.grpc = grpc.NewServer(
		grpc.Creds(newCallerCredentials()),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(limits.MaxMessageBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxStreamsPerConn),
		grpc.ConnectionTimeout(limits.ConnectTimeout),
		grpc.ReadBufferSize(bufferBytes), grpc.WriteBufferSize(bufferBytes), grpc.SharedWriteBuffer(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: connIdleMax, MaxConnectionAge: connAgeMax, MaxConnectionAgeGrace: limits.CallTimeout,
			Time: keepaliveInterval, Timeout: keepaliveTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: clientKeepaliveMin, PermitWithoutStream: true}),
		grpc.StreamInterceptor(p.boundStream),
	)
	p.grpc.RegisterService(p.serviceDesc(), p)
	healthpb.RegisterHealthServer(p.grpc, p.health)
	registerReflection(p.grpc, v)
	return p
}

// serviceDesc makes the service of a version from its rows.
func (p *pipeServer) serviceDesc() *grpc.ServiceDesc {
	desc := &grpc.ServiceDesc{ServiceName: p.version.serviceName(), HandlerType: (*any)(nil)}
	for _, m := range p.version.methods {
		desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: m.name, Handler: p.handler(m)})
	}
	return desc
}

// shutdown stops the pipe; see Server.Shutdown.
func (p *pipeServer) shutdown(ctx context.Context) error {
	p.drainOnce.Do(func() { close(p.draining) })
	p.health.stopping.Store(true)
	p.listener.drain()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.grpc.GracefulStop()
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
	}
	name := pipe.Name(p.version.api.Group, p.version.api.Version)
	inFlight := p.calls.Load()
	p.listener.cut()
	p.grpc.Stop()
	select {
	case <-stopped:
		if inFlight == 0 {
			return nil // only idle connections had to be closed
		}
		return fmt.Errorf("pipe %s: %d calls were cut off: %w", name, inFlight, context.Cause(ctx))
	case <-time.After(cutOffTimeout):
		return fmt.Errorf("pipe %s: %d calls do not end", name, p.calls.Load())
	}
}
