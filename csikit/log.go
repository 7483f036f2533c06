package csikit

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// method is one call of CSI.
type method struct {
	name      string // "CreateVolume"
	fullName  string // "/csi.v1.Controller/CreateVolume"
	request   protoreflect.MessageType
	succeeded sync.Once
	successes prometheus.Observer // set by succeeded
	isProbe   bool
	isQuiet   bool // asked so often, with the same answer, that the log would be of nothing else
}

// allMethods are the calls of all services, by full name.
func allMethods() (map[string]*method, error) {
	all := map[string]*method{}
	services := csi.File_csi_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			name := string(methods.Get(j).Name())
			request, err := protoregistry.GlobalTypes.FindMessageByName(methods.Get(j).Input().FullName())
			if err != nil {
				return nil, err
			}
			m := &method{name: name, fullName: "/" + string(services.Get(i).FullName()) + "/" + name, request: request}
			m.isProbe = m.fullName == csi.Identity_Probe_FullMethodName
			m.isQuiet = m.isProbe || strings.HasSuffix(name, "GetCapabilities") || strings.HasPrefix(name, "GetPlugin")
			all[m.fullName] = m
		}
	}
	return all, nil
}

// logSuccess writes one line; with the request, without its secrets, at debug.
func (c *chain) logSuccess(m *method, request proto.Message, took time.Duration) {
	level := slog.LevelInfo
	if m.isQuiet {
		level = slog.LevelDebug
	}
	if c.logger.Enabled(context.Background(), level) {
		c.logCall(level, m, request, took, codes.OK, c.requestAttr(request)...)
	}
}

// logFailure writes the one line of a call that failed. text holds no secrets. A
// request against the rules is not shown: it may be of any size.
func (c *chain) logFailure(m *method, request proto.Message, took time.Duration, code codes.Code, text string, err error) {
	attrs := []slog.Attr{slog.String("error", text)}
	var panicked *panicError
	if errors.As(err, &panicked) {
		attrs = append(attrs, slog.String("stack", string(panicked.stack)))
	}
	if isViolation(err) {
		c.logCall(slog.LevelError, m, request, took, code, attrs...)
		return
	}
	c.logCall(slog.LevelError, m, request, took, code, append(attrs, c.requestAttr(request)...)...)
}

func (c *chain) logCall(level slog.Level, m *method, request proto.Message, took time.Duration, code codes.Code, more ...slog.Attr) {
	attrs := []slog.Attr{
		slog.String("method", m.name),
		slog.String("object", cut(subjectOf(request), idBytesMax)),
		slog.Duration("duration", took),
		slog.String("code", code.String()),
	}
	c.logger.LogAttrs(context.Background(), level, "call", append(attrs, more...)...)
}

// requestAttr is a request without its secrets, when somebody wants to see that much.
func (c *chain) requestAttr(request proto.Message) []slog.Attr {
	if !c.logger.Enabled(context.Background(), slog.LevelDebug) {
		return nil
	}
	return []slog.Attr{slog.Any("request", strippedRequest{request})}
}

// logLate says that a handler whose caller has gone returned after all. Its error
// may hold secrets, so only its code is told.
func (c *chain) logLate(m *method, request proto.Message, took time.Duration, err error) {
	code := codes.OK
	if err != nil {
		code = codeOf(err)
	}
	c.logger.LogAttrs(context.Background(), slog.LevelWarn, "call returned after its caller had gone",
		slog.String("method", m.name), slog.String("object", subjectOf(request)), slog.Duration("duration", took), slog.String("code", code.String()))
}
