//go:build !windows

package main

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/cmd/internal/service"
)

// stopSignals are the signals that ask the program to stop.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt, unix.SIGTERM} }

// runService fails: there is no service control manager here.
func runService(context.Context, *serviceWork) error {
	return exit.With(stageService, errors.New("-windows-service: works on Windows only"))
}

// openEvents opens nothing: there is no event log here.
func openEvents([]string) *events { return nil }

// serviceManager has no services: the verbs that ask it are refused before.
func serviceManager() service.Manager { return nil }

// programsFolder is not asked for here.
func programsFolder() (string, error) { return "", errors.ErrUnsupported }
