package main

import (
	"context"
	"log/slog"
	"os"

	"golang.org/x/sys/windows"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// openMachine opens this machine.
func openMachine(context.Context, *config, *slog.Logger) (*machine, error) {
	session, err := cim.Connect()
	if err != nil {
		return nil, err
	}
	return &machine{session: session, api: win32.System(), close: session.Close}, nil
}

// stopSignals are the signals that ask the program to stop: Ctrl-C and
// Ctrl-Break, and the end of a container.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt, windows.SIGTERM} }
