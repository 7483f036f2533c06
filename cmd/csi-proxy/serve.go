package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/cmd/internal/scrape"
	"github.com/csi-windows/csi-windows/cmd/internal/version"
	nodetasks "github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

const (
	// startTime bounds opening the node and the pipes.
	startTime = 30 * time.Second
	// probeTime bounds the look for another copy, pipe by pipe.
	probeTime = time.Second
	// stopMargin is how long a stop may take beyond the grace time: calls are cut
	// off, the node is closed, the last events are written.
	stopMargin = 15 * time.Second
)

// node is what the agent works on: Windows, or a simulated node.
type node struct {
	session cim.Session
	api     win32.API
	close   func() error
}

// program is what serves.
type program struct {
	config *config
	log    *slog.Logger
	events *events
}

// startReport is told of a start as it goes on. What is nil is not told.
type startReport struct {
	step  func() // one more part of it is done
	ready func() // every pipe is open
}

func (r startReport) stepDone() {
	if r.step != nil {
		r.step()
	}
}

// serve joins the rooms, serves until ctx ends, and stops within the grace time.
// The report is ready when every pipe is open.
func (p *program) serve(ctx context.Context, report startReport) (err error) {
	c, log := p.config, p.log
	log.Info("csi-proxy starts", "version", version.Full(), "host", c.Host, "workingDirs", c.roots(), "requirePrivacy", c.RequirePrivacy)
	place := pipe.Place{Dir: c.SocketDir, AllowSIDs: c.PipeAccess}
	if err := refuseSecondCopy(ctx, place, c.APIs); err != nil {
		return exit.With(stageListen, err)
	}
	report.stepDone()
	starting, started := context.WithTimeout(ctx, startTime)
	defer started()
	n, err := openNode(starting, c, log)
	if err != nil {
		return exit.With(stageHost, err)
	}
	defer func() { err = errors.Join(err, exit.With(stageStop, n.close())) }()
	report.stepDone()

	m, stopMetrics, err := startMetrics(ctx, c, log)
	if err != nil {
		return failedStart(ctx, stageMetrics, err)
	}
	defer stopMetrics()
	m.watchSession(n.session)
	server, err := p.newServer(n, m, place)
	if err != nil {
		return exit.With(stageHost, err)
	}
	report.stepDone()
	if err := server.Start(starting); err != nil {
		return failedStart(ctx, stageListen, err)
	}
	started()
	apis := server.APIs()
	log.Info("csi-proxy is ready", "apis", apiValue{&apis}.String())
	p.events.report(eventStarted, "csi-proxy %s has started and serves %s.", version.Full(), apiValue{&apis}.String())
	if report.ready != nil {
		report.ready()
	}
	return p.serveUntilStop(ctx, server)
}

// failedStart is failed, except that a start which was broken off by the wish to
// stop did what it was asked to.
func failedStart(ctx context.Context, s stage, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return exit.With(s, err)
}

// refuseSecondCopy finds another csi-proxy by its pipes before this one touches
// anything. Opening the pipes later decides; this makes the usual case quick and harmless.
func refuseSecondCopy(ctx context.Context, place pipe.Place, apis []wire.API) error {
	for _, api := range apis {
		probing, cancel := context.WithTimeout(ctx, probeTime)
		conn, err := place.Dial(probing, api.Group, api.Version)
		cancel()
		if err == nil {
			_ = conn.Close()
			return fmt.Errorf("pipe %s is %w", pipe.Name(api.Group, api.Version), pipe.ErrInUse)
		}
	}
	return nil
}

// newServer builds the agent for the node, the node tasks over it, and the server
// before both.
func (p *program) newServer(n *node, m *metrics, place pipe.Place) (*wire.Server, error) {
	c, log := p.config, p.log
	a, err := agent.New(winos.New(n.session, n.api, winos.Options{}), agent.Policy{
		Roots: c.roots(), RequirePrivacy: c.RequirePrivacy, CallTimeout: c.CallTime, Logger: log, Observer: hangs{m, p.events},
	})
	if err != nil {
		return nil, err
	}
	tasks, err := nodetasks.New(a, nodetasks.Options{Folder: c.tasksFolder(), Logger: log, CallTimeout: c.CallTime})
	if err != nil {
		return nil, err
	}
	return wire.NewServer(wire.ServerConfig{
		Host: a, Node: tasks, Place: place, APIs: c.APIs, Version: version.Number(), Logger: log,
		Limits: wire.Limits{CallTimeout: c.CallTime}, Observer: m,
	})
}

// metricsPrefix begins the names of all metrics.
const metricsPrefix = "csi_proxy"

// startMetrics serves metrics when an address is set. Without one it returns nil
// metrics, which count nothing.
func startMetrics(ctx context.Context, c *config, log *slog.Logger) (m *metrics, stop func(), err error) {
	if c.MetricsAddress == "" {
		return nil, func() {}, nil
	}
	m = newMetrics()
	stop, err = scrape.Start(ctx, c.MetricsAddress, m.registry, metricsPrefix, log)
	if err != nil {
		return nil, nil, fmt.Errorf("-metrics-bind-address: %w", err)
	}
	return m, stop, nil
}

// serveUntilStop waits for ctx to end or a pipe to fail, then stops the server.
func (p *program) serveUntilStop(ctx context.Context, server *wire.Server) error {
	grace, log := p.config.GraceTime, p.log
	var failure error
	select {
	case <-ctx.Done():
		log.Info("csi-proxy stops", "graceTime", grace.String())
	case err := <-server.Failed():
		failure = exit.With(stageRun, err)
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		// Their callers were told; this is no failure of stopping.
		log.Warn("calls were cut off", "error", err)
		p.events.report(eventCallsCutOff, "Calls had to be cut off: %v", err)
	}
	log.Info("csi-proxy has stopped")
	return failure
}
