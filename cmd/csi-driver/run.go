package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/signal"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/cmd/internal/scrape"
	"github.com/csi-windows/csi-windows/cmd/internal/version"
	"github.com/csi-windows/csi-windows/csikit"
)

// startTime bounds opening the node's storage.
const startTime = 30 * time.Second

// environment is what the program takes from its surroundings besides its
// command line.
type environment struct {
	GOOS           string
	Getenv         func(name string) string
	Stdout, Stderr io.Writer
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, env environment) int {
	logFlags := newLogFlags()
	c, err := parseConfig(args, env, logFlags)
	switch {
	case errors.Is(err, flag.ErrHelp):
		printUsage(env.Stdout, logFlags)
		return 0
	case err != nil:
		fmt.Fprintf(env.Stderr, "csi-driver: %v\n", err)
		return exit.Code(err)
	case c.ShowVersion:
		fmt.Fprintln(env.Stdout, "csi-driver", version.Full())
		return 0
	}
	if err := c.checkServed(); err != nil {
		fmt.Fprintf(env.Stderr, "csi-driver: %v\n", err)
		return int(stageFlags)
	}
	stopping, release := signal.NotifyContext(ctx, stopSignals()...)
	defer release()
	p := &program{config: c, env: env, log: slog.New(logr.ToSlogHandler(klog.NewKlogr()))}
	if err := p.serve(stopping); err != nil {
		p.log.Error("csi-driver failed", "error", err, "exitCode", exit.Code(err))
		return exit.Code(err)
	}
	return 0
}

// newLogFlags are klog's flags but those of files: a driver logs to the standard
// error stream of its container, and klog's own files are open to ordinary users of
// the node (CVE-2024-5321).
func newLogFlags() *flag.FlagSet {
	all, kept := flag.NewFlagSet("klog", flag.ContinueOnError), flag.NewFlagSet("log", flag.ContinueOnError)
	klog.InitFlags(all)
	all.VisitAll(func(f *flag.Flag) {
		if slices.Contains([]string{"v", "vmodule", "add_dir_header", "skip_headers", "log_backtrace_at"}, f.Name) {
			kept.Var(f.Value, f.Name, f.Usage)
		}
	})
	return kept
}

// program is what serves.
type program struct {
	config *config
	env    environment
	log    *slog.Logger
	// listening is called when the endpoint is open; nil is allowed.
	listening func(net.Addr)
}

// serve joins the rooms, serves until ctx ends, and stops within the grace time.
func (p *program) serve(ctx context.Context) (err error) {
	c, log := p.config, p.log
	way, why := chooseHost(c, p.env)
	if !c.servesNode() {
		way, why = "none", "-mode="+c.Mode+" needs none"
	}
	log.Info("csi-driver starts", "version", version.Full(), "driver", c.Driver, "mode", c.Mode, "host", way, "why", why, "endpoint", c.Endpoint)
	backend := backends()[c.Driver]
	made, err := backend.open(c, log)
	if err != nil {
		return exit.With(stageBackend, err)
	}
	defer func() { err = errors.Join(err, exit.With(stageStop, made.close())) }()
	config := csikit.Config{
		Name: cmp.Or(c.DriverName, backend.name), Version: version.Number(), NodeID: c.NodeID,
		Backend: made.controller, NodeBackend: made.node,
	}
	if c.servesNode() {
		starting, started := context.WithTimeout(ctx, startTime)
		s, err := openStorage(starting, c, way, log)
		started()
		if err != nil {
			return exit.With(stageHost, err)
		}
		defer func() { err = errors.Join(err, exit.With(stageStop, s.close())) }()
		config.Node = s.node
	}
	return p.runDriver(ctx, config)
}

// runDriver serves the driver and its metrics.
func (p *program) runDriver(ctx context.Context, config csikit.Config) error {
	c, log := p.config, p.log
	registry := prometheus.NewRegistry()
	var open atomic.Bool
	config.Server = csikit.ServerConfig{
		Endpoint: c.Endpoint, Logger: log, Registerer: registry, CallTimeout: c.CallTime, GraceTime: max(c.GraceTime, time.Millisecond),
		OnListening: func(address net.Addr) {
			open.Store(true)
			log.Info("csi-driver is ready", "name", config.Name, "address", address.String())
			if p.listening != nil {
				p.listening(address)
			}
		},
	}
	driver, err := csikit.New(config)
	if err != nil {
		return exit.With(stageFlags, err)
	}
	stopMetrics, err := scrape.Start(ctx, c.MetricsAddress, registry, "csi_driver", log)
	if err != nil {
		return exit.With(stageMetrics, fmt.Errorf("-metrics-bind-address: %w", err))
	}
	defer stopMetrics()
	err = driver.Run(ctx)
	if !open.Load() {
		return exit.With(stageListen, err)
	}
	log.Info("csi-driver has stopped")
	return exit.With(stageRun, err)
}
