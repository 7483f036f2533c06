//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// endTime is how long anything here may take; it is far more than it takes.
const endTime = time.Minute

// running is a program that serves a simulated node in this process.
type running struct {
	*testing.T
	folder string // with the sockets and the control socket
	stop   context.CancelFunc
	ended  chan error
	events *recordedEvents

	mu  sync.Mutex
	log bytes.Buffer
}

// Write collects the log.
func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(p)
}

func (r *running) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// startProgram serves until stop is called or the test ends.
func startProgram(t *testing.T, flags ...string) *running {
	t.Helper()
	r := &running{T: t, folder: shortFolder(t), ended: make(chan error, 1), events: &recordedEvents{}}
	ready := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	c := r.config(append(flags, "-sim-control="+r.controlSocket())...)
	log := slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p := &program{config: c, log: log, events: newEvents(r.events)}
	t.Cleanup(p.events.close)
	go func() { r.ended <- p.serve(ctx, startReport{ready: func() { close(ready) }}) }()
	t.Cleanup(func() {
		stop()
		<-r.ended
	})
	select {
	case <-ready:
	case err := <-r.ended:
		r.ended <- err
		t.Fatalf("it ended before it was ready: %v", err)
	case <-time.After(endTime):
		t.Fatal("it is not ready")
	}
	return r
}

// shortFolder makes a folder whose path leaves room for a socket's name.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

func (r *running) sockets() string       { return filepath.Join(r.folder, "s") }
func (r *running) controlSocket() string { return filepath.Join(r.folder, "c.sock") }

// config is that of a copy with this one's sockets and a node of its own.
func (r *running) config(flags ...string) *config {
	r.Helper()
	c, err := parse("linux", append(flags, "-sim-dir="+r.TempDir(), "-socket-dir="+r.sockets())...)
	if err != nil {
		r.Fatal(err)
	}
	return c
}

// end stops the program and returns what it ended with.
func (r *running) end() error {
	r.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		r.ended <- err // for the cleanup
		return err
	case <-time.After(endTime):
		r.Fatal("it does not stop")
		return nil
	}
}

// connect opens a client, and the control of the node.
func (r *running) connect() (*client.Client, *control.Client) {
	r.Helper()
	c, err := client.New(client.Options{Place: pipe.Place{Dir: r.sockets()}})
	if err != nil {
		r.Fatal(err)
	}
	node := control.NewClient(r.controlSocket())
	r.Cleanup(func() {
		_ = c.Close()
		node.Close()
	})
	return c, node
}

func TestC061_VersionAndAPIsAreVisible(t *testing.T) {
	t.Parallel()
	r := startProgram(t)
	for _, want := range []string{"csi-proxy starts", "version=", "host=sim", "csi-proxy is ready", "disk/v1,volume/v1alpha1"} {
		if !strings.Contains(r.text(), want) {
			t.Errorf("the log does not say %q:\n%s", want, r.text())
		}
	}
	r.events.wait(t, "1 Info csi-proxy ", "has started and serves disk/v1alpha1,")
	c, _ := r.connect()
	info, err := c.GetServerInfo(t.Context())
	if err != nil || info.Version == "" || len(info.APIs) != len(wire.APIs()) {
		t.Errorf("the server says %+v, %v", info, err)
	}
	if err := r.end(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(r.sockets(), "*")); err != nil || len(left) > 0 {
		t.Errorf("sockets are left behind: %q, %v", left, err)
	}
}

func TestC058_SecondCopySaysWhichPipeIsInUse(t *testing.T) {
	t.Parallel()
	r := startProgram(t)
	err := (&program{config: r.config(), log: slog.New(slog.DiscardHandler)}).serve(t.Context(), startReport{ready: func() { t.Error("the second copy is ready") }})
	if exit.Code(err) != int(stageListen) || !errors.Is(err, pipe.ErrInUse) || !strings.Contains(err.Error(), "pipe csi-proxy-disk-v1alpha1 is in use") {
		t.Errorf("the second copy ended with %v, exit code %d", err, exit.Code(err))
	}
	c, _ := r.connect()
	if err := c.Connect(t.Context()); err != nil {
		t.Errorf("the first copy no longer serves: %v", err)
	}
}

func TestC058_FailedPipeClosesTheOthers(t *testing.T) {
	t.Parallel()
	r := &running{T: t, folder: shortFolder(t)}
	last := filepath.Join(r.sockets(), pipe.Name(wire.GroupExtension, "v1alpha1")+".sock")
	if err := errors.Join(os.Mkdir(r.sockets(), 0o700), os.WriteFile(last, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	err := (&program{config: r.config(), log: slog.New(slog.DiscardHandler)}).serve(t.Context(), startReport{ready: func() { t.Error("it is ready") }})
	if exit.Code(err) != int(stageListen) || !strings.Contains(err.Error(), "csi-proxy-extension-v1alpha1") {
		t.Errorf("it ended with %v, exit code %d", err, exit.Code(err))
	}
	if left, err := filepath.Glob(filepath.Join(r.sockets(), "*")); err != nil || len(left) != 1 {
		t.Errorf("open sockets: %q, %v", left, err)
	}
}

func TestC061_StopAnswersCallsWithinTheGraceTime(t *testing.T) {
	t.Parallel()
	r := startProgram(t, "-grace-period=50ms", "-metrics-bind-address=127.0.0.1:0")
	c, node := r.connect()
	if err := node.AddFault(t.Context(), sim.Fault{Call: "*", Count: -1, Hang: true}); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := c.ListMounts(context.Background())
		answered <- err
	}()
	waitFor(t, "the call is in flight", func() bool { return strings.Contains(r.scrape(), "csi_proxy_calls_in_flight 1") })
	_ = r.end() // the node's own end is not what is tested here
	select {
	case err := <-answered:
		if !host.IsKind(err, host.KindUnavailable) {
			t.Errorf("the call in flight was answered with %v, want unavailable", err)
		}
	case <-time.After(endTime):
		t.Error("the call in flight was not answered")
	}
	r.events.wait(t, "32 Warning Calls had to be cut off: ")
}

// waitFor waits until something holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(endTime); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("it never came that %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func TestMetricsCountCalls(t *testing.T) {
	t.Parallel()
	r := startProgram(t, "-metrics-bind-address=127.0.0.1:0")
	c, _ := r.connect()
	if err := c.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetDiskStats(t.Context(), 99); !host.IsKind(err, host.KindNotFound) {
		t.Fatalf("disk 99: %v", err)
	}
	text := r.scrape()
	for _, want := range []string{
		`csi_proxy_calls_total{code="OK",group="disk",method="Rescan",version="v1"} 1`,
		`csi_proxy_calls_total{code="NotFound",group="disk",method="GetDiskStats",version="v1"} 1`,
		`csi_proxy_call_duration_seconds_count{group="disk",method="Rescan"} 1`,
		"csi_proxy_hung_calls 0", "csi_proxy_build_info{",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// scrape reads the metrics from the address that the log tells.
func (r *running) scrape() string {
	r.Helper()
	found := regexp.MustCompile(`metrics are served" address=(\S+)`).FindStringSubmatch(r.text())
	if found == nil {
		r.Fatalf("the log does not tell the address:\n%s", r.text())
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://"+found[1]+"/metrics", nil)
	if err != nil {
		r.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		r.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}

func TestC098_NoSecretIsLogged(t *testing.T) {
	t.Parallel()
	r := startProgram(t, "-metrics-bind-address=127.0.0.1:0")
	c, node := r.connect()
	const secret = "MARKER-53cr3t!!"
	ctx := t.Context()
	err := errors.Join(
		node.SetSMBServer(ctx, sim.SMBServer{Name: "srv", Users: map[string]string{"u": "other"}, Shares: []sim.SMBShare{{Name: "s", Folder: t.TempDir()}}}),
		node.SetISCSITarget(ctx, sim.ISCSITarget{IQN: "iqn.2026-01.x:t", Portals: []string{"192.0.2.1:3260"}, ChapUser: "u", ChapSecret: "another-one-12"}),
		c.StartService(ctx, "MSiSCSI"),
		c.AddTargetPortal(ctx, host.TargetPortal{Address: "192.0.2.1"}),
	)
	if err != nil {
		t.Fatal(err)
	}
	failures := errors.Join(
		c.NewSmbGlobalMapping(ctx, `\\srv\s`, "", "u", secret),
		c.ConnectTarget(ctx, host.TargetPortal{Address: "192.0.2.1"}, "iqn.2026-01.x:t", host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: "u", ChapSecret: secret}),
		c.SetMutualChapSecret(ctx, secret+secret),
	)
	for where, text := range map[string]string{"log": r.text(), "errors": failures.Error(), "metrics": r.scrape()} {
		if strings.Contains(text, "MARKER") {
			t.Errorf("a secret is in the %s:\n%s", where, text)
		}
	}
	if !strings.Contains(r.text(), "NewSmbGlobalMapping") {
		t.Errorf("the log says nothing of the calls:\n%s", r.text())
	}
}
