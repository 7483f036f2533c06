package csikit

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// askChain makes a call through the chain alone and returns the log, with the requests
// in it, and its error.
func askChain(t *testing.T, method string, request proto.Message, handler func() error) (log string, err error) {
	t.Helper()
	lines := &syncBuffer{}
	server, err := NewServer(ServerConfig{
		Endpoint: "unix:x", Services: Services{Identity: &fakeServices{}},
		Logger: slog.New(slog.NewJSONHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = server.chain.unary(t.Context(), request, &grpc.UnaryServerInfo{FullMethod: method},
		func(context.Context, any) (any, error) { return nil, handler() })
	return lines.String(), err
}

// Each place where a secret may travel is known by itself, not because the same
// secret is in another place, too.
func TestC098_EachPlaceOfASecretIsKnown(t *testing.T) {
	t.Parallel()
	const secret = "p1nE?apple"
	stageWith := func(change func(*csi.NodeStageVolumeRequest)) *csi.NodeStageVolumeRequest {
		r := stageRequest("v")
		change(r)
		return r
	}
	contextWith := func(key, value string) *csi.NodeStageVolumeRequest {
		return stageWith(func(r *csi.NodeStageVolumeRequest) { r.VolumeContext = map[string]string{key: value} })
	}
	secretsWith := stageWith(func(r *csi.NodeStageVolumeRequest) { r.Secrets = map[string]string{"x": secret} })
	for name, c := range map[string]struct {
		request *csi.NodeStageVolumeRequest
		leak    string // what the error holds
	}{
		"secrets":          {secretsWith, secret},
		"in base64":        {secretsWith, base64.StdEncoding.EncodeToString([]byte(secret))},
		"in base64 of URL": {secretsWith, base64.URLEncoding.EncodeToString([]byte(secret))},
		"in a query":       {secretsWith, "p1nE%3Fapple"},
		"token of a context": {
			contextWith("csi.storage.k8s.io/serviceAccount.tokens", `{"aud":{"token":"`+secret+`","expirationTimestamp":"2026-01-01"}}`), secret},
		"key of a context":  {contextWith("storageAccountKey", secret), secret},
		"URL of a context":  {contextWith("source", "https://user:"+secret+"@server/share"), secret},
		"user of a context": {contextWith("source", "https://"+secret+"@server/share"), secret},
		"publish context": {
			stageWith(func(r *csi.NodeStageVolumeRequest) { r.PublishContext = map[string]string{"chapPassword": secret} }), secret},
		"mount flag": {
			stageWith(func(r *csi.NodeStageVolumeRequest) {
				r.VolumeCapability.GetMount().MountFlags = []string{"password=" + secret}
			}), secret},
		"one within another": {
			stageWith(func(r *csi.NodeStageVolumeRequest) { r.Secrets = map[string]string{"a": "p1nE?", "b": secret} }), secret},
	} {
		log, err := askChain(t, csi.Node_NodeStageVolume_FullMethodName, c.request, func() error {
			return fmt.Errorf("logging in with %s: %w", c.leak, ErrUnauthenticated)
		})
		if text := status.Convert(err).Message(); !strings.Contains(text, "logging in with "+stripped+":") {
			t.Errorf("%s: the answer is %q", name, text)
		}
		for _, form := range []string{secret, c.leak, "apple"} {
			if strings.Contains(log, form) {
				t.Errorf("%s: %q is in the log: %s", name, form, log)
			}
		}
		if !strings.Contains(log, `"staging_target_path"`) {
			t.Errorf("%s: the request is not in the log: %s", name, log)
		}
	}
}

// A handler may take its request apart: its secrets are known all the same.
func TestC098_AHandlerThatEmptiesItsRequestHidesNoSecret(t *testing.T) {
	t.Parallel()
	request := stageRequest("v")
	request.Secrets = map[string]string{"password": marker}
	log, err := askChain(t, csi.Node_NodeStageVolume_FullMethodName, request, func() error {
		password := request.Secrets["password"]
		delete(request.Secrets, "password")
		return errors.New("refused: " + password)
	})
	expectClean(t, "answer", status.Convert(err).Message())
	expectClean(t, "log", log)
	if !strings.Contains(log, `"password":"`+stripped) {
		t.Errorf("the log has another request: %s", log)
	}
}

// The end of a call that nobody waits for any more is told without its text, and its
// handler may still change its request.
func TestC098_WhatComesLateIsToldWithoutItsText(t *testing.T) {
	t.Parallel()
	leave := make(chan struct{})
	var entered atomic.Int64
	s := serve(t, &fakeServices{stage: func(_ context.Context, r *csi.NodeStageVolumeRequest) error {
		entered.Add(1)
		for i := 0; ; i++ { // as a backend that works on its maps
			select {
			case <-leave:
				return errors.New("refused: " + marker)
			case <-time.After(time.Microsecond):
				r.VolumeContext[fmt.Sprint(i%8)] = "x"
			}
		}
	}}, nil)
	request := stageRequest("v")
	request.Secrets, request.VolumeContext = map[string]string{"password": marker}, map[string]string{"a": "b"}
	giveUp(t, &entered, func(ctx context.Context) error {
		_, err := s.node().NodeStageVolume(ctx, request)
		return err
	})
	eventually(t, "written down", func() bool { return len(s.log.lines(`"msg":"call"`)) > 0 })
	close(leave)
	const late = "call returned after its caller had gone"
	eventually(t, "told by the log", func() bool { return len(s.log.lines(late)) > 0 })
	expectClean(t, "log", s.log.String())
	if line := s.log.lines(late)[0]; strings.Contains(line, "refused") || !strings.Contains(line, `"code":"`) {
		t.Errorf("the line is %s", line)
	}
}

// Beside more secrets than can be looked for, no text is told.
func TestC098_TooManySecretsHideTheText(t *testing.T) {
	t.Parallel()
	request := &csi.CreateVolumeRequest{Name: "v"}
	for i := range 2 * secretsMax {
		c := mountCapability()
		c.GetMount().MountFlags = []string{fmt.Sprintf("password=number%d", i)}
		request.VolumeCapabilities = append(request.VolumeCapabilities, c)
	}
	log, err := askChain(t, csi.Controller_CreateVolume_FullMethodName, request, func() error {
		return fmt.Errorf("%w: number%d", ErrInvalid, 2*secretsMax-1)
	})
	if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != stripped {
		t.Errorf("got %v", err)
	}
	if strings.Contains(log, "number") {
		t.Error("the log holds a secret")
	}
}
