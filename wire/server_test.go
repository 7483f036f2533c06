package wire_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
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
