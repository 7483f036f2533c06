package endpoint

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// New returns an endpoint that nobody else has.
func New(t testing.TB) string {
	t.Helper()
	return own(t)
}

// Raw opens one connection to an endpoint of New, on which nothing is said yet.
func Raw(ctx context.Context, endpoint string) (net.Conn, error) { return dial(ctx, endpoint) }

// Dial connects to an endpoint of New until the test ends.
func Dial(t testing.TB, endpoint string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///localhost", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx, endpoint) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
