package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"
	"time"

	"github.com/csi-windows/csi-windows/cmd/internal/exit"
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
	if len(args) > 0 {
		if verb, found := verbs()[args[0]]; found {
			return runVerb(ctx, args[0], verb, args[1:], env)
		}
	}
	logFlags := flag.NewFlagSet("log", flag.ContinueOnError)
	addLogFlags(logFlags)
	c, err := parseConfig(args, env, logFlags)
	switch {
	case errors.Is(err, flag.ErrHelp):
		printUsage(env.Stdout, env, logFlags)
		return 0
	case err == nil && c.ShowVersion:
		fmt.Fprintln(env.Stdout, "csi-proxy", version.Full())
		return 0
	}

	work := &serviceWork{events: openEvents(args)}
	defer work.events.close()
	if err != nil {
		return work.failEarly(args, env, err)
	}
	closeLogs, err := openLogs(logFlags, c.LogFiles, func(err error) {
		work.events.report(eventLogUnwritable, "Records of the log are lost: %v", err)
	})
	if err != nil {
		return work.failEarly(args, env, exit.With(stageLog, err))
	}
	defer closeLogs()
	p := &program{config: c, log: newLogger(), events: work.events}
	work.graceTime, work.do = c.GraceTime, p.serve
	if c.WindowsService {
		err = runService(ctx, work)
	} else {
		stopping, release := signal.NotifyContext(ctx, stopSignals()...)
		defer release()
		err = work.do(stopping, startReport{})
	}
	if err != nil {
		p.log.Error("csi-proxy failed", "error", err, "exitCode", exit.Code(err))
	}
	work.events.reportEnd(err)
	return exit.Code(err)
}

// serviceWork is what runs, in a console or under the service control manager.
type serviceWork struct {
	do        func(ctx context.Context, report startReport) error
	graceTime time.Duration // how long calls in flight may go on after a stop
	events    *events
}

// failEarly reports a failure that came before the program could serve. The service
// control manager learns of it, if it is what started us, instead of waiting for a
// sign of life until its time runs out.
func (w *serviceWork) failEarly(args []string, env environment, err error) int {
	fmt.Fprintf(env.Stderr, "csi-proxy: %v\n", err)
	w.events.reportEnd(err)
	if env.GOOS == "windows" && asksForService(args) {
		w.do = func(context.Context, startReport) error { return err }
		_ = runService(context.Background(), w)
	}
	return exit.Code(err)
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
