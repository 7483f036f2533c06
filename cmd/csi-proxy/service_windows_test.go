package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows/svc"

	"github.com/csi-windows/csi-windows/cmd/internal/exit"
)

// handled is a service whose manager is the test.
type handled struct {
	*testing.T
	requests chan svc.ChangeRequest
	status   chan svc.Status
	ended    chan [2]uint32 // whether the exit code is the service's own, the exit code
}

// handle runs some work as a service.
func handle(t *testing.T, work *serviceWork) *handled {
	t.Helper()
	h := &handled{T: t, requests: make(chan svc.ChangeRequest), status: make(chan svc.Status), ended: make(chan [2]uint32, 1)}
	s := &runningService{ctx: t.Context(), work: work, entered: make(chan struct{})}
	go func() {
		own, code := s.Execute(nil, h.requests, h.status)
		h.ended <- [2]uint32{map[bool]uint32{true: 1}[own], code}
	}()
	return h
}

// next returns the next status the service reports.
func (h *handled) next() svc.Status {
	h.Helper()
	select {
	case status := <-h.status:
		return status
	case <-time.After(20 * time.Second):
		h.Fatal("it reports nothing")
		return svc.Status{}
	}
}

// send sends a control.
func (h *handled) send(request svc.ChangeRequest) {
	h.Helper()
	select {
	case h.requests <- request:
	case <-time.After(20 * time.Second):
		h.Fatalf("it does not take control %d", request.Cmd)
	}
}

// wantEnd checks how it ended.
func (h *handled) wantEnd(own, code uint32) {
	h.Helper()
	select {
	case got := <-h.ended:
		if got != [2]uint32{own, code} {
			h.Errorf("it ended with %d, want %d", got, [2]uint32{own, code})
		}
	case <-time.After(20 * time.Second):
		h.Error("it does not end")
	}
}

// C061: every way to stop is taken, and a start tells how far it is.
func TestC061_LifeOfTheService(t *testing.T) {
	t.Parallel()
	for name, control := range map[string]svc.Cmd{"stop": svc.Stop, "shutdown": svc.Shutdown, "preshutdown": svc.PreShutdown} {
		step, ready := make(chan struct{}), make(chan struct{})
		h := handle(t, &serviceWork{graceTime: time.Minute, do: func(ctx context.Context, report startReport) error {
			for range step {
				report.stepDone()
			}
			<-ready
			report.ready()
			<-ctx.Done()
			return nil
		}})
		if got := h.next(); got.State != svc.StartPending || got.CheckPoint != 1 || got.WaitHint != 60_000 {
			t.Errorf("%s: at first it is %+v", name, got)
		}
		for checkPoint := uint32(2); checkPoint < 4; checkPoint++ {
			step <- struct{}{}
			if got := h.next(); got.State != svc.StartPending || got.CheckPoint != checkPoint {
				t.Errorf("%s: while it starts it is %+v, want check point %d", name, got, checkPoint)
			}
		}
		close(step)
		close(ready)
		running := h.next()
		if running.State != svc.Running || running.Accepts != svc.AcceptStop|svc.AcceptShutdown|svc.AcceptPreShutdown || running.CheckPoint != 0 {
			t.Errorf("%s: then it is %+v", name, running)
		}
		h.send(svc.ChangeRequest{Cmd: svc.Interrogate, CurrentStatus: running})
		if got := h.next(); got != running {
			t.Errorf("%s: asked, it is %+v", name, got)
		}
		h.send(svc.ChangeRequest{Cmd: control})
		if got := h.next(); got.State != svc.StopPending || got.CheckPoint != 1 || got.WaitHint != 75_000 {
			t.Errorf("%s: while it stops it is %+v", name, got)
		}
		h.wantEnd(0, 0)
	}
}

// C058: the manager learns in which stage a start failed.
func TestC058_StageIsTheExitCode(t *testing.T) {
	t.Parallel()
	h := handle(t, &serviceWork{do: func(context.Context, startReport) error { return exit.With(stageListen, errors.New("x")) }})
	h.next()
	h.wantEnd(1, uint32(stageListen))
}

// The verbs of this system reach the manager.
func TestRunOnWindows(t *testing.T) {
	var stdout, stderr bytes.Buffer
	env := environment{GOOS: "windows", Stdout: &stdout, Stderr: &stderr}
	for args, code := range map[string]int{
		"status -service-name=csi-windows-missing":    10,
		"upgrade -service-name=csi-windows-missing":   9,
		"uninstall -service-name=csi-windows-missing": 0,
	} {
		stdout.Reset()
		stderr.Reset()
		if got := run(t.Context(), strings.Fields(args), env); got != code {
			t.Errorf("%s: exit code %d, want %d: %s%s", args, got, code, stdout.String(), stderr.String())
		}
	}
}

func TestOpenNode(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for name, c := range map[string]*config{"sim": {Host: hostSim, SimDir: filepath.Join(t.TempDir(), "node")}, "windows": {Host: hostWindows}} {
		n, err := openNode(t.Context(), c, log)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n.session == nil || n.api == nil {
			t.Errorf("%s: it is not whole: %+v", name, n)
		}
		if err := n.close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEventLogOfTheMachine(t *testing.T) {
	t.Parallel()
	if all := openEvents([]string{"-v=1"}); all != nil {
		t.Error("a program in a console has an event log")
	}
	all := openEvents([]string{"-windows-service"})
	if all == nil {
		t.Fatal("there is no event log")
	}
	all.report(eventStarted, "a test")
	all.close()
	select {
	case <-all.ended:
	default:
		t.Error("the event was not written")
	}
}

func TestProgramsFolder(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{defaultServiceName: `\csi-proxy`, "other": `\csi-proxy-other`} {
		v := &verbRun{config: &verbConfig{ServiceName: name}}
		if folder, err := v.installDir(); err != nil || !strings.HasSuffix(folder, want) || !filepath.IsAbs(folder) {
			t.Errorf("%s, %v", folder, err)
		}
	}
}
