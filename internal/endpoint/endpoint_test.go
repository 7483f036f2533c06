package endpoint_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/csi-windows/csi-windows/internal/endpoint"
)

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, system, want string }{
		{"unix:/csi/csi.sock", "linux", "unix:/csi/csi.sock"},
		{"unix:///csi/csi.sock", "linux", "unix:/csi/csi.sock"},
		{"unix:///csi/csi.sock", "windows", "unix:/csi/csi.sock"},
		{"/csi/csi.sock", "linux", "unix:/csi/csi.sock"},
		{"csi.sock", "linux", "unix:csi.sock"},
		{`unix://C:\csi\csi.sock`, "windows", `unix:C:\csi\csi.sock`},
		{`unix:///C:\csi\csi.sock`, "windows", `unix:C:\csi\csi.sock`},
		{`unix:C:\csi\csi.sock`, "windows", `unix:C:\csi\csi.sock`},
		{`C:\csi\csi.sock`, "windows", `unix:C:\csi\csi.sock`},
		{"UNIX:/csi/csi.sock", "linux", "unix:/csi/csi.sock"},
		{"unix:" + strings.Repeat("p", 107), "linux", "unix:" + strings.Repeat("p", 107)},
		{"tcp://127.0.0.1:1234", "linux", "tcp:127.0.0.1:1234"},
		{"tcp://[::1]:0", "windows", "tcp:[::1]:0"},
		{"tcp://localhost:1234", "linux", "tcp:localhost:1234"},
		{"npipe://./pipe/csi", "windows", `npipe:\\.\pipe\csi`},
		{"npipe:////./pipe/csi", "windows", `npipe:\\.\pipe\csi`},
		{`npipe:\\.\pipe\csi`, "windows", `npipe:\\.\pipe\csi`},
		{`npipe://\\.\pipe\csi`, "windows", `npipe:\\.\pipe\csi`},
	} {
		if got, err := endpoint.Parse(c.text, c.system); err != nil || got.String() != c.want {
			t.Errorf("%q on %s: %s, %v; want %s", c.text, c.system, got, err, c.want)
		}
	}
}

func TestEndpointsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, system, want string }{
		{"", "linux", "empty"},
		{"unix:", "linux", "empty"},
		{"unix://", "windows", "empty"},
		{"http://x", "linux", `unknown scheme "http"`},
		{"vsock:3:4", "linux", `unknown scheme "vsock"`},
		{"unix:@csi", "linux", "abstract"},
		{"unix:/csi\x00.sock", "linux", "control character at byte 9"},
		{"unix:" + strings.Repeat("p", 108), "linux", "108 bytes, the limit is 107"},
		{"tcp://10.0.0.1:1234", "linux", "loopback"},
		{"tcp://:1234", "linux", "loopback"},
		{"tcp://127.0.0.1", "linux", "missing port"},
		{"tcp://127.0.0.1:65536", "linux", "65535"},
		{"tcp://127.0.0.1:http", "linux", "65535"},
		{`npipe:\\.\pipe\csi`, "linux", "Windows only"},
		{`npipe:\\server\pipe\csi`, "windows", "named"},
		{`npipe:\\.\pipe\`, "windows", "named"},
		{`npipe:\\.\pipe\` + strings.Repeat("p", 248), "windows", "257 characters, the limit is 256"},
	} {
		_, err := endpoint.Parse(c.text, c.system)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "endpoint") {
			t.Errorf("%q on %s: %v; want %q", c.text, c.system, err, c.want)
		}
	}
}

func FuzzEndpoint(f *testing.F) {
	for _, text := range []string{"unix:///csi/csi.sock", `unix://C:\csi\csi.sock`, "tcp://127.0.0.1:1", `npipe:\\.\pipe\csi`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, system := range []string{"linux", "windows"} {
			e, err := endpoint.Parse(text, system)
			if err != nil {
				continue
			}
			if e.Address == "" || strings.ContainsAny(e.Address, "\x00\n") || e.Network == "unix" && len(e.Address) > endpoint.SocketPathBytesMax {
				t.Errorf("%q became %q", text, e)
			}
			if e.Network == "tcp" && !strings.Contains(e.Address, ":") {
				t.Errorf("%q became %q", text, e)
			}
		}
	})
}

func TestAnEndpointIsConnectedTo(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "ep") // short, as sockets need
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, e := range []endpoint.Endpoint{{Network: "unix", Address: filepath.Join(dir, "csi.sock")}, {Network: "tcp", Address: "127.0.0.1:0"}} {
		t.Run(e.Network, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen(e.Network, e.Address)
			if errors.Is(err, errNoSuchSockets) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			e.Address = listener.Addr().String()
			conn, err := e.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
			_ = listener.Close()
			if _, err := e.Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "endpoint "+e.String()) {
				t.Errorf("nobody there: %v", err)
			}
			if _, err := e.Dial(t.Context()); e.Network == "unix" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a socket without a file: %v", err)
			}
		})
	}
}

// errNoSuchSockets is what Windows answers where it has no sockets of a kind, as
// Wine has no unix sockets: WSAEAFNOSUPPORT. No other system has this number.
const errNoSuchSockets = syscall.Errno(10047)
