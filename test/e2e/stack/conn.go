package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/test/upstream"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// Conn returns the connection to an API's socket. It is closed by Stop.
func (s *Stack) Conn(group, version string) *grpc.ClientConn {
	s.Helper()
	api := wire.API{Group: group, Version: version}
	s.mu.Lock()
	defer s.mu.Unlock()
	if conn := s.conns[api]; conn != nil {
		return conn
	}
	conn, err := grpc.NewClient("passthrough:///"+api.String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return s.place.Dial(ctx, group, version)
		}))
	s.OK(err)
	s.conns[api] = conn
	return conn
}

// Place is where the pipes of the stack are.
func (s *Stack) Place() pipe.Place { return s.place }

// Client returns the product's own client on the stack's sockets.
func (s *Stack) Client() *client.Client {
	s.Helper()
	c, err := client.New(client.Options{Place: s.place})
	s.OK(err)
	s.Cleanup(func() { _ = c.Close() })
	return c
}

// Call makes one call through csi-proxy's own stub: requests and answers are its
// messages in JSON. The answer is "" when the call fails.
func (s *Stack) Call(group, version, method, request string) (answer string, err error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), CallTimeout)
	defer cancel()
	return s.CallContext(ctx, group, version, method, request)
}

// CallContext is Call with a context of the caller's.
func (s *Stack) CallContext(ctx context.Context, group, version, method, request string) (answer string, err error) {
	s.Helper()
	c := upstream.Case{Group: group, Version: version, Method: method, Request: request}
	messages, err := c.Do(ctx, upstream.Stub(group, version, s.Conn(group, version)))
	if err != nil {
		return "", err
	}
	return compactJSON(messages.Response)
}

// compactJSON is a message in JSON without blanks, of which protojson puts in
// more or fewer at random.
func compactJSON(m proto.Message) (string, error) {
	raw, err := protojson.Marshal(m)
	if err != nil {
		return "", err
	}
	var compact bytes.Buffer
	err = json.Compact(&compact, raw)
	return compact.String(), err
}

// Must is Call for calls that have to succeed.
func (s *Stack) Must(group, version, method, request string) (answer string) {
	s.Helper()
	answer, err := s.Call(group, version, method, request)
	if err != nil {
		s.Fatalf("%s/%s %s %s: %v", group, version, method, request, err)
	}
	return answer
}

// Refused fails the test unless the call fails with the code. It returns the text
// of the error.
func (s *Stack) Refused(code codes.Code, group, version, method, request string) string {
	s.Helper()
	answer, err := s.Call(group, version, method, request)
	if status.Code(err) != code {
		s.Errorf("%s/%s %s %s: got %v, answer %s; want %v", group, version, method, request, err, answer, code)
	}
	return status.Convert(err).Message()
}

// Log is what the stack has logged.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns everything that was logged so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// mustBeCalm fails the test when the log tells of a panic.
func (l *Log) mustBeCalm(s *Stack) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, "panic") {
			s.Errorf("the log tells of a panic: %.2000s", line)
		}
	}
}

// Take returns what was logged since the last Take, and forgets it.
func (l *Log) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.text.String()
	l.text.Reset()
	return taken
}
