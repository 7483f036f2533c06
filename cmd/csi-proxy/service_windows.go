package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"

	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/cmd/internal/service"
)

// serviceName is only a label: a process that is one service is found by the
// manager whatever name it gives. Source: SERVICE_TABLE_ENTRYW.
const serviceName = "csi-proxy"

// stopSignals are the signals that ask the program to stop: Ctrl-C and
// Ctrl-Break, and the closing of the console, a log-off or a shutdown.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt, windows.SIGTERM} }

// connectTime is how long a process that does not look like a service may wait
// for the manager. Windows refuses it at once; Wine waits for ten seconds.
const connectTime = 3 * time.Second

// runService runs the work as a Windows service until the manager stops it or
// the work ends. Whether a manager is there is found by connecting to it, since
// no other sign is sure: a process started otherwise is refused.
// Source: StartServiceCtrlDispatcherW, ERROR_FAILED_SERVICE_CONTROLLER_CONNECT.
func runService(ctx context.Context, work *serviceWork) error {
	s := &runningService{ctx: ctx, work: work, entered: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- svc.Run(serviceName, s) }()
	var limit <-chan time.Time
	if is, err := svc.IsWindowsService(); err != nil || !is {
		limit = time.After(connectTime)
	}
	err := error(windows.ERROR_FAILED_SERVICE_CONTROLLER_CONNECT)
	select {
	case err = <-ended:
	case <-s.entered:
		err = <-ended
	case <-limit:
	}
	switch {
	case errors.Is(err, windows.ERROR_FAILED_SERVICE_CONTROLLER_CONNECT):
		return exit.With(stageService, fmt.Errorf("-windows-service: not started by the service control manager (Windows error %d); leave the flag out to run in a console", uint32(windows.ERROR_FAILED_SERVICE_CONTROLLER_CONNECT)))
	case err != nil:
		return exit.With(stageService, fmt.Errorf("-windows-service: %w", err))
	}
	return s.result
}

// accepted are the controls a running service takes. The manager sends preshutdown
// while the system still works, and gives it more time than a shutdown.
//
// Source: HandlerEx, SERVICE_CONTROL_PRESHUTDOWN.
const accepted = svc.AcceptStop | svc.AcceptShutdown | svc.AcceptPreShutdown

// stepsMax is more than a start has steps.
const stepsMax = 16

// runningService is the work as the manager sees it.
type runningService struct {
	ctx     context.Context
	work    *serviceWork
	entered chan struct{} // closed when the manager has called
	result  error
}

// Execute implements svc.Handler. A failure of the work becomes the
// service-specific exit code of its stage.
func (s *runningService) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	close(s.entered)
	pending := svc.Status{State: svc.StartPending, CheckPoint: 1, WaitHint: milliseconds(2 * startTime)}
	status <- pending
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	steps, ready, ended := make(chan struct{}, stepsMax), make(chan struct{}), make(chan error, 1)
	report := startReport{step: func() { steps <- struct{}{} }, ready: func() { close(ready) }}
	go func() { ended <- s.work.do(ctx, report) }()

	for {
		select {
		case <-steps:
			// The manager watches the number grow. Source: SERVICE_STATUS, dwCheckPoint.
			if pending.State == svc.StartPending {
				pending.CheckPoint++
				status <- pending
			}
		case <-ready:
			ready = nil
			pending = svc.Status{State: svc.Running, Accepts: accepted}
			status <- pending
		case request := <-requests:
			switch request.Cmd {
			case svc.Interrogate:
				status <- request.CurrentStatus
			case svc.Stop, svc.Shutdown, svc.PreShutdown:
				pending = svc.Status{State: svc.StopPending, CheckPoint: 1, WaitHint: milliseconds(s.work.graceTime + stopMargin)}
				status <- pending
				stop()
			}
		case s.result = <-ended:
			code := exit.Code(s.result)
			return code != 0, uint32(code)
		}
	}
}

// milliseconds is a duration as the manager takes it: how long a pending state
// may last before it has to worry. Source: SERVICE_STATUS, dwWaitHint.
func milliseconds(d time.Duration) uint32 { return uint32(d.Milliseconds()) }

// serviceManager is that of this machine.
func serviceManager() service.Manager { return service.Windows{} }

// programsFolder is where programs are installed, which ordinary users cannot change.
func programsFolder() (string, error) {
	return windows.KnownFolderPath(windows.FOLDERID_ProgramFiles, windows.KF_FLAG_DEFAULT)
}
