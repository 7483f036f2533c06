package wire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wirepb"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// logBuffer is a log that a test can read.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// serveDisk serves disk/v1 with some limits.
func serveDisk(t *testing.T, cfg wire.ServerConfig) pipe.Place {
	t.Helper()
	cfg.Place = wiretest.Place(t)
	cfg.APIs = []wire.API{diskV1}
	wiretest.Serve(t, cfg)
	return cfg.Place
}

// A panic is one failed call and one record; its text stays in the log.
func TestPanicIsOneFailedCall(t *testing.T) {
	t.Parallel()
	var log logBuffer
	var calls atomic.Int32
	h := &wiretest.Host{Before: func(context.Context, string) error {
		if calls.Add(1) == 1 {
			panic("the secret of the panic")
		}
		return nil
	}}
	conn := dial(t, serveDisk(t, wire.ServerConfig{Host: h, Logger: slog.New(slog.NewTextHandler(&log, nil))}), diskV1)
	err := rescan(t.Context(), conn)
	wantCode(t, err, codes.Internal)
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the caller is told of the panic: %v", err)
	}
	if err := rescan(t.Context(), conn); err != nil {
		t.Errorf("the call after the panic: %v", err)
	}
	if text := log.String(); strings.Count(text, "secret of the panic") != 1 || strings.Count(text, "call failed") != 1 || !strings.Contains(text, "limits_test.go") {
		t.Errorf("want one record with a stack, got:\n%s", text)
	}
}

func TestRequestTooLarge(t *testing.T) {
	t.Parallel()
	h := &wiretest.Host{}
	place := wiretest.Place(t)
	filesystem := wire.API{Group: wire.GroupFilesystem, Version: "v1"}
	wiretest.Serve(t, wire.ServerConfig{Host: h, Place: place, APIs: []wire.API{filesystem}, Limits: wire.Limits{MaxMessageBytes: 1000}})
	conn := dial(t, place, filesystem)
	for size, want := range map[int]codes.Code{900: codes.OK, 1001: codes.ResourceExhausted} {
		request := &wirepb.MkdirRequest{Path: strings.Repeat("x", size)}
		wantCode(t, conn.Invoke(t.Context(), "/v1.Filesystem/Mkdir", request, &wirepb.MkdirResponse{}), want)
	}
	if len(h.Calls()) != 1 {
		t.Errorf("%d calls reached the host, want 1", len(h.Calls()))
	}
}

// rawRequest is a request in bytes.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (rawCodec) Unmarshal([]byte, any) error   { return nil }
func (rawCodec) Name() string                  { return "proto" }
func invokeRaw(t *testing.T, conn *grpc.ClientConn, path string, request []byte) error {
	t.Helper()
	return conn.Invoke(t.Context(), path, request, nil, grpc.ForceCodec(rawCodec{}))
}

// Bytes that are no such message are InvalidArgument, whatever is wrong with them.
func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	h := &wiretest.Host{}
	place := serve(t, h)
	conn := dial(t, place, diskV1)
	files := dial(t, place, wire.API{Group: wire.GroupFilesystem, Version: "v1"})
	wantCode(t, invokeRaw(t, conn, "/v1.Disk/PartitionDisk", []byte{0x0a, 0x03, '3', '1', '9'}), codes.InvalidArgument) // text for a number
	wantCode(t, invokeRaw(t, conn, "/v1.Disk/PartitionDisk", []byte{0xff}), codes.InvalidArgument)                      // cut off
	wantCode(t, invokeRaw(t, files, "/v1.Filesystem/Mkdir", []byte{0x0a, 0x01, 0xff}), codes.InvalidArgument)           // no UTF-8
	wantCode(t, invokeRaw(t, files, "/v1.Filesystem/Mkdir", []byte{0x0a, 0x7f, 'x'}), codes.InvalidArgument)            // too short
	wantCalls(t, h)
}

// Calls beyond the limit are refused at once, and the limit is free again after.
func TestTooManyCalls(t *testing.T) {
	t.Parallel()
	const limit = 3
	entered, leave := make(chan struct{}, limit), make(chan struct{})
	h := &wiretest.Host{Before: func(ctx context.Context, _ string) error {
		entered <- struct{}{}
		<-leave
		return nil
	}}
	conn := dial(t, serveDisk(t, wire.ServerConfig{Host: h, Limits: wire.Limits{MaxConcurrentCallsPerPipe: limit}}), diskV1)
	results := make(chan error, limit)
	for range limit {
		go func() { results <- rescan(t.Context(), conn) }()
	}
	for range limit {
		<-entered
	}
	err := rescan(t.Context(), conn)
	wantCode(t, err, codes.ResourceExhausted)
	if kind := wire.ErrorFromStatus("", err).Kind; kind != host.KindBusy {
		t.Errorf("kind %s, want busy", kind)
	}
	close(leave)
	for range limit {
		if err := <-results; err != nil {
			t.Errorf("a call within the limit: %v", err)
		}
	}
	if err := rescan(t.Context(), conn); err != nil {
		t.Errorf("a call after the others: %v", err)
	}
}

// Every call has a deadline, and the caller's when that is shorter.
func TestEveryCallHasADeadline(t *testing.T) {
	t.Parallel()
	deadlines := make(chan time.Duration, 1)
	h := &wiretest.Host{Before: func(ctx context.Context, _ string) error {
		deadline, _ := ctx.Deadline()
		deadlines <- time.Until(deadline)
		return nil
	}}
	conn := dial(t, serveDisk(t, wire.ServerConfig{Host: h, Limits: wire.Limits{CallTimeout: time.Minute}}), diskV1)
	for name, c := range map[string]struct{ caller, least, most time.Duration }{
		"none":    {0, 50 * time.Second, time.Minute},
		"longer":  {time.Hour, 50 * time.Second, time.Minute},
		"shorter": {30 * time.Second, 20 * time.Second, 30 * time.Second},
	} {
		ctx := t.Context()
		if c.caller > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.caller)
			defer cancel()
		}
		if err := rescan(ctx, conn); err != nil {
			t.Fatal(err)
		}
		if got := <-deadlines; got < c.least || got > c.most {
			t.Errorf("%s: %v left, want %v to %v", name, got, c.least, c.most)
		}
	}
}

func TestCallRunsOutOfTime(t *testing.T) {
	t.Parallel()
	h := &wiretest.Host{Before: func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }}
	conn := dial(t, serveDisk(t, wire.ServerConfig{Host: h, Limits: wire.Limits{CallTimeout: time.Millisecond}}), diskV1)
	err := rescan(t.Context(), conn)
	wantCode(t, err, codes.DeadlineExceeded)
	if !strings.HasPrefix(status.Convert(err).Message(), "Rescan") {
		t.Errorf("%v is not the server's error", err)
	}
}

// A connection that says nothing, like the probe of csi-proxy's client, is closed
// after a while, is no error, and holds nobody back.
func TestSilentConnectionIsClosed(t *testing.T) {
	t.Parallel()
	var log logBuffer
	place := serveDisk(t, wire.ServerConfig{Host: &wiretest.Host{}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Limits: wire.Limits{ConnectTimeout: 2 * time.Second}})
	silent, err := place.Dial(t.Context(), "disk", "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if err := rescan(t.Context(), dial(t, place, diskV1)); err != nil {
		t.Errorf("a call beside a silent connection: %v", err)
	}
	_ = silent.SetReadDeadline(time.Now().Add(waitTimeout))
	if _, err := io.Copy(io.Discard, silent); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the silent connection is still open: %v", err)
	}
	if text := log.String(); strings.Contains(text, "level=ERROR") || strings.Contains(text, "level=WARN") {
		t.Errorf("a silent connection was logged:\n%s", text)
	}
}

// Connections beyond the limit are closed, and room is made again.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	place := serveDisk(t, wire.ServerConfig{Host: &wiretest.Host{}, Limits: wire.Limits{MaxConnectionsPerPipe: 1}})
	first, second := dial(t, place, diskV1), dial(t, place, diskV1)
	if err := rescan(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	wantCode(t, rescan(t.Context(), second), codes.Unavailable)
	_ = first.Close()
	waitUntil(t, "a connection after the first was closed", func() bool {
		conn := dial(t, place, diskV1)
		defer conn.Close()
		return rescan(t.Context(), conn) == nil
	})
}

// Connections that say nothing make room for those that do, the oldest first.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	const limit = 4
	place := serveDisk(t, wire.ServerConfig{Host: &wiretest.Host{}, Limits: wire.Limits{MaxConnectionsPerPipe: limit}})
	talking := dial(t, place, diskV1)
	if err := rescan(t.Context(), talking); err != nil {
		t.Fatal(err)
	}
	for range 5 * limit {
		silent, err := place.Dial(t.Context(), "disk", "v1")
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
	}
	if err := rescan(t.Context(), dial(t, place, diskV1)); err != nil {
		t.Errorf("a new connection: %v", err)
	}
	if err := rescan(t.Context(), talking); err != nil {
		t.Errorf("the connection in use: %v", err)
	}
}

// countingObserver counts calls by code.
type countingObserver struct {
	mu      sync.Mutex
	started int
	ended   map[codes.Code]int
	last    wire.Call
}

func (o *countingObserver) CallStarted(wire.Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.started++
}

func (o *countingObserver) CallEnded(call wire.Call, code codes.Code, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended[code]++
	o.last = call
}

// At debug level every call leaves one record; usually only failures do.
func TestCallsInTheLog(t *testing.T) {
	t.Parallel()
	for level, want := range map[slog.Level]int{slog.LevelInfo: 0, slog.LevelDebug: 1} {
		var log logBuffer
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))
		if err := rescan(t.Context(), dial(t, serveDisk(t, wire.ServerConfig{Host: &wiretest.Host{}, Logger: logger}), diskV1)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(log.String(), "msg=call api=disk/v1 method=Rescan code=OK"); got != want {
			t.Errorf("%s: %d records, want %d:\n%s", level, got, want, log.String())
		}
	}
}

func TestObserverSeesEveryCall(t *testing.T) {
	t.Parallel()
	observer := &countingObserver{ended: map[codes.Code]int{}}
	var caller host.Caller
	h := &wiretest.Host{Before: func(ctx context.Context, call string) error {
		caller, _ = host.CallerOf(ctx)
		if call == "PartitionDisk(1)" {
			return &host.Error{Op: "PartitionDisk", Kind: host.KindNotFound}
		}
		return nil
	}}
	place := wiretest.Place(t)
	old := wire.API{Group: wire.GroupDisk, Version: "v1beta1"}
	wiretest.Serve(t, wire.ServerConfig{Host: h, Place: place, Observer: observer, APIs: []wire.API{old}})
	conn := dial(t, place, old)
	for _, number := range []string{"0", "1", "x", "2"} {
		_ = conn.Invoke(t.Context(), "/v1beta1.Disk/PartitionDisk", &wirepb.NumberText{DiskId: number}, &wirepb.PartitionDiskResponse{})
	}
	observer.mu.Lock()
	defer observer.mu.Unlock()
	want := map[codes.Code]int{codes.OK: 2, codes.NotFound: 1, codes.InvalidArgument: 1}
	for code, n := range want {
		if observer.ended[code] != n {
			t.Errorf("%d calls ended with %s, want %d", observer.ended[code], code, n)
		}
	}
	if observer.started != 4 || observer.last.API != old || observer.last.Method != "PartitionDisk" {
		t.Errorf("%d started, last %v", observer.started, observer.last)
	}
	if pid := observer.last.PID; runtime.GOOS != "darwin" && pid != uint32(os.Getpid()) {
		t.Errorf("caller %d, want %d", pid, os.Getpid())
	}
	if caller.PID != observer.last.PID || filepath.Base(caller.Image) != filepath.Base(os.Args[0]) {
		t.Errorf("the host is told of %d, %s; want %s", caller.PID, caller.Image, os.Args[0])
	}
}
