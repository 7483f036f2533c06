package bed

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// StartDriver starts csi-driver over the node's csi-proxy and waits until it is
// ready. It returns its address.
func (n *Node) StartDriver(flags ...string) (address string) {
	n.t.Helper()
	return n.StartDriverOf(Program(n.t, "csi-driver"), flags...)
}

// StartDriverOf is StartDriver with a program that was built before.
func (n *Node) StartDriverOf(program string, flags ...string) (address string) {
	n.t.Helper()
	dir, err := os.MkdirTemp("", "csi")
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	address = "unix:" + filepath.Join(dir, "csi.sock")
	driver := Start(n.t, program, append([]string{"-host=proxy", "-socket-dir=" + n.Place.Dir, "-endpoint=" + address}, flags...)...)
	identity := csi.NewIdentityClient(n.Dial(address))
	ctx, cancel := context.WithTimeout(n.t.Context(), ReadyTime)
	defer cancel()
	for {
		answer, err := identity.Probe(ctx, &csi.ProbeRequest{})
		if err == nil && (answer.GetReady() == nil || answer.GetReady().GetValue()) {
			return address
		}
		if ctx.Err() != nil || driver.Ended() {
			n.t.Fatalf("csi-driver is not ready: %v, %v", answer, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Dial makes a connection to a driver.
func (n *Node) Dial(address string) *grpc.ClientConn {
	n.t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = conn.Close() })
	return conn
}
