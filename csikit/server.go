package csikit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/csi-windows/csi-windows/csikit/internal/rules"
	"github.com/csi-windows/csi-windows/internal/endpoint"
)

// Services are the services of a driver. One that is nil is not served.
type Services struct {
	Identity         csi.IdentityServer
	Controller       csi.ControllerServer
	GroupController  csi.GroupControllerServer
	SnapshotMetadata csi.SnapshotMetadataServer
	Node             csi.NodeServer
}

// ServerConfig is what a Server is made of. Endpoint and Services.Identity are
// needed; other zero values are the defaults.
type ServerConfig struct {
	// Endpoint is where the driver listens: unix:PATH, unix://PATH, a path,
	// tcp://HOST:PORT of this machine or, on Windows, npipe:\\.\pipe\NAME.
	Endpoint string
	Services Services
	// DriverName is the value of the label driver_name of the metrics.
	DriverName     string
	Logger         *slog.Logger          // nothing is logged when nil
	Registerer     prometheus.Registerer // metrics are not registered when nil
	TracerProvider trace.TracerProvider  // nothing is traced when nil
	CallTimeout    time.Duration         // for calls without a deadline; 2 minutes
	GraceTime      time.Duration         // for calls in flight at the end; 30 seconds
	// MaxConcurrentCalls is how many calls run at once, those that hang included;
	// more are refused with Unavailable. 256. Probe is not counted.
	MaxConcurrentCalls int
	MaxMessageBytes    int // of a request; 4 MiB
	// MaxMapBytes is the size of a map of a request, keys and values together. CSI
	// has 4 KiB, the default. Clusters that ask for the tokens of many
	// audiences need more in volume_context.
	MaxMapBytes int
	// OnListening is called when the endpoint is open, with its address.
	OnListening func(net.Addr)
}

func (c ServerConfig) withDefaults() ServerConfig {
	defaultTo(&c.CallTimeout, 2*time.Minute)
	defaultTo(&c.GraceTime, 30*time.Second)
	defaultTo(&c.MaxConcurrentCalls, 256)
	defaultTo(&c.MaxMessageBytes, 4<<20)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func defaultTo[T int | time.Duration](value *T, standard T) {
	if *value <= 0 {
		*value = standard
	}
}

const (
	// connectTimeout is how long a connection may take to become one of gRPC.
	connectTimeout = 10 * time.Second
	// sparePerConnection is how many calls beyond the limit a connection may have:
	// they are refused at once, and Probe always finds room.
	sparePerConnection = 64
	// streamWorkers are goroutines that are kept for calls: one that is new has to
	// grow its stack first, a tenth of what a short call costs. When all are busy,
	// calls get new ones. gRPC calls the option experimental; without it calls are
	// slower and nothing else.
	streamWorkers = 16
	// maxHeaderBytes bounds the header of a call. gRPC's own limit is 16 MiB.
	maxHeaderBytes = 64 << 10
	// forcedStopTimeout is how long handlers have to return once their contexts
	// have ended.
	forcedStopTimeout = time.Second
)

// Server serves the services of a driver on one endpoint.
type Server struct {
	config   ServerConfig
	endpoint endpoint.Endpoint
	chain    *chain
}

// NewServer checks the configuration. It opens nothing.
func NewServer(config ServerConfig) (*Server, error) {
	config = config.withDefaults()
	if config.Services.Identity == nil {
		return nil, errors.New("csikit: a server needs the Identity service")
	}
	at, err := endpoint.Parse(config.Endpoint, runtime.GOOS)
	if err != nil {
		return nil, fmt.Errorf("csikit: %w", err)
	}
	checker, err := rules.New(config.MaxMapBytes)
	if err != nil {
		return nil, fmt.Errorf("csikit: %w", err)
	}
	methods, err := allMethods()
	if err != nil {
		return nil, fmt.Errorf("csikit: %w", err)
	}
	c := &chain{
		methods: methods, checker: checker, locks: newLocks(), flights: newFlights(), probes: &probes{},
		slots: make(chan struct{}, config.MaxConcurrentCalls), timeout: config.CallTimeout, logger: config.Logger,
	}
	if c.metrics, err = newMetrics(config.Registerer, config.DriverName, c); err != nil {
		return nil, fmt.Errorf("csikit: metrics: %w", err)
	}
	return &Server{config: config, endpoint: at, chain: c}, nil
}

// Run serves until ctx ends, and then until the calls in flight have finished or
// GraceTime is over. A call that does not finish even when its context ends is an
// error; the end of ctx, even before the start, is none. Run is called once.
func (s *Server) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	default:
	}
	listener, err := listen(ctx, s.endpoint)
	if err != nil {
		return err
	}
	server := s.newGRPC()
	served := make(chan error, 1)
	go func() {
		err := server.Serve(newBoundedListener(listener, connectionsMax, s.config.Logger))
		if errors.Is(err, grpc.ErrServerStopped) { // it was stopped before it began
			err = nil
		}
		served <- err
	}()
	s.config.Logger.Info("serving", "endpoint", s.endpoint.String())
	if s.config.OnListening != nil {
		s.config.OnListening(listener.Addr())
	}
	select {
	case err := <-served:
		return fmt.Errorf("endpoint %s: %w", s.endpoint, errors.Join(err, s.stop(ctx, server)))
	case <-ctx.Done():
	}
	return errors.Join(s.stop(ctx, server), <-served)
}

// stop lets calls in flight finish and then ends them. It returns when nothing of
// the server is left but handlers that heed nothing.
func (s *Server) stop(ctx context.Context, server *grpc.Server) error {
	s.chain.stopping.Store(true)
	ctx = context.WithoutCancel(ctx)
	graceful := make(chan struct{})
	go func() {
		defer close(graceful)
		server.GracefulStop()
	}()
	grace, cancel := context.WithTimeout(ctx, s.config.GraceTime)
	defer cancel()
	if s.chain.wait(grace) == 0 {
		// Answers are on their way; a connection that says nothing is not waited for.
		flush := time.NewTimer(min(s.config.GraceTime, forcedStopTimeout))
		defer flush.Stop()
		select {
		case <-graceful:
		case <-flush.C:
		}
	}
	server.Stop()
	<-graceful
	forced, cancel := context.WithTimeout(ctx, forcedStopTimeout)
	defer cancel()
	if left := s.chain.wait(forced); left > 0 {
		return fmt.Errorf("%d calls did not end with their contexts", left)
	}
	return nil
}

// newGRPC makes the gRPC server of one run.
func (s *Server) newGRPC() *grpc.Server {
	options := append(traceOptions(s.config.TracerProvider),
		grpc.UnaryInterceptor(s.chain.unary),
		grpc.StreamInterceptor(s.chain.stream),
		grpc.MaxRecvMsgSize(s.config.MaxMessageBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(uint32(s.config.MaxConcurrentCalls+sparePerConnection)),
		grpc.ConnectionTimeout(connectTimeout),
		grpc.NumStreamWorkers(streamWorkers),
	)
	server := grpc.NewServer(options...)
	services := s.config.Services
	csi.RegisterIdentityServer(server, services.Identity)
	if services.Controller != nil {
		csi.RegisterControllerServer(server, services.Controller)
	}
	if services.GroupController != nil {
		csi.RegisterGroupControllerServer(server, services.GroupController)
	}
	if services.SnapshotMetadata != nil {
		csi.RegisterSnapshotMetadataServer(server, services.SnapshotMetadata)
	}
	if services.Node != nil {
		csi.RegisterNodeServer(server, services.Node)
	}
	healthpb.RegisterHealthServer(server, &health{stopping: &s.chain.stopping})
	return server
}
