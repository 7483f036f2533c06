package liveness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// errNotReady is upstream's text for a driver that says so itself.
var errNotReady = errors.New("driver responded but is not ready")

// ask probes the driver over a new connection. Calls never overlap.
func (l *Liveness) ask(ctx context.Context) (err error) {
	conn, err := l.connect()
	if err != nil {
		return fmt.Errorf("connect to the driver: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	client := csi.NewIdentityClient(conn)
	if !l.metrics.hasName {
		// For the label of the metrics only; the probe that follows says what is wrong.
		if info, err := client.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}); err == nil {
			l.metrics.setName(info.GetName())
		}
	}
	answer, err := client.Probe(ctx, &csi.ProbeRequest{})
	switch {
	case err != nil:
		return fmt.Errorf("probe the driver: %w", err)
	case answer.GetReady() != nil && !answer.GetReady().GetValue():
		return errNotReady
	}
	return nil
}

func (l *Liveness) connect() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///csi",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithDisableServiceConfig(),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.dial(ctx) }),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, answer any,
			conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			began := time.Now()
			err := invoke(ctx, method, request, answer, conn, options...)
			l.metrics.record(method, err, time.Since(began))
			return err
		}),
		grpc.WithChainUnaryInterceptor(csiclient.CleanErrors)) // the answer goes into events
}
