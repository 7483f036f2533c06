package csikit

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/windows"

	"github.com/csi-windows/csi-windows/internal/endpoint"
	endpoints "github.com/csi-windows/csi-windows/test/endpoint"
)

func TestANamedPipeIsServedAndHasOneServer(t *testing.T) {
	own := endpoints.New(t)
	name := strings.TrimPrefix(own, "npipe:")
	s := serve(t, &fakeServices{}, func(c *ServerConfig) { c.Endpoint = "npipe:" + strings.ReplaceAll(name, `\`, "/") })
	if _, err := csi.NewIdentityClient(endpoints.Dial(t, own)).Probe(t.Context(), &csi.ProbeRequest{}); err != nil {
		t.Error(err)
	}
	second, err := NewServer(ServerConfig{Endpoint: own, Services: Services{Identity: &fakeServices{}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); !errors.Is(err, errEndpointInUse) || !strings.Contains(err.Error(), name) {
		t.Errorf("a second server: %v", err)
	}
	if err := s.probe(t.Context()); err != nil {
		t.Errorf("the first server, after a second one was started: %v", err)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	listener, err := listen(t.Context(), endpoint.Endpoint{Network: "npipe", Address: name})
	if err != nil {
		t.Fatalf("after the first server: %v", err)
	}
	_ = listener.Close()
}

// The rights of a pipe are those that were asked for, and a name that Windows does
// not take is an error that has it.
func TestANamedPipeHasItsRights(t *testing.T) {
	name := strings.TrimPrefix(endpoints.New(t), "npipe:")
	listener, err := listen(t.Context(), endpoint.Endpoint{Network: "npipe", Address: name})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- conn
	}()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	client, err := winio.DialPipeContext(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn := <-accepted
	defer conn.Close()
	handle, ok := conn.(interface{ Fd() uintptr })
	if !ok {
		t.Fatalf("%T has no handle", conn)
	}
	descriptor, err := windows.GetSecurityInfo(windows.Handle(handle.Fd()), windows.SE_KERNEL_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil || !strings.HasPrefix(pipeDescriptor, descriptor.String()) && !strings.Contains(descriptor.String(), "(A;;FA;;;SY)(A;;FA;;;BA)") {
		t.Errorf("the pipe has %v, %v", descriptor, err)
	}
	if listener, err := listen(t.Context(), endpoint.Endpoint{Network: "npipe", Address: "no pipe"}); err == nil || !strings.Contains(err.Error(), "no pipe") {
		t.Errorf("a name that is none: %v", err)
		if err == nil {
			_ = listener.Close()
		}
	}
}

// An empty file may be a socket that somebody has left, and is replaced. Where nobody
// can connect to a socket, as under Wine and on old systems, it stays, and the error
// says where else to listen.
func TestC072_AnEmptyFileIsLeftWhereThereAreNoSockets(t *testing.T) {
	dir := socketDir(t)
	path := filepath.Join(dir, "csi.sock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	probe, probeErr := net.Listen("unix", filepath.Join(dir, "probe.sock"))
	if probeErr == nil {
		_ = probe.Close()
		if _, err := listenAt(t, path); err != nil {
			t.Errorf("there are sockets, and an empty file was not replaced: %v", err)
		}
		return
	}
	for _, one := range []string{path, filepath.Join(dir, "none.sock")} {
		started := time.Now()
		if _, err := listenAt(t, one); err == nil || !strings.Contains(err.Error(), one) || !strings.Contains(err.Error(), "npipe:") {
			t.Errorf("%s: %v", one, err)
		}
		if took := time.Since(started); took > testWait {
			t.Errorf("%s: it took %s", one, took)
		}
	}
	if info, err := os.Lstat(path); err != nil || info.Size() != 0 {
		t.Errorf("the empty file is gone: %v", err)
	}
}
