package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"

	"github.com/csi-windows/csi-windows/cmd/internal/version"
)

// environment is what the program takes from its surroundings besides its
// command line.
type environment struct {
	GOOS           string
	Stdout, Stderr io.Writer
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, env environment) int {
	logFlags := flag.NewFlagSet("log", flag.ContinueOnError)
	addLogFlags(logFlags)
	c, err := parseConfig(args, env, logFlags)
	switch {
	case errors.Is(err, flag.ErrHelp):
		printUsage(env.Stdout, env, logFlags)
		return 0
	case err != nil:
		fmt.Fprintf(env.Stderr, "csi-proxy: %v\n", err)
		return failUnderService(args, env, err)
	case c.ShowVersion:
		fmt.Fprintln(env.Stdout, "csi-proxy", version.Full())
		return 0
	}

	closeLogs, err := openLogs(logFlags, c.LogFiles, func(error) {})
	if err != nil {
		fmt.Fprintf(env.Stderr, "csi-proxy: %v\n", err)
		return failUnderService(args, env, failed(stageLog, err))
	}
	defer closeLogs()
	log := newLogger()
	work := func(ctx context.Context, ready func()) error { return serve(ctx, c, log, ready) }
	if c.WindowsService {
		err = runService(ctx, work)
	} else {
		stopping, release := signal.NotifyContext(ctx, stopSignals()...)
		defer release()
		err = work(stopping, func() {})
	}
	if err != nil {
		log.Error("csi-proxy failed", "error", err, "exitCode", exitCode(err))
	}
	return exitCode(err)
}

// failUnderService reports a failure that came before the program could serve.
// The service control manager learns of it, if it is what started us, instead of
// waiting for a sign of life until its time runs out.
func failUnderService(args []string, env environment, err error) int {
	if env.GOOS == "windows" && asksForService(args) {
		_ = runService(context.Background(), func(context.Context, func()) error { return err })
	}
	return exitCode(err)
}

// asksForService looks for -windows-service in a command line that may be
// wrong elsewhere.
func asksForService(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "-windows-service", "--windows-service", "-windows-service=true", "--windows-service=true":
			return true
		}
	}
	return false
}
