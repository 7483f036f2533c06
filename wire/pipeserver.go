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
// buffers are small (gRPC lends those for writing only while they are used).
const (
	bufferBytes = 8 << 10
	// callWorkers are goroutines of each pipe that serve one call after another.
	// Their stacks have grown to what a call needs; growing a new one is a good
	// part of what a cheap call costs. More calls at once get goroutines of their own.
	callWorkers = 32
	// windowBytes is fixed, or gRPC would measure the pipe with pings beside the
	// calls to find a larger one. Requests are small.
	windowBytes    = 64 << 10
	maxHeaderBytes = 16 << 10
	// maxStreamsPerConn leaves room beside calls that hang: they count here as
	// long as they do.
	maxStreamsPerConn  = 256
	connIdleMax        = 30 * time.Minute // then the client connects again when it needs to
	connAgeMax         = 4 * time.Hour    // ends streams whose request never came
	keepaliveInterval  = 5 * time.Minute
	keepaliveTimeout   = 20 * time.Second
	clientKeepaliveMin = 10 * time.Second // more frequent pings end the connection
	desertedInterval   = 250 * time.Millisecond
	cutOffTimeout      = 2 * time.Second // for calls to notice that their context has ended
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
	hung     atomic.Int64 // go on although their client has gone

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
	return p
}

// newGRPC makes the server of the pipe. It has goroutines of its own from here
// on, so it is made only once the pipe is open.
func (p *pipeServer) newGRPC() *grpc.Server {
	limits := p.limits
	server := grpc.NewServer(
		grpc.Creds(newCallerCredentials()),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.NumStreamWorkers(callWorkers),
		grpc.StaticStreamWindowSize(windowBytes), grpc.StaticConnWindowSize(windowBytes),
		grpc.MaxRecvMsgSize(limits.MaxMessageBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxStreamsPerConn),
		grpc.ConnectionTimeout(limits.ConnectTimeout),
		grpc.ReadBufferSize(bufferBytes), grpc.WriteBufferSize(bufferBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: connIdleMax, MaxConnectionAge: connAgeMax, MaxConnectionAgeGrace: limits.CallTimeout,
			Time: keepaliveInterval, Timeout: keepaliveTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: clientKeepaliveMin, PermitWithoutStream: true}),
		grpc.StreamInterceptor(p.boundStream),
	)
	server.RegisterService(p.serviceDesc(), p)
	healthpb.RegisterHealthServer(server, p.health)
	registerReflection(server, p.version)
	return server
}

// serviceDesc makes the service of a version from its rows.
func (p *pipeServer) serviceDesc() *grpc.ServiceDesc {
	desc := &grpc.ServiceDesc{ServiceName: p.version.serviceName(), HandlerType: (*any)(nil)}
	for _, m := range p.version.methods {
		desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: m.name, Handler: p.handler(m)})
	}
	return desc
}

// awaitCalls waits until gRPC has stopped, until ctx ends, or until the only calls
// left are such as nobody waits for. It reports whether gRPC has stopped.
func (p *pipeServer) awaitCalls(ctx context.Context, stopped <-chan struct{}) bool {
	ticker := time.NewTicker(desertedInterval)
	defer ticker.Stop()
	// The answer of a call that has just ended gets the time between two looks.
	for deserted := 0; deserted < 2; {
		select {
		case <-stopped:
			return true
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
		deserted++
		if p.calls.Load() > 0 || p.hung.Load() == 0 {
			deserted = 0
		}
	}
	return false
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
	if p.awaitCalls(ctx, stopped) {
		return nil
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
		return fmt.Errorf("pipe %s: %d calls do not end", name, p.calls.Load()+p.hung.Load())
	}
}
