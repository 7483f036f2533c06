// Package control lets another process change and watch a simulated node: a
// small HTTP server over any listener, and a client that implements
// sim.Controller. It is for test beds: whoever reaches the listener rules the
// node.
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// bodyMaxBytes bounds a message: the largest is a file's content.
const bodyMaxBytes = 64 << 20

// probeTimeout bounds the look whether somebody already serves a socket.
const probeTimeout = time.Second

// Listen opens the listener of an address: a path is a unix socket for this
// account alone, replaced when an earlier process left it behind; "host:port" is
// TCP. What else stands at the path stays, and is an error.
func Listen(address string) (net.Listener, error) {
	network := networkOf(address)
	if network != "unix" {
		return net.Listen(network, address)
	}
	if err := clearStale(address); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(address, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// clearStale removes a socket that nobody serves.
func clearStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("%s exists and is no socket", path)
	}
	if conn, err := net.DialTimeout("unix", path, probeTimeout); err == nil {
		_ = conn.Close()
		return fmt.Errorf("%s: another process serves it", path)
	}
	return os.Remove(path)
}

func networkOf(address string) string {
	if strings.ContainsAny(address, `/\`) {
		return "unix"
	}
	return "tcp"
}

// request and response are the one message shape: arguments in order.
type request struct {
	Args []json.RawMessage `json:"args"`
}

type response struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *failure        `json:"error,omitempty"`
}

// failure carries an error over the wire; typed ones keep their type.
type failure struct {
	Text  string       `json:"text"`
	Win32 *win32.Error `json:"win32,omitempty"`
	CIM   *cim.Error   `json:"cim,omitempty"`
}

func newFailure(err error) *failure {
	f := &failure{Text: err.Error()}
	errors.As(err, &f.Win32)
	errors.As(err, &f.CIM)
	return f
}

func (f *failure) err() error {
	switch {
	case f.Win32 != nil:
		return f.Win32
	case f.CIM != nil:
		return f.CIM
	}
	return errors.New(f.Text)
}

// handler runs one method on the node.
type handler func(ctx context.Context, node sim.Controller, args []json.RawMessage) (any, error)

// decode reads the arguments into pointers.
func decode(args []json.RawMessage, into ...any) error {
	if len(args) != len(into) {
		return fmt.Errorf("%d arguments, want %d", len(args), len(into))
	}
	for i := range into {
		if err := decodeStrictly(bytes.NewReader(args[i]), into[i]); err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
	}
	return nil
}

// decodeStrictly reads one value. A field that is not known is an error: whoever
// misspelt it would see a node that does something else than was asked for.
func decodeStrictly(from io.Reader, into any) error {
	decoder := json.NewDecoder(from)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("json: something follows the value")
	}
	return nil
}

// Handler answers requests with what node says; the path is the method's name.
func Handler(node sim.Controller) http.Handler {
	table := methods()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		run := table[name]
		switch {
		case run == nil:
			refuse(w, http.StatusNotFound, "unknown method %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(table)), ", "))
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			refuse(w, http.StatusMethodNotAllowed, `%s %s: use POST with the body {"args":[…]}`, r.Method, name)
		default:
			answer(w, r, node, run)
		}
	})
}

// Serve answers on the listener until ctx ends, and closes the listener.
func Serve(ctx context.Context, listener net.Listener, node sim.Controller) error {
	return ServeHandler(ctx, listener, Handler(node))
}

// ServeHandler is Serve with a handler of the caller's, for a server that
// answers more than a Handler does.
func ServeHandler(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		Handler:           handler,
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		_ = server.Close()
	})
	err := server.Serve(listener)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// refuse answers a request that is for no method.
func refuse(w http.ResponseWriter, code int, format string, args ...any) {
	send(w, code, response{Error: &failure{Text: fmt.Sprintf(format, args...)}})
}

func send(w http.ResponseWriter, code int, out response) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(out) // the client is gone: nobody to tell
}

func answer(w http.ResponseWriter, r *http.Request, node sim.Controller, run handler) {
	var in request
	out := response{}
	result, err := any(nil), decodeStrictly(http.MaxBytesReader(w, r.Body, bodyMaxBytes), &in)
	if err == nil {
		result, err = run(r.Context(), node, in.Args)
	}
	if err == nil {
		out.Result, err = json.Marshal(result)
	}
	if err != nil {
		out.Error = newFailure(err)
	}
	send(w, http.StatusOK, out)
}
