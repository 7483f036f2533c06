package csikit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	endpoints "github.com/csi-windows/csi-windows/test/endpoint"
)

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error) {
	return v.([]byte), nil //nolint:forcetypeassert // of this test
}
func (rawCodec) Unmarshal([]byte, any) error { return nil }

// dialRaw opens connections that do not speak gRPC. They are closed at the end.
func dialRaw(t *testing.T, endpoint string, count int) []net.Conn {
	t.Helper()
	var all []net.Conn
	for end := time.Now().Add(testWait); len(all) < count && time.Now().Before(end); {
		conn, err := endpoints.Raw(t.Context(), endpoint)
		if err != nil { // the queue is full
			runtime.Gosched()
			continue
		}
		t.Cleanup(func() { _ = conn.Close() })
		all = append(all, conn)
	}
	return all
}

// serveAt is serve, and where.
func serveAt(t *testing.T, f *fakeServices, change func(*ServerConfig)) (s *testServer, endpoint string) {
	t.Helper()
	s = serve(t, f, func(c *ServerConfig) {
		endpoint = c.Endpoint
		if change != nil {
			change(c)
		}
	})
	return s, endpoint
}

func TestGarbageEndsItsOwnConnectionOnly(t *testing.T) {
	t.Parallel()
	s, endpoint := serveAt(t, &fakeServices{}, nil)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // garbage
	for i, conn := range dialRaw(t, endpoint, 50) {
		garbage := make([]byte, 1+random.IntN(64<<10))
		for i := range garbage {
			garbage[i] = byte(random.Uint32())
		}
		if i%2 == 0 { // a right beginning
			garbage = append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"), garbage...)
		}
		_ = conn.SetDeadline(time.Now().Add(testWait))
		_, _ = conn.Write(garbage)
		if half, ok := conn.(*net.UnixConn); ok {
			_ = half.CloseWrite()
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d with %d bytes of garbage is still open", i, len(garbage))
		}
		if err := s.stage(t.Context(), "v"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRequestsThatAreNone(t *testing.T) {
	t.Parallel()
	s, _ := serveAt(t, &fakeServices{stage: func(context.Context, *csi.NodeStageVolumeRequest) error {
		t.Error("the handler was asked")
		return nil
	}}, nil)
	const stage = csi.Node_NodeStageVolume_FullMethodName
	for name, c := range map[string]struct {
		method string
		bytes  string
		code   codes.Code
	}{
		"unknown method":  {"/csi.v1.Node/NodeFormatEverything", "", codes.Unimplemented},
		"unknown service": {"/csi.v2.Node/NodeStageVolume", "", codes.Unimplemented},
		"no method":       {"/", "", codes.Unimplemented},
		"no protobuf":     {stage, "\xff\xff\xff", codes.Internal},
		"invalid UTF-8":   {stage, "\x0a\x02\xc3\x28", codes.Internal},
		"control bytes":   {stage, "\x0a\x02a\x00", codes.InvalidArgument},
		"unknown fields":  {stage, "\xfa\x3f\x05hello", codes.InvalidArgument},
		"deep groups":     {stage, strings.Repeat("\x0b", 1<<20), codes.Internal},
		"too large":       {stage, strings.Repeat("x", 4<<20+1), codes.ResourceExhausted},
	} {
		var answer []byte
		err := s.conn.Invoke(t.Context(), c.method, []byte(c.bytes), &answer, grpc.ForceCodec(rawCodec{}))
		if status.Code(err) != c.code {
			t.Errorf("%s: %.200v, want %s", name, err, c.code)
		}
	}
}

// A request as large as they may be, all of it secrets, is turned down at once and
// fills no log.
func TestAHugeMapIsTurnedDownAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := serveAt(t, &fakeServices{}, nil)
	request := stageRequest(strings.Repeat("v", 64<<10))
	request.Secrets = map[string]string{}
	for i := range 150_000 {
		request.Secrets[fmt.Sprint("key", i)] = fmt.Sprint("hunter", i)
	}
	started := time.Now()
	_, err := s.node().NodeStageVolume(t.Context(), request)
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v", err)
	}
	request.VolumeId = "v"
	_, err = s.node().NodeStageVolume(t.Context(), request)
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "secrets: ") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(started); took > testWait {
		t.Errorf("it took %s", took)
	}
	if size := len(s.log.String()); size > 4<<10 || strings.Contains(s.log.String(), "hunter") {
		t.Errorf("the log has %d bytes", size)
	}
}

func TestTheTextOfAnErrorIsBounded(t *testing.T) {
	t.Parallel()
	s, _ := serveAt(t, &fakeServices{stage: func(context.Context, *csi.NodeStageVolumeRequest) error {
		return fmt.Errorf("\xc3%s %w", strings.Repeat("é", 1<<20), ErrInUse)
	}}, nil)
	err := s.stage(t.Context(), "v")
	if text := status.Convert(err).Message(); status.Code(err) != codes.FailedPrecondition || len(text) > errorBytesMax || !strings.HasPrefix(text, "?é") {
		t.Errorf("%s with %d bytes", status.Code(err), len(text))
	}
}

// Silent connections beyond the limit are closed; when they go there is room again.
// Not parallel: it uses many handles.
func TestConnectionsAreBounded(t *testing.T) {
	s, endpoint := serveAt(t, &fakeServices{}, nil)
	if err := s.stage(t.Context(), "v"); err != nil {
		t.Fatal(err)
	}
	before := settledGoroutines(t)
	crowd := dialRaw(t, endpoint, 1000)
	if len(crowd) <= connectionsMax {
		t.Fatalf("only %d connections came about", len(crowd))
	}
	eventually(t, "closed", func() bool { return len(s.log.lines("too many connections")) > 0 })
	eventually(t, "few goroutines more", func() bool { return settledGoroutines(t) <= before+4*connectionsMax })
	if err := s.stage(t.Context(), "v"); err != nil { // on the connection that is there
		t.Error(err)
	}
	// One each time it becomes full: silent ones that time out make room meanwhile.
	if lines := s.log.lines("too many connections"); len(lines) > 100 {
		t.Errorf("the log has %d lines of it", len(lines))
	}
	for _, conn := range crowd {
		_ = conn.Close()
	}
	fresh := endpoints.Dial(t, endpoint)
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	if _, err := csi.NewIdentityClient(fresh).Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Errorf("a new connection, when there is room again: %v", err)
	}
	eventually(t, "back to normal", func() bool { return settledGoroutines(t) <= before+16 })
}

// Who takes no piece of an answer holds its handler no longer than the time limit.
func TestASlowReaderIsLeft(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	piece := &csi.GetMetadataAllocatedResponse{}
	for i := range int64(4096) {
		piece.BlockMetadata = append(piece.BlockMetadata, &csi.BlockMetadata{ByteOffset: i << 20, SizeBytes: 1 << 20})
	}
	s := serve(t, &fakeServices{allocated: func(stream csi.SnapshotMetadata_GetMetadataAllocatedServer) error {
		for {
			if err := stream.Send(piece); err != nil {
				ended <- err
				return err
			}
		}
	}}, func(c *ServerConfig) { c.CallTimeout = 200 * time.Millisecond })
	stream, err := csi.NewSnapshotMetadataClient(s.conn).GetMetadataAllocated(t.Context(), &csi.GetMetadataAllocatedRequest{SnapshotId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(testWait):
		t.Fatal("the handler waits for ever")
	}
	eventually(t, "written down", func() bool { return len(s.log.lines(`"code":"DeadlineExceeded"`)) > 0 })
	for err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
}
