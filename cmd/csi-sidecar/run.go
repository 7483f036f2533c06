package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"syscall" //nolint:depguard // for the names of signals, which are the same on every system

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/csi-windows/csi-windows/cmd/internal/version"
	"github.com/csi-windows/csi-windows/sidecar/registrar"
)

// environment is what the program takes from its surroundings besides its
// command line.
type environment struct {
	GOOS     string
	Getenv   func(name string) string
	Hostname func() (string, error)
	// AccountFolder has the files of the pod's service account; empty for the
	// usual one.
	AccountFolder  string
	Stdout, Stderr io.Writer
}

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, env environment) int {
	s, f, err := parse(args, env)
	switch {
	case errors.Is(err, flag.ErrHelp):
		printUsage(env.Stdout, f)
		return exitOK
	case err != nil:
		fmt.Fprintf(env.Stderr, "%s: %v\n", s.Program, err)
		return exitUsage
	case s.ShowVersion:
		fmt.Fprintln(env.Stdout, s.Program, version.Full())
		return exitOK
	case s.RegistrarMode == modeProbe:
		return probe(s, env)
	}
	stopping, release := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer release()
	log := slog.New(logr.ToSlogHandler(klog.NewKlogr()))
	if err := serve(stopping, s, env, log); err != nil {
		log.Error(s.Program+" failed", "error", err)
		return exitFailed
	}
	return exitOK
}

// probe is the whole program as an exec probe of a registrar.
func probe(s *settings, env environment) int {
	err := registrar.Probe(s.Registrar.KubeletRegistrationPath)
	switch {
	case errors.Is(err, registrar.ErrProbeBlind):
		fmt.Fprintf(env.Stderr, "%s: %v\n", s.Program, err)
		return exitOK
	case err != nil:
		fmt.Fprintf(env.Stderr, "%s: %v\n", s.Program, err)
		return exitFailed
	}
	return exitOK
}

// printUsage prints the flags.
func printUsage(out io.Writer, f *flags) {
	fmt.Fprintf(out, "Usage: %s [flags]\n", f.Name())
	f.SetOutput(out)
	f.PrintDefaults()
	f.SetOutput(io.Discard)
}
