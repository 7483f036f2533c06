package csiclient_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// talker is a driver that makes every volume and answers as a test says.
type talker struct {
	*driver
	answer func() (*csi.CreateVolumeResponse, error)
}

func (d *talker) CreateVolume(context.Context, *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	return d.answer()
}

// create asks a driver for a volume that answers so.
func create(t *testing.T, answer func() (*csi.CreateVolumeResponse, error), options ...grpc.ServerOption) error {
	t.Helper()
	path := socket(t)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	d := &talker{driver: &driver{name: "one.example.com"}, answer: answer}
	server := grpc.NewServer(options...)
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done })
	client, _ := connect(t, csiclient.Config{Address: path})
	_, err = csi.NewControllerClient(client.Conn()).CreateVolume(t.Context(), &csi.CreateVolumeRequest{
		Name: "pvc-1", Secrets: map[string]string{"user": "hush", "key": "hush-hush", "port": "1"},
	})
	return err
}

func answered(volume *csi.Volume) func() (*csi.CreateVolumeResponse, error) {
	return func() (*csi.CreateVolumeResponse, error) { return &csi.CreateVolumeResponse{Volume: volume}, nil }
}

func failed(code codes.Code, text string) func() (*csi.CreateVolumeResponse, error) {
	return func() (*csi.CreateVolumeResponse, error) { return nil, status.Error(code, text) }
}

// A volume whose answer cannot be written, sent or read is made. gRPC says so
// with codes that a driver refuses with.
func TestAnAnswerThatGotLostIsNoRefusal(t *testing.T) {
	t.Parallel()
	tooLarge := make(map[string]string)
	for i := range 33 {
		tooLarge[strings.Repeat("k", i+1)] = strings.Repeat("x", 1<<20)
	}
	for name, err := range map[string]error{
		"invalid UTF-8":      create(t, answered(&csi.Volume{VolumeId: "v", VolumeContext: map[string]string{"text": "caf\xe9"}})),
		"more than is taken": create(t, answered(&csi.Volume{VolumeId: "v", VolumeContext: tooLarge})),
		"more than is sent":  create(t, answered(&csi.Volume{VolumeId: "v", VolumeContext: map[string]string{"k": strings.Repeat("x", 256)}}), grpc.MaxSendMsgSize(128)),
		"of another program": create(t, failed(codes.Internal, "Failed to serialize response!")),
	} {
		if err == nil || csiclient.IsFinal(err) || status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"refused":            create(t, failed(codes.Internal, "no luck")),
		"no method":          create(t, failed(codes.Unimplemented, "no such method")),
		"words of gRPC late": create(t, failed(codes.Internal, "zone: grpc: no")),
		"words of a driver":  create(t, failed(codes.InvalidArgument, "malformed grpc-like id")),
	} {
		if !csiclient.IsFinal(err) || status.Code(err) == codes.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := create(t, failed(codes.DeadlineExceeded, "grpc: too late")); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("deadline: %v", err)
	}
}

func TestANameThatNothingCanHaveIsWaitedOut(t *testing.T) {
	t.Parallel()
	path := socket(t)
	(&driver{name: strings.Repeat("n", 254)}).serve(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	log := &lines{}
	ended := make(chan error, 1)
	go func() {
		_, err := csiclient.Connect(ctx, csiclient.Config{Address: path, Log: slog.New(slog.NewTextHandler(log, nil))})
		ended <- err
	}()
	until(t, "the name is told of", func() bool { return strings.Contains(log.String(), "the driver's name has 254 bytes") })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTheWordsOfAnErrorAreFitToBeWrittenAnywhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ said, want string }{
		"plain":                  {"no luck: volume é\n\tis gone", "no luck: volume é\n\tis gone"},
		"lines of Windows":       {"one\r\ntwo\rthree", "one\ntwo?three"},
		"control characters":     {"\x1b[2Jgone\x00\x7f\u0085", "?[2Jgone???"},
		"not valid":              {"caf\xe9", "caf\ufffd"},
		"secrets":                {"login hush-hush for hush at port 1 failed", "login *** for *** at port 1 failed"},
		"a secret at the limit":  {strings.Repeat("x", 4085) + "hush-hush" + strings.Repeat("x", 100), strings.Repeat("x", 4085) + "***" + "xxxx ..."},
		"a character at the cut": {strings.Repeat("x", 4090) + strings.Repeat("é", 100), strings.Repeat("x", 4090) + "é ..."},
	} {
		err := create(t, failed(codes.Aborted, c.said))
		if got := status.Convert(err); got.Code() != codes.Aborted || got.Message() != c.want {
			t.Errorf("%s: %s %q", name, got.Code(), got.Message())
		}
	}
	err := create(t, failed(codes.Internal, strings.Repeat("\u2028long ", 1<<20)))
	if text := status.Convert(err).Message(); !csiclient.IsFinal(err) || len(text) > 4096 || !utf8.ValidString(text) || !strings.HasSuffix(text, " ...") {
		t.Errorf("of 8 MiB: %d bytes, %.200q", len(text), err)
	}
}
