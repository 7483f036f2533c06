package wire_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wirepb"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

var nodeV1alpha1 = wire.API{Group: wire.GroupNode, Version: "v1alpha1"}

// serveNode serves the group node alone.
func serveNode(t *testing.T, cfg wire.ServerConfig) pipe.Place {
	t.Helper()
	cfg.Host, cfg.Place, cfg.APIs = &wiretest.Host{}, wiretest.Place(t), []wire.API{nodeV1alpha1}
	wiretest.Serve(t, cfg)
	return cfg.Place
}

// Without tasks there is no group node, and whoever asks for it is told.
func TestNodeGroupNeedsTasks(t *testing.T) {
	t.Parallel()
	without, err := wire.NewServer(wire.ServerConfig{Host: &wiretest.Host{}})
	if err != nil {
		t.Fatal(err)
	}
	with, err := wire.NewServer(wire.ServerConfig{Host: &wiretest.Host{}, Node: &wiretest.Node{}})
	if err != nil {
		t.Fatal(err)
	}
	if n, m := len(without.APIs()), len(with.APIs()); n != 24 || m != 25 || with.APIs()[24] != nodeV1alpha1 {
		t.Errorf("%d APIs without tasks and %d with, the last is %s", n, m, with.APIs()[m-1])
	}
	_, err = wire.NewServer(wire.ServerConfig{Host: &wiretest.Host{}, APIs: []wire.API{diskV1, nodeV1alpha1}})
	if err == nil || !strings.Contains(err.Error(), "node/v1alpha1") {
		t.Errorf("asked for a group that cannot be served: %v", err)
	}
}

// A task makes many calls of the host, so none of them may keep it although its
// client has gone: it knows who calls, and its caller does not leave by itself.
func TestTaskKnowsItsCaller(t *testing.T) {
	t.Parallel()
	callers := make(chan host.Caller, 1)
	tasks := &wiretest.Node{Before: func(ctx context.Context, _ string) error {
		caller, _ := host.CallerOf(ctx)
		callers <- caller
		return nil
	}}
	conn := dial(t, serveNode(t, wire.ServerConfig{Node: tasks}), nodeV1alpha1)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	if err := conn.Invoke(ctx, "/v1alpha1.Node/Info", &wirepb.InfoRequest{}, &wirepb.InfoResponse{}); err != nil {
		t.Fatal(err)
	}
	if caller := <-callers; caller.PID != uint32(os.Getpid()) || caller.Leave != nil {
		t.Errorf("the caller is %+v, want process %d without Leave", caller, os.Getpid())
	}
}

// A task that does not end is reported once, and takes nobody's place when its
// client has gone.
func TestTaskThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	tasks := &wiretest.Node{Before: func(_ context.Context, call string) error {
		if call == "Stage" {
			<-release
		}
		return nil
	}}
	var log logBuffer
	limits := wire.Limits{MaxConcurrentCallsPerPipe: 1}.WithTaskGrace(time.Millisecond)
	conn := dial(t, serveNode(t, wire.ServerConfig{Node: tasks, Limits: limits, Logger: slog.New(slog.NewTextHandler(&log, nil))}), nodeV1alpha1)
	info := func() error {
		return conn.Invoke(t.Context(), "/v1alpha1.Node/Info", &wirepb.InfoRequest{}, &wirepb.InfoResponse{})
	}
	if err := info(); err != nil { // so that the time of the next call is all its own
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	wantCode(t, conn.Invoke(ctx, "/v1alpha1.Node/Stage", &wirepb.StageRequest{}, &wirepb.StageResponse{}), codes.DeadlineExceeded)
	waitUntil(t, "the place of the task is free", func() bool { return info() == nil })
	if text := log.String(); strings.Count(text, "node task does not end") != 1 || !strings.Contains(text, "method=Stage") {
		t.Errorf("want one record of the task, got:\n%s", text)
	}
}

// secretFields are the names of the fields that hold secrets, whatever their message.
var secretFields = map[protoreflect.Name]bool{
	"chap_secret": true, "mutual_chap_secret": true, "password": true, "MutualChapSecret": true,
}

// eachField calls do for every field of a message type and of those in it.
func eachField(m protoreflect.MessageDescriptor, do func(protoreflect.FieldDescriptor)) {
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		do(field)
		if field.Message() != nil {
			eachField(field.Message(), do)
		}
	}
}

// Every field that holds a secret says so, and no other.
func TestSecretsAreDeclared(t *testing.T) {
	t.Parallel()
	seen := map[protoreflect.Name]bool{}
	for _, row := range wire.Rows() {
		eachField(row.NewestRequest().ProtoReflect().Descriptor(), func(field protoreflect.FieldDescriptor) {
			declared := field.Options().(*descriptorpb.FieldOptions).GetDebugRedact()
			if declared != secretFields[field.Name()] {
				t.Errorf("%s: declared as a secret: %t", field.FullName(), declared)
			}
			if declared {
				seen[field.Name()] = true
			}
		})
	}
	if len(seen) != len(secretFields) {
		t.Errorf("secrets found: %v, want %v", seen, secretFields)
	}
}

const marker = "Tr0ub4dor&3!"

// requestsWithSecrets are stage requests, each with another secret.
func requestsWithSecrets() map[string]*wirepb.Source {
	return map[string]*wirepb.Source{
		"CHAP":        {Iscsi: &wirepb.ISCSISource{ChapSecret: marker}},
		"mutual CHAP": {Iscsi: &wirepb.ISCSISource{MutualChapSecret: marker}},
		"password":    {Smb: &wirepb.SMBSource{Password: marker}},
	}
}

// Whatever a task fails with, no secret of its request gets out.
func TestSecretsStayInTheRequest(t *testing.T) {
	t.Parallel()
	failures := map[string]struct {
		fail func() error
		code codes.Code
	}{
		"cause": {func() error {
			return &host.Error{Op: "Stage", Object: "vol", Kind: host.KindUnauthenticated, Cause: errors.New("refused " + marker)}
		}, codes.Unauthenticated},
		"object":        {func() error { return &host.Error{Op: "Stage", Object: marker, Kind: host.KindNotFound} }, codes.NotFound},
		"no host error": {func() error { return fmt.Errorf("odd: %s", marker) }, codes.Internal},
		"panic":         {func() error { panic("panic with " + marker) }, codes.Internal},
	}
	for what, source := range requestsWithSecrets() {
		for name, f := range failures {
			var log logBuffer
			tasks := &wiretest.Node{Before: func(context.Context, string) error { return f.fail() }}
			logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug - 8}))
			conn := dial(t, serveNode(t, wire.ServerConfig{Node: tasks, Logger: logger}), nodeV1alpha1)
			for path, request := range map[string]proto.Message{
				"/v1alpha1.Node/Stage":   &wirepb.StageRequest{VolumeId: "vol", Source: source},
				"/v1alpha1.Node/Unstage": &wirepb.UnstageRequest{VolumeId: "vol", Source: source},
			} {
				err := conn.Invoke(t.Context(), path, request, &wirepb.StageResponse{})
				wantCode(t, err, f.code)
				failure := wire.ErrorFromStatus("", err)
				if strings.Contains(err.Error()+failure.Error(), marker) {
					t.Errorf("%s, %s: the error repeats it: %v", what, name, err)
				}
			}
			if text := log.String(); strings.Contains(text, marker) || strings.Count(text, "call failed") != 2 {
				t.Errorf("%s, %s: the log is:\n%s", what, name, text)
			}
		}
	}
}

// The failures that repeat no secret keep their cause.
func TestCauseWithoutSecretStays(t *testing.T) {
	t.Parallel()
	tasks := &wiretest.Node{Before: func(context.Context, string) error {
		return &host.Error{Op: "Stage", Object: "vol", Kind: host.KindDenied, Cause: errors.New("the share says no")}
	}}
	conn := dial(t, serveNode(t, wire.ServerConfig{Node: tasks}), nodeV1alpha1)
	err := conn.Invoke(t.Context(), "/v1alpha1.Node/Stage",
		&wirepb.StageRequest{Source: &wirepb.Source{Smb: &wirepb.SMBSource{Password: marker}}}, &wirepb.StageResponse{})
	if failure := wire.ErrorFromStatus("", err); failure.Kind != host.KindDenied || failure.Error() != "Stage vol: access denied: the share says no" {
		t.Errorf("got %v", failure)
	}
}

// A wrong wire type is found in messages of a list, too.
func TestPairCheckLooksIntoLists(t *testing.T) {
	t.Parallel()
	nested := func(number protowire.Number, inner []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), inner)
	}
	portal := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), "3260") // a port in text
	for name, raw := range map[string][]byte{
		"portal": nested(3, nested(2, nested(1, portal))), // source.iscsi.portals
		"lun":    nested(3, nested(2, protowire.AppendString(protowire.AppendTag(nil, 3, protowire.BytesType), "7"))),
	} {
		if _, err := wire.DecodeRequest(nodeV1alpha1, "Stage", raw); !host.IsKind(err, host.KindInvalid) {
			t.Errorf("%s with a wrong wire type: %v", name, err)
		}
	}
}
