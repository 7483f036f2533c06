package wire_test

import (
	"context"
	"net"
	"testing"

	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// dial connects to one pipe the way csi-proxy's client does.
func dial(t testing.TB, place pipe.Place, api wire.API) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+pipe.Name(api.Group, api.Version),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return place.Dial(ctx, api.Group, api.Version)
		}))
	if err != nil {
		t.Fatalf("dial %s: %v", api, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestSmoke(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	h := &wiretest.Host{}
	wiretest.Serve(t, wire.ServerConfig{Host: h, Place: place})
	client := diskv1beta2.NewDiskClient(dial(t, place, wire.API{Group: "disk", Version: "v1beta2"}))
	_, err := client.PartitionDisk(t.Context(), &diskv1beta2.PartitionDiskRequest{DiskID: "319"})
	t.Log(err, h.Calls())
	_, err = client.PartitionDisk(t.Context(), &diskv1beta2.PartitionDiskRequest{DiskID: "4294967296"})
	t.Log(err, h.Calls())
}
