package sidecartest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// Call is one call the driver got.
type Call struct {
	// Method is the call's name without its service: "CreateVolume".
	Method  string
	Request proto.Message
}

// Answer answers one call of a method.
type Answer func(ctx context.Context, request proto.Message) (proto.Message, error)

// Driver is a CSI driver that does what a test says. A call nobody has an
// answer for fails the test and ends as Unimplemented.
type Driver struct {
	t      testing.TB
	gate   *gate
	mu     sync.Mutex
	once   map[string][]Answer
	always map[string]Answer
	calls  []Call
	// answering is how many calls are being answered.
	answering int
}

func newDriver(t testing.TB, gate *gate) *Driver {
	return &Driver{t: t, gate: gate, once: map[string][]Answer{}, always: map[string]Answer{}}
}

// On answers every call of a method from now on that no Once answers.
func (d *Driver) On(method string, answer Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.always[method] = answer
}

// Once answers the next call of a method, after those given before.
func (d *Driver) Once(method string, answers ...Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.once[method] = append(d.once[method], answers...)
}

// Reply is an answer with a message.
func Reply(message proto.Message) Answer {
	return func(context.Context, proto.Message) (proto.Message, error) { return message, nil }
}

// Fail is an answer with an error.
func Fail(code codes.Code, text string) Answer {
	return func(context.Context, proto.Message) (proto.Message, error) { return nil, status.Error(code, text) }
}

// Hang is an answer that comes when the caller gives up.
func Hang(ctx context.Context, _ proto.Message) (proto.Message, error) {
	<-ctx.Done()
	return nil, status.FromContextError(ctx.Err()).Err()
}

// Calls are the calls so far of the methods named, or of all.
func (d *Driver) Calls(methods ...string) []Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	var calls []Call
	for _, call := range d.calls {
		if len(methods) == 0 || slices.Contains(methods, call.Method) {
			calls = append(calls, call)
		}
	}
	return calls
}

// CallNames are the calls so far by their names, in order.
func (d *Driver) CallNames(methods ...string) []string {
	var names []string
	for _, call := range d.Calls(methods...) {
		names = append(names, call.Method)
	}
	return names
}

// count counts the calls that are being answered.
func (d *Driver) count(more int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answering += more
}

// Idle waits until no call is being answered. Who is told to end while it waits
// for an answer leaves the driver at work.
func (b *Bed) Idle() {
	b.Helper()
	b.Eventually(func() error {
		b.Driver.mu.Lock()
		defer b.Driver.mu.Unlock()
		if n := b.Driver.answering; n > 0 {
			return fmt.Errorf("%d calls are being answered", n)
		}
		return nil
	})
}

func (d *Driver) answer(ctx context.Context, fullMethod string, request proto.Message) (proto.Message, error) {
	d.count(1)
	defer d.count(-1)
	method := fullMethod[strings.LastIndexByte(fullMethod, '/')+1:]
	if !d.gate.pass() {
		return nil, status.Error(codes.Unavailable, "cut off")
	}
	// The caller that has given up would not hear of what is done now.
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	d.mu.Lock()
	d.calls = append(d.calls, Call{method, proto.Clone(request)})
	answer := d.always[method]
	if queue := d.once[method]; len(queue) > 0 {
		answer, d.once[method] = queue[0], queue[1:]
	}
	d.mu.Unlock()
	if answer == nil {
		d.t.Errorf("the driver has no answer for %s(%v)", method, request)
		return nil, status.Error(codes.Unimplemented, "no answer for "+method)
	}
	return answer(ctx, request)
}

// services have every method of CSI; the interceptor answers before them.
type services struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	csi.UnimplementedGroupControllerServer
}

// serve starts the driver and gives a connection to it.
func (d *Driver) serve() *grpc.ClientConn {
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.UnaryInterceptor(
		func(ctx context.Context, request any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
			return d.answer(ctx, info.FullMethod, request.(proto.Message))
		}))
	all := &services{}
	csi.RegisterIdentityServer(server, all)
	csi.RegisterControllerServer(server, all)
	csi.RegisterNodeServer(server, all)
	csi.RegisterGroupControllerServer(server, all)
	served := make(chan struct{})
	go func() {
		defer close(served)
		// A test may end before the server has begun.
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			d.t.Errorf("the driver's server: %v", err)
		}
	}()
	conn, err := grpc.NewClient("passthrough:driver", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(csiclient.CleanErrors), // as the product's own connection has it
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		d.t.Fatal(fmt.Errorf("connect to the driver: %w", err))
	}
	d.t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			d.t.Error(err)
		}
		server.Stop()
		<-served
	})
	return conn
}
