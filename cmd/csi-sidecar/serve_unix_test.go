//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/csi-windows/csi-windows/internal/freeport"
)

// driver is just enough of one to be found.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
}

func (driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: "d.example.com"}, nil
}

func (driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

// serveDriver serves a driver at a socket until the function given back is called.
func serveDriver(t *testing.T, socket string) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, driver{})
	csi.RegisterControllerServer(server, driver{})
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	return func() { server.Stop(); <-done }
}

// shortDir is a folder whose path leaves room for the names of sockets, which the
// name of a test would not.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// begin runs a command line until the function given back is called, which
// returns how it ended.
func begin(t *testing.T, args ...string) (stop func() error) {
	t.Helper()
	env := surroundings()
	s := mustParse(t, env, args...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, s, env, slog.New(slog.DiscardHandler)) }()
	return func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(30 * time.Second):
			return errors.New("it does not end")
		}
	}
}

// eventually waits for an answer of an address.
func eventually(t *testing.T, url string, isWanted func(code int, text string) bool) {
	t.Helper()
	var last string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get(url)
		if err != nil {
			last = err.Error()
			continue
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if isWanted(answer.StatusCode, string(text)) {
			return
		}
		last = fmt.Sprint(answer.StatusCode, " ", string(text))
	}
	t.Fatalf("%s: %s", url, last)
}

func is(want int) func(int, string) bool {
	return func(code int, _ string) bool { return code == want }
}

// The registrar and the liveness probe live in one process, and the second tells
// of a driver that the first is still waiting for.
func TestRegistrarAndLivenessBesideADriverThatComesAndGoes(t *testing.T) {
	dir := shortDir(t)
	socket := filepath.Join(dir, "csi.sock")
	health, metrics := freeport.Address(t), freeport.Address(t)
	stop := begin(t, "csi-sidecar", "--controllers=node-driver-registrar,livenessprobe", "--csi-address=unix://"+socket,
		"--kubelet-registration-path=/var/lib/kubelet/plugins/d/csi.sock", "--plugin-registration-path="+dir,
		"--livenessprobe-http-endpoint="+health, "--http-endpoint="+metrics)
	eventually(t, "http://"+health+"/healthz", func(code int, _ string) bool { return code >= 500 })
	stopDriver := serveDriver(t, socket)
	eventually(t, "http://"+health+"/healthz", is(http.StatusOK))
	registration := filepath.Join(dir, "d.example.com-reg.sock")
	eventually(t, "http://"+metrics+"/metrics", func(code int, text string) bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		return code == http.StatusOK && strings.Contains(text, `csi_sidecar_component_up{component="node-driver-registrar"} 1`) && slices.Contains(files, registration)
	})
	stopDriver()
	eventually(t, "http://"+health+"/healthz", func(code int, _ string) bool { return code >= 500 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if files, _ := filepath.Glob(registration); len(files) > 0 {
		t.Error("the registration socket is left behind")
	}
}

func TestTheRegistrarAloneTellsOfTheRegistration(t *testing.T) {
	dir := shortDir(t)
	socket, address := filepath.Join(dir, "csi.sock"), freeport.Address(t)
	stop := begin(t, "csi-node-driver-registrar", "--csi-address="+socket, "--kubelet-registration-path=/var/lib/kubelet/plugins/d/csi.sock",
		"--plugin-registration-path="+dir, "--http-endpoint="+address)
	eventually(t, "http://"+address+"/healthz", is(http.StatusServiceUnavailable))
	defer serveDriver(t, socket)()
	eventually(t, "http://"+address+"/healthz", is(http.StatusOK))
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestAStopBeforeTheDriverIsThereIsNoFailure(t *testing.T) {
	stop := begin(t, "csi-node-driver-registrar", "--csi-address="+filepath.Join(t.TempDir(), "no.sock"), "--kubelet-registration-path=/p/csi.sock")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestWithoutAnAPIServerItSaysWhatIsMissing(t *testing.T) {
	env := surroundings()
	s := mustParse(t, env, "csi-attacher", "--csi-address="+filepath.Join(t.TempDir(), "no.sock"))
	// It ends of itself.
	if err := serve(t.Context(), s, env, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "kubeconfig") {
		t.Errorf("%v; want a word about the kubeconfig", err)
	}
}

// A port that somebody else has is told by the flag that named it.
func TestAPortInUseNamesTheFlag(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	address := listener.Addr().String()
	for _, c := range []struct {
		flag string
		args []string
	}{
		{"--http-endpoint", []string{"csi-node-driver-registrar", "--kubelet-registration-path=/p/csi.sock"}},
		{"--metrics-address", []string{"csi-node-driver-registrar", "--kubelet-registration-path=/p/csi.sock"}},
		{"--http-endpoint", []string{"livenessprobe"}},
		{"--metrics-address", []string{"livenessprobe", "--health-port=" + strings.TrimPrefix(freeport.Address(t), "127.0.0.1:")}},
	} {
		env := surroundings()
		s := mustParse(t, env, append(c.args, c.flag+"="+address, "--csi-address="+filepath.Join(t.TempDir(), "no.sock"))...)
		err := serve(t.Context(), s, env, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), c.flag) || !strings.Contains(err.Error(), "in use") {
			t.Errorf("%q: %v; want one that names %s", c.args, err, c.flag)
		}
	}
}
