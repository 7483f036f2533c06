package wine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/internal/freeport"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/wire"
)

// installation is csi-proxy installed by its own verbs.
type installation struct {
	*testing.T
	name, folder string
	flags        []string
	control      string // address of the simulated node's control interface
	metrics      string // address of the metrics
}

// serviceStatus is what status -o json prints, as far as the tests look at it.
type serviceStatus struct {
	State           string   `json:"state"`
	PID             int      `json:"pid"`
	StartType       string   `json:"startType"`
	Program         string   `json:"program"`
	Args            []string `json:"args"`
	RunningVersion  string   `json:"runningVersion"`
	ExitCode        uint32   `json:"exitCode"`
	ServiceExitCode uint32   `json:"serviceExitCode"`
	APIs            []string `json:"apis"`
}

// newInstallation says what is to be installed: folders and values with spaces and
// backslashes at their ends. Whatever of it is left when the test ends is removed.
func newInstallation(t *testing.T, name string) *installation {
	t.Helper()
	i := &installation{T: t, name: name, folder: filepath.Join(t.TempDir(), "the place"), control: freeport.Address(t), metrics: freeport.Address(t)}
	folder := filepath.Join(t.TempDir(), "node data")
	i.flags = []string{
		"-host=sim", "-sim-dir=" + folder + `\`, "-sim-control=" + i.control, "-metrics-bind-address=" + i.metrics, "-grace-period=1s",
		"-logtostderr=false", "-log_file", folder + ` log.txt`,
	}
	t.Cleanup(func() { _, _ = i.verb("uninstall", "-install-dir="+i.folder) })
	return i
}

// scrape reads the service's metrics.
func (i *installation) scrape() string {
	i.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport}).Get("http://" + i.metrics + "/metrics")
	if err != nil {
		i.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		i.Fatal(err)
	}
	return string(text)
}

// verb runs a verb of the program under test for the service.
func (i *installation) verb(verb string, args ...string) (exitCode int, output string) {
	i.Helper()
	return run(i.T, append([]string{verb, "-service-name=" + i.name}, args...)...)
}

// mustInstall installs the service with its flags and some more.
func (i *installation) mustInstall(more ...string) {
	i.Helper()
	args := append([]string{"-install-dir=" + i.folder}, i.flags...)
	if code, output := i.verb("install", append(args, more...)...); code != 0 {
		i.Fatalf("install: exit code %d: %s", code, output)
	}
}

// status asks for the status; the exit code has to say the same.
func (i *installation) status() serviceStatus {
	i.Helper()
	code, output := i.verb("status", "-o=json")
	text, _, _ := strings.Cut(output, "\ncsi-proxy: ")
	var status serviceStatus
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		i.Fatalf("status: %v in %s", err, output)
	}
	if (code == 0) != (status.State == "running") || code != 0 && code != 10 {
		i.Errorf("exit code %d while the service is %s", code, status.State)
	}
	return status
}

// wantRunning checks that the service runs and serves every API.
func (i *installation) wantRunning() serviceStatus {
	i.Helper()
	status := i.status()
	if status.State != "running" || status.PID == 0 || status.StartType != "automatic" || status.RunningVersion == "" || len(status.APIs) != len(wire.APIs()) {
		i.Errorf("the service is %+v", status)
	}
	return status
}

// connect opens a client, which is to last for the whole test.
func (i *installation) connect() *client.Client {
	i.Helper()
	c, err := client.New(client.Options{})
	if err != nil {
		i.Fatal(err)
	}
	i.Cleanup(func() { _ = c.Close() })
	return c
}

// newer makes a copy of the program under test that differs from it.
func (i *installation) newer() string {
	i.Helper()
	path := filepath.Join(i.TempDir(), "downloaded.exe")
	from, err := os.Open(bed.Environment(i.T, bed.ProxyVariable))
	if err != nil {
		i.Fatal(err)
	}
	defer from.Close()
	to, err := os.Create(path)
	if err != nil {
		i.Fatal(err)
	}
	_, copyErr := io.Copy(to, from)
	_, writeErr := to.WriteString("newer")
	if err := errors.Join(copyErr, writeErr, to.Close()); err != nil {
		i.Fatal(err)
	}
	return path
}

// TestC061_WholeLife installs, starts, stops, upgrades, kills, restarts and removes
// csi-proxy.exe by Wine's service manager. It serves a simulated node.
func TestC061_WholeLife(t *testing.T) {
	i := newInstallation(t, "csi-proxy-life")
	i.mustInstall()
	first := i.wantRunning()
	i.mustInstall()
	if again := i.wantRunning(); again.PID != first.PID {
		t.Error("a second installation disturbed the service")
	}
	wanted := append(slices.Clone(i.flags), "-windows-service")
	if !slices.Equal(first.Args, wanted) || first.Program != filepath.Join(i.folder, "csi-proxy.exe") {
		t.Errorf("it is registered as %s %q, want %q", first.Program, first.Args, wanted)
	}
	c := i.connect()
	if _, err := c.ListDisks(t.Context()); err != nil {
		t.Fatal(err)
	}

	upgraded := i.upgradeDuringACall(c)
	if _, err := c.ListDisks(t.Context()); err != nil {
		t.Errorf("the client does not find the upgraded service: %v", err)
	}
	i.killAndStart(upgraded)
	if _, err := c.ListDisks(t.Context()); err != nil {
		t.Errorf("the client does not find the restarted service: %v", err)
	}
	i.stopAndStart()
	i.changeFlags()
	i.remove()
}

// upgradeDuringACall replaces the program while a call hangs in the node.
func (i *installation) upgradeDuringACall(c *client.Client) serviceStatus {
	i.Helper()
	node := control.NewClient(i.control)
	defer node.Close()
	if err := node.AddFault(i.Context(), sim.Fault{Call: "*", Count: -1, Hang: true}); err != nil {
		i.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := c.ListDisks(context.Background())
		answered <- err
	}()
	for deadline := time.Now().Add(readyTime); !strings.Contains(i.scrape(), "csi_proxy_calls_in_flight 1"); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			i.Fatal("the call does not reach the service")
		}
	}
	code, output := runCopy(i.T, i.newer(), "upgrade", "-service-name="+i.name)
	if code != 0 {
		i.Fatalf("upgrade: exit code %d: %s", code, output)
	}
	select {
	case err := <-answered:
		if !host.IsKind(err, host.KindUnavailable) {
			i.Errorf("the call in flight was answered with %v, want unavailable", err)
		}
	case <-time.After(readyTime):
		i.Error("the call in flight was not answered")
	}
	status := i.wantRunning()
	if text, err := os.ReadFile(status.Program); err != nil || !strings.HasSuffix(string(text), "newer") {
		i.Errorf("the old program is still there: %v", err)
	}
	if _, err := os.Stat(status.Program + ".old"); err == nil {
		i.Error("the old program was kept although the new one runs")
	}
	return status
}

// service opens it at the manager.
func (i *installation) service() *mgr.Service {
	i.Helper()
	service, err := bed.ServiceManager(i.T).OpenService(i.name)
	if err != nil {
		i.Fatal(err)
	}
	return service
}

// killAndStart ends the process without a word and lets the manager start it anew.
func (i *installation) killAndStart(before serviceStatus) {
	i.Helper()
	process, err := os.FindProcess(before.PID)
	if err != nil {
		i.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		i.Fatal(err)
	}
	_, _ = process.Wait()
	if status := i.status(); status.State != "stopped" || len(status.APIs) != 0 {
		i.Errorf("a killed service is %+v", status)
	}
	service := i.service()
	defer service.Close()
	if err := service.Start(); err != nil {
		i.Fatal(err)
	}
	bed.WaitState(i.T, service, svc.Running)
	if status := i.wantRunning(); status.PID == before.PID {
		i.Error("the killed process runs again")
	}
}

// stopAndStart stops it by the manager and starts it by another installation.
func (i *installation) stopAndStart() {
	i.Helper()
	service := i.service()
	defer service.Close()
	if _, err := service.Control(svc.Stop); err != nil {
		i.Fatal(err)
	}
	bed.WaitState(i.T, service, svc.Stopped)
	if status := i.status(); status.State != "stopped" || status.ExitCode != 0 {
		i.Errorf("a stopped service is %+v", status)
	}
	if code, output := i.verb("upgrade", "-start=false"); code != 0 {
		i.Errorf("upgrade: exit code %d: %s", code, output)
	}
	if status := i.status(); status.State != "stopped" {
		i.Errorf("a service that was not to be started is %s", status.State)
	}
	i.mustInstall()
	i.wantRunning()
}

// changeFlags changes the flags, to some that are right and to some that the
// service cannot start with.
func (i *installation) changeFlags() {
	i.Helper()
	before := i.wantRunning()
	args := append([]string{"-install-dir=" + i.folder}, i.flags...)
	i.mustInstall("-v=1")
	changed := i.wantRunning()
	if changed.PID == before.PID || !slices.Contains(changed.Args, "-v=1") {
		i.Errorf("it was %+v and is %+v", before, changed)
	}
	code, output := i.verb("install", append(args, "-metrics-bind-address=203.0.113.1:1")...)
	if code != 9 || !strings.Contains(output, "exit code 6") || !strings.Contains(output, "the old service is restored and runs") {
		i.Errorf("exit code %d: %s", code, output)
	}
	if restored := i.wantRunning(); !slices.Equal(restored.Args, changed.Args) {
		i.Errorf("its flags are %q, want %q", restored.Args, changed.Args)
	}
	for _, wrong := range []string{"-grace-period=1h", "-log_file=relative", "-no-such-flag"} {
		if code, output := i.verb("install", append(args, wrong)...); code != 2 {
			i.Errorf("%s: exit code %d: %s", wrong, code, output)
		}
	}
	if after := i.wantRunning(); !slices.Equal(after.Args, changed.Args) {
		i.Errorf("wrong flags changed it to %q", after.Args)
	}
}

// remove removes everything, twice.
func (i *installation) remove() {
	i.Helper()
	const sources = `SYSTEM\CurrentControlSet\Services\EventLog\Application\csi-proxy`
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, sources, registry.QUERY_VALUE)
	if err != nil {
		i.Errorf("there is no event source: %v", err)
	}
	_ = key.Close()
	for range 2 {
		if code, output := i.verb("uninstall", "-install-dir="+i.folder); code != 0 {
			i.Errorf("uninstall: exit code %d: %s", code, output)
		}
	}
	if status := i.status(); status.State != "not installed" {
		i.Errorf("it is %+v", status)
	}
	if _, err := os.Stat(i.folder); err == nil {
		i.Error("its folder is still there")
	}
	if _, err := registry.OpenKey(registry.LOCAL_MACHINE, sources, registry.QUERY_VALUE); err == nil {
		i.Error("its event source is still there")
	}
	if canDial(i.T, wire.API{Group: "disk", Version: "v1"}) {
		i.Error("its pipes are still there")
	}
}
