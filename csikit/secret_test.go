package csikit

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// marker is in every secret of these tests, with what a text may do to a secret.
const marker = `MARK"er\&<>%/?+é`

// spellings are the forms in which a marker must not come out.
func spellings() []string {
	inJSON, _ := json.Marshal(marker)
	return []string{"MARK", string(inJSON[1 : len(inJSON)-1]), url.QueryEscape(marker), "TUFSSyJlclw"}
}

// marked fills a request with markers wherever CSI lets secrets travel, and with
// right values elsewhere.
func marked(message protoreflect.Message) {
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case field.IsMap():
			fillMap(message.Mutable(field).Map(), string(field.Name()))
		case field.IsList() && field.Kind() == protoreflect.MessageKind:
			marked(message.Mutable(field).List().AppendMutable().Message())
		case field.IsList() && field.Name() == "mount_flags":
			message.Mutable(field).List().Append(protoreflect.ValueOfString("password=" + marker))
			message.Mutable(field).List().Append(protoreflect.ValueOfString("ro"))
		case field.IsList():
			message.Mutable(field).List().Append(protoreflect.ValueOfString("id-1"))
		case field.Kind() == protoreflect.MessageKind && field.Message().Name() != "BlockVolume":
			marked(message.Mutable(field).Message())
		case field.Kind() == protoreflect.StringKind:
			message.Set(field, protoreflect.ValueOfString("id-1"))
		case field.Kind() == protoreflect.EnumKind:
			message.Set(field, protoreflect.ValueOfEnum(1))
		}
	}
}

func fillMap(m protoreflect.Map, name string) {
	set := func(key, value string) {
		m.Set(protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(value))
	}
	if name == "secrets" {
		set("anything", marker)
		set("user", "MARKuser\n")
		set("pem", "-----BEGIN-----\nMARKline\n-----END-----\n")
		return
	}
	tokens, _ := json.Marshal(map[string]any{"audience": map[string]string{"token": "MARKtoken.x.y", "expirationTimestamp": "2030-01-01T00:00:00Z"}})
	set("csi.storage.k8s.io/serviceAccount.tokens", string(tokens))
	set("smbPassword", marker)
	set("server", "https://user:MARKurl@server.example/share")
	set("kind", "harmless")
}

// failingText is the text of a backend that tells all it was given.
func failingText(request proto.Message) string {
	var b strings.Builder
	text := fmt.Sprint(request)
	fmt.Fprint(&b, "backend refused (kind harmless): ", text)
	if strings.Contains(text, "secrets:") {
		fmt.Fprint(&b, " MARKuser MARKline ")
	}
	if strings.Contains(text, "smbPassword") {
		fmt.Fprint(&b, " MARKtoken.x.y MARKurl ")
	}
	if strings.Contains(text, "MARK") {
		inJSON, _ := json.Marshal(map[string]string{"password": marker})
		fmt.Fprintf(&b, "%s %q %s %s", marker, marker, url.QueryEscape(marker), inJSON)
	}
	return b.String()
}

// requestStream gives a stream handler its request.
type requestStream struct {
	grpc.ServerStream
	request proto.Message
}

func (s *requestStream) Context() context.Context { return context.Background() }
func (s *requestStream) RecvMsg(into any) error {
	proto.Merge(into.(proto.Message), s.request)
	return nil
}

func TestC098_NoSecretLeavesACall(t *testing.T) {
	t.Parallel()
	log, registry := &syncBuffer{}, prometheus.NewRegistry()
	server, err := NewServer(ServerConfig{
		Endpoint: "unix:x", Services: Services{Identity: &fakeServices{}}, Registerer: registry,
		Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug - 4})),
	})
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for fullName, m := range server.chain.methods {
		request := m.request.New()
		marked(request)
		message := request.Interface()
		for _, failing := range []string{"error", "panic", "none"} {
			handler := func() error {
				switch failing {
				case "error":
					return fmt.Errorf("%w: %s", ErrDenied, failingText(message))
				case "panic":
					panic(failingText(message))
				}
				return nil
			}
			if strings.Contains(fullName, "SnapshotMetadata") {
				err = server.chain.stream(nil, &requestStream{request: message}, &grpc.StreamServerInfo{FullMethod: fullName},
					func(_ any, s grpc.ServerStream) error { return handler() })
			} else {
				_, err = server.chain.unary(t.Context(), message, &grpc.UnaryServerInfo{FullMethod: fullName},
					func(context.Context, any) (any, error) { return nil, handler() })
			}
			if (err != nil) != (failing != "none") {
				t.Fatalf("%s, %s: %v", fullName, failing, err)
			}
			if err == nil {
				continue
			}
			expectClean(t, fullName, status.Convert(err).Message())
			if !strings.Contains(err.Error(), "backend refused (kind harmless)") {
				t.Errorf("%s: little is left of %v", fullName, err)
			}
			if strings.Contains(err.Error(), stripped) {
				looked++
			}
		}
	}
	if looked < 40 {
		t.Errorf("only %d failures held a secret", looked)
	}
	for line := range strings.Lines(log.String()) {
		expectClean(t, "log", line)
	}
	if !strings.Contains(log.String(), `"kind":"harmless"`) || !strings.Contains(log.String(), `"secrets":{"anything":"`+stripped) {
		t.Errorf("the log does not hold the requests: %.2000s", log)
	}
	families, err := registry.Gather()
	if err != nil || len(families) == 0 {
		t.Fatal(err)
	}
	expectClean(t, "metrics", fmt.Sprint(families))
}

func expectClean(t *testing.T, where, text string) {
	t.Helper()
	for _, spelling := range spellings() {
		if strings.Contains(text, spelling) {
			t.Errorf("%s: %s is in %s", where, spelling, text)
		}
	}
}

func TestC098_NoSecretIsInASpan(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	request := stageRequest("vol-1")
	request.Secrets = map[string]string{"password": marker}
	s := serve(t, &fakeServices{stage: func(context.Context, *csi.NodeStageVolumeRequest) error {
		return fmt.Errorf("password %s: %w", marker, ErrUnauthenticated)
	}}, func(c *ServerConfig) { c.TracerProvider = provider })
	if _, err := s.node().NodeStageVolume(t.Context(), request); err == nil {
		t.Fatal("no failure")
	}
	eventually(t, "traced", func() bool { return len(spans.GetSpans()) > 0 })
	text := fmt.Sprintf("%+v", spans.GetSpans())
	expectClean(t, "span", text)
	if !strings.Contains(text, "csi.v1.Node/NodeStageVolume") {
		t.Errorf("the span is of something else: %s", text)
	}
	expectClean(t, "log", s.log.String())
}

func TestShortSecretsLeaveTheTextReadable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ secret, text, want string }{
		{"a", "a bad password: a, caught", stripped + " bad password: " + stripped + ", caught"},
		{"pw", "pw=pw1", stripped + "=pw1"},
		{"hunter2", "wronghunter2x", "wrong" + stripped + "x"},
		{"", "nothing", "nothing"},
	} {
		found := secretsOf(&csi.DeleteVolumeRequest{VolumeId: "v", Secrets: map[string]string{"p": c.secret}})
		if got := found.scrub(c.text); got != c.want {
			t.Errorf("%q: %q, want %q", c.secret, got, c.want)
		}
	}
}

func TestKeysOfSecrets(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"csi.storage.k8s.io/serviceAccount.tokens": true, "Password": true, "clientSecret": true, "storageAccountKey": true,
		"passwd": true, "sasToken": true, "smbPass": true, "apiKey": true, "auth": true,
		"server": false, "fsType": false, "csi.storage.k8s.io/pod.name": false, "keyword": false, "share": false,
	} {
		if isSecretKey(key) != want {
			t.Errorf("%s: %t", key, !want)
		}
	}
}
