package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// Limits bound what callers can make a server do. Zero values are the defaults.
type Limits struct {
	MaxMessageBytes           int           // of a request; 1 MiB
	MaxConcurrentCallsPerPipe int           // more are refused with ResourceExhausted; 128
	MaxConnectionsPerPipe     int           // at it, silent ones make room, else more are closed at once; 256
	CallTimeout               time.Duration // for calls without a shorter deadline; 10 minutes
	ConnectTimeout            time.Duration // for a connection to become one of gRPC; 10 seconds

	taskGrace time.Duration // tests set it; taskGrace
}

func (l Limits) withDefaults() Limits {
	defaultTo(&l.MaxMessageBytes, 1<<20)
	defaultTo(&l.MaxConcurrentCallsPerPipe, 128)
	defaultTo(&l.MaxConnectionsPerPipe, 256)
	defaultTo(&l.CallTimeout, 10*time.Minute)
	defaultTo(&l.ConnectTimeout, 10*time.Second)
	defaultTo(&l.taskGrace, taskGrace)
	return l
}

func defaultTo[T int | time.Duration](value *T, standard T) {
	if *value <= 0 {
		*value = standard
	}
}

// ServerConfig is what a Server is made of. Only Host is needed.
type ServerConfig struct {
	Host     host.Host
	Node     node.Node // nil: the group node cannot be served
	Place    pipe.Place
	APIs     []API  // what to serve; all that can be when nil
	Version  string // of the program, for GetServerInfo
	Logger   *slog.Logger
	Limits   Limits
	Observer Observer
}

// Server serves a host.Host, and a node.Node if it has one, on one pipe for each API.
type Server struct {
	shared
	place  pipe.Place
	pipes  []*pipeServer
	apis   []API
	failed chan error

	mu      sync.Mutex
	started bool
	serving sync.WaitGroup
}

// NewServer checks the configuration. It opens nothing.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.Host == nil {
		return nil, errors.New("wire: a server needs a host")
	}
	versions, err := choose(cfg.APIs, cfg.Node != nil)
	if err != nil {
		return nil, err
	}
	common := shared{limits: cfg.Limits.withDefaults(), logger: cfg.Logger, observer: cfg.Observer}
	if common.logger == nil {
		common.logger = slog.New(slog.DiscardHandler)
	}
	if common.observer == nil {
		common.observer = noObserver{}
	}
	s := &Server{place: cfg.Place, shared: common, failed: make(chan error, 1)}
	for _, v := range versions {
		s.apis = append(s.apis, v.api)
	}
	s.site = &site{host: cfg.Host, node: cfg.Node, version: cfg.Version, apis: s.apis}
	for _, v := range versions {
		s.pipes = append(s.pipes, newPipeServer(v, s.shared))
	}
	return s, nil
}

// choose returns the rows of some APIs in table order. Only a server with node
// tasks has their group.
func choose(apis []API, tasks bool) ([]version, error) {
	versions := table()
	if apis == nil {
		return slices.DeleteFunc(versions, func(v version) bool { return v.api.Group == GroupNode && !tasks }), nil
	}
	if len(apis) == 0 {
		return nil, errors.New("wire: no API to serve")
	}
	for _, api := range apis {
		if !slices.ContainsFunc(versions, func(v version) bool { return v.api == api }) {
			return nil, fmt.Errorf("wire: no such API: %s", api)
		}
		if api.Group == GroupNode && !tasks {
			return nil, fmt.Errorf("wire: API %s needs node tasks", api)
		}
	}
	return slices.DeleteFunc(versions, func(v version) bool { return !slices.Contains(apis, v.api) }), nil
}

// APIs returns what is served, in table order.
func (s *Server) APIs() []API { return slices.Clone(s.apis) }

// Start opens every pipe and serves. On error, which names the pipe, none stays
// open. ctx bounds the start only. A server starts once.
//
// The newest pipe of a group is opened first: a client that sees an old one, and
// looks for newer ones again, never takes a version that is not the newest.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errors.New("wire: the server was started before")
	}
	for i, p := range slices.Backward(s.pipes) {
		if err := p.listen(ctx, s.place); err != nil {
			for _, opened := range s.pipes[i+1:] {
				_ = opened.listener.Close()
			}
			return err
		}
	}
	s.started = true
	for _, p := range s.pipes {
		p.grpc = p.newGRPC()
		s.serving.Go(func() { s.report(p, p.grpc.Serve(p.listener)) })
	}
	s.logger.Info("serving", "pipes", len(s.pipes))
	return nil
}

// report notes a pipe that stopped by itself.
func (s *Server) report(p *pipeServer, err error) {
	if err == nil {
		return
	}
	err = fmt.Errorf("pipe %s: %w", pipe.Name(p.version.api.Group, p.version.api.Version), err)
	s.logger.Error("pipe stopped", "error", err)
	select {
	case s.failed <- err:
	default: // the first failure is enough
	}
}

// Failed receives the first failure of a pipe that stopped without Shutdown.
func (s *Server) Failed() <-chan error { return s.failed }

// Shutdown closes the pipes and lets the calls in flight finish until ctx ends.
// Those that have not are cut off: their callers get Unavailable, their contexts
// end, and Shutdown says so in its error. When it returns nil, no goroutine of
// the server is left.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		return nil
	}
	errs := make([]error, len(s.pipes))
	var stopping sync.WaitGroup
	for i, p := range s.pipes {
		stopping.Go(func() { errs[i] = p.shutdown(ctx) })
	}
	stopping.Wait()
	s.serving.Wait()
	return errors.Join(errs...)
}
