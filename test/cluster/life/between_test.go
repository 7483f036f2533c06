package life

import (
	"errors"
	"net"
	"path"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// call is one that the sidecar has made of a driver.
type call struct {
	method  string
	request []byte
}

// between stands between the sidecar and a driver: it knows every call, and can
// answer in the driver's place.
type between struct {
	// Address and path of its socket, as those of a driver.
	driver *cluster.Driver
	conn   *grpc.ClientConn

	mu     sync.Mutex
	calls  []call
	answer func(method string, request []byte) (proto.Message, error) // nil, nil for the driver's own
}

// between starts to stand before a driver.
func newBetween(t *testing.T, c *cluster.Cluster, driver *cluster.Driver) *between {
	t.Helper()
	socket := filepath.Join(filepath.Dir(driver.SocketPath), "b-"+filepath.Base(driver.SocketPath))
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	b := &between{driver: &cluster.Driver{Process: driver.Process, Address: "unix:" + socket, SocketPath: socket}, conn: c.Dial(driver.Address)}
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(b.handle))
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	return b
}

// rawCodec leaves messages as they are.
type rawCodec struct{}

// Name is that of the codec it stands for.
func (rawCodec) Name() string { return "proto" }

// Marshal implements encoding.Codec.
func (rawCodec) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }

// Unmarshal implements encoding.Codec.
func (rawCodec) Unmarshal(data []byte, message any) error {
	*message.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func (b *between) handle(_ any, stream grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(stream)
	var request, answer []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	method := path.Base(full)
	b.mu.Lock()
	b.calls = append(b.calls, call{method, request})
	own := b.answer
	b.mu.Unlock()
	if own != nil {
		switch message, err := own(method, request); {
		case err != nil:
			return err
		case message != nil:
			if answer, err = proto.Marshal(message); err != nil {
				return status.Error(codes.Internal, err.Error())
			}
			return stream.SendMsg(&answer)
		}
	}
	if err := b.conn.Invoke(stream.Context(), full, &request, &answer, grpc.ForceCodec(rawCodec{})); err != nil {
		return err
	}
	return stream.SendMsg(&answer)
}

// intercept has calls answered in the driver's place until the test ends.
func (b *between) intercept(t *testing.T, answer func(method string, request []byte) (proto.Message, error)) (restore func()) {
	set := func(value func(string, []byte) (proto.Message, error)) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.answer = value
	}
	set(answer)
	t.Cleanup(func() { set(nil) })
	return func() { set(nil) }
}

// refuse lets a method fail.
func (b *between) refuse(t *testing.T, method string, code codes.Code, text string) (restore func()) {
	return b.intercept(t, func(called string, _ []byte) (proto.Message, error) {
		if called == method {
			return nil, status.Error(code, text)
		}
		return nil, nil
	})
}

// mark is a place in the row of calls.
func (b *between) mark() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.calls)
}

// since are the calls of a method after a mark.
func (b *between) since(mark int, method string) (found []call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.calls[mark:] {
		if one.method == method {
			found = append(found, one)
		}
	}
	return found
}

// methods are all that were ever called.
func (b *between) methods() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]int{}
	for _, one := range b.calls {
		all[one.method]++
	}
	return all
}

// requestOf reads the request of a call.
func requestOf[M proto.Message](t *testing.T, one call, into M) M {
	t.Helper()
	if err := proto.Unmarshal(one.request, into); err != nil {
		t.Fatal(err)
	}
	return into
}
