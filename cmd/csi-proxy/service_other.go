//go:build !windows

package main

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// stopSignals are the signals that ask the program to stop.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt, unix.SIGTERM} }

// runService fails: there is no service control manager here.
func runService(context.Context, func(ctx context.Context, ready func()) error) error {
	return failed(stageService, errors.New("-windows-service: works on Windows only"))
}
