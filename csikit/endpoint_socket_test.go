//go:build !windows

package csikit

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func TestC072_ALeftOverSocketIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "csi.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("no socket was left over: %v", err)
	}
	listener, err := listenAt(t, path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the socket: %v, %v", info.Mode(), err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestASocketInUseIsNotTaken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "csi.sock")
	first, err := listenAt(t, path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listenAt(t, path); !errors.Is(err, errEndpointInUse) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the first server's socket has gone: %v", err)
	}
	_ = conn.Close()
	_ = first.Close()
}

func TestTheSocketIsGoneAfterTheEnd(t *testing.T) {
	t.Parallel()
	var path string
	s := serve(t, &fakeServices{}, func(c *ServerConfig) { path = strings.TrimPrefix(c.Endpoint, "unix:") })
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
	health := healthpb.NewHealthClient(s.conn)
	if answer, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", answer, err)
	}
	if err := s.stop(); err != nil {
		t.Errorf("end: %v", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket: %v", err)
	}
}

// A driver that is told to stop while it starts has not failed, and leaves nothing.
func TestTheEndDuringTheStartIsNoFailure(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "csi.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		if i == 0 { // it never begins
			cancel()
		}
		server, err := NewServer(ServerConfig{
			Endpoint: "unix:" + path, Services: Services{Identity: &fakeServices{}}, OnListening: func(net.Addr) { cancel() },
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Run(ctx); err != nil {
			t.Errorf("start %d: %v", i, err)
		}
		if _, err := os.Lstat(path); i > 0 && err == nil {
			t.Errorf("start %d left its socket", i)
		}
	}
}

// A server whose socket was taken from it does not take that of the next one.
func TestTheSocketOfTheNextServerStays(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "csi.sock")
	first, err := listenAt(t, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := listenAt(t, path); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the next server's socket has gone: %v", err)
	}
	_ = conn.Close()
}
