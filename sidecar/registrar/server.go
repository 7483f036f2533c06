package registrar

import (
	"context"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// serverStopTimeout bounds the wait for answers under way when a socket ends.
const serverStopTimeout = 2 * time.Second

// callKind is what the kubelet called for.
type callKind int

const (
	callInfo       callKind = iota // it has seen the socket
	callRegistered                 // the driver is registered
	callRefused                    // the driver is not
)

type call struct {
	kind callKind
	text string // why the driver is not registered
}

// server answers the kubelet and passes on what it called for.
type server struct {
	registration.UnimplementedRegistrationServer
	info  *registration.PluginInfo
	calls chan call
	// over is closed when nobody takes calls anymore.
	over <-chan struct{}
}

// supportedVersions are the versions of CSI as the kubelet knows them: by the
// first number.
func supportedVersions() []string { return []string{"1.0.0"} }

func newServer(driver, endpoint string, over <-chan struct{}) *server {
	return &server{over: over, calls: make(chan call), info: &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: driver, Endpoint: endpoint, SupportedVersions: supportedVersions(),
	}}
}

// GetInfo says which driver is to be registered.
func (s *server) GetInfo(ctx context.Context, _ *registration.InfoRequest) (*registration.PluginInfo, error) {
	s.pass(ctx, call{kind: callInfo})
	return s.info, nil
}

// NotifyRegistrationStatus takes how the registration ended.
func (s *server) NotifyRegistrationStatus(ctx context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if status.GetPluginRegistered() {
		s.pass(ctx, call{kind: callRegistered})
	} else {
		s.pass(ctx, call{kind: callRefused, text: status.GetError()})
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func (s *server) pass(ctx context.Context, c call) {
	select {
	case s.calls <- c:
	case <-s.over:
	case <-ctx.Done():
	}
}

// serve answers on a listener until stop is called. Its error comes on failed
// when it ends before that.
func (s *server) serve(listener net.Listener) (stop func(), failed <-chan error) {
	// What the kubelet sends is a few bytes.
	rpc := grpc.NewServer(grpc.MaxRecvMsgSize(1<<20), grpc.ConnectionTimeout(10*time.Second))
	registration.RegisterRegistrationServer(rpc, s)
	ended := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := rpc.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			ended <- err
		}
	}()
	return func() {
		stopServing(rpc, serverStopTimeout)
		<-done
	}, ended
}

// stopServing ends a server once the calls under way are answered, or when they
// take too long: the kubelet waits for the answer to what it has just said.
func stopServing(rpc *grpc.Server, timeout time.Duration) {
	force := time.AfterFunc(timeout, rpc.Stop)
	defer force.Stop()
	rpc.GracefulStop()
}
