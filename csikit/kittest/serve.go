package kittest

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/csi-windows/csi-windows/csikit"
	endpoints "github.com/csi-windows/csi-windows/test/endpoint"
)

// startMax bounds the start of a driver in a test.
const startMax = 30 * time.Second

// Serve runs a driver until the test ends and returns its endpoint, and a connection to
// it. Name, Version, NodeID and Server.Endpoint may be left out.
func Serve(t testing.TB, config csikit.Config) (endpoint string, conn *grpc.ClientConn) {
	t.Helper()
	if config.Name == "" {
		config.Name, config.Version = "kittest.example.com", "test"
	}
	if config.NodeBackend != nil && config.NodeID == "" {
		config.NodeID = "node-1"
	}
	if config.Server.Endpoint == "" {
		config.Server.Endpoint = endpoints.New(t)
	}
	listening := make(chan net.Addr, 1)
	config.Server.OnListening = func(address net.Addr) { listening <- address }
	driver, err := csikit.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- driver.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the driver ended with: %v", err)
		}
	})
	select {
	case <-listening:
	case err := <-ended:
		ended <- err
		t.Fatal("the driver does not start")
	case <-time.After(startMax):
		t.Fatal("the driver does not listen")
	}
	return config.Server.Endpoint, endpoints.Dial(t, config.Server.Endpoint)
}
