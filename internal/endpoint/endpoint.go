// Package endpoint reads the addresses at which CSI drivers answer, in every
// spelling that flags and manifests have for them, and connects to them.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// SocketPathBytesMax is the most bytes a path has in a socket's address without its
// terminator, on Linux and on Windows.
//
// Source: unix(7), sun_path; afunix.h, UNIX_PATH_MAX.
const SocketPathBytesMax = 107

// pipeNameCharsMax is the length of a pipe's whole name.
//
// Source: CreateNamedPipe, Windows API.
const pipeNameCharsMax = 256

// Endpoint is where a server listens.
type Endpoint struct {
	Network string // "unix", "tcp" or "npipe"
	Address string
}

// String is the endpoint in a form that Parse reads.
func (e Endpoint) String() string { return e.Network + ":" + e.Address }

// Dial connects to the server. The error names the endpoint.
func (e Endpoint) Dial(ctx context.Context) (net.Conn, error) {
	conn, err := e.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", e, err)
	}
	return conn, nil
}

func (e Endpoint) dial(ctx context.Context) (net.Conn, error) {
	if e.Network == "npipe" {
		return dialPipe(ctx, e.Address)
	}
	return new(net.Dialer).DialContext(ctx, e.Network, e.Address)
}

// Parse reads an endpoint: a path, unix:PATH, unix://PATH, tcp://HOST:PORT
// or, on Windows, npipe:NAME, for a system as in runtime.GOOS. The error names the
// endpoint. Nothing is opened.
func Parse(text, system string) (Endpoint, error) {
	e, err := split(text, system)
	if err != nil {
		return Endpoint{}, fmt.Errorf("endpoint %q: %w", text, err)
	}
	return e, nil
}

func split(text, system string) (Endpoint, error) {
	if text == "" {
		return Endpoint{}, errors.New("empty: give unix:PATH, tcp://HOST:PORT or npipe:NAME")
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }); i >= 0 {
		return Endpoint{}, fmt.Errorf("control character at byte %d", i)
	}
	scheme, rest, found := strings.Cut(text, ":")
	isDrive := len(scheme) == 1 // C:\csi\csi.sock
	if !found || isDrive || strings.ContainsAny(scheme, `/\`) {
		return socket(text, system)
	}
	switch strings.ToLower(scheme) {
	case "unix":
		return socket(strings.TrimPrefix(rest, "//"), system)
	case "tcp":
		return loopback(strings.TrimPrefix(rest, "//"))
	case "npipe":
		return pipe(rest, system)
	}
	return Endpoint{}, fmt.Errorf("unknown scheme %q: it may be unix, tcp or npipe", scheme)
}

func socket(path, system string) (Endpoint, error) {
	// A URL has one slash more before the drive: unix:///C:\csi\csi.sock.
	if system == "windows" && len(path) > 2 && path[0] == '/' && path[2] == ':' {
		path = path[1:]
	}
	switch {
	case path == "":
		return Endpoint{}, errors.New("the path of the socket is empty")
	case path[0] == '@':
		return Endpoint{}, errors.New("abstract sockets are open to everybody; give a path")
	case len(path) > SocketPathBytesMax:
		return Endpoint{}, fmt.Errorf("the path of the socket has %d bytes, the limit is %d", len(path), SocketPathBytesMax)
	}
	return Endpoint{Network: "unix", Address: path}, nil
}

// loopback takes the addresses of this machine only: CSI knows no
// authentication, so whoever reaches the port may delete volumes.
func loopback(address string) (Endpoint, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return Endpoint{}, err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return Endpoint{}, fmt.Errorf("port %q is none, the limit is 65535", port)
	}
	ip, err := netip.ParseAddr(name)
	if name != "localhost" && (err != nil || !ip.IsLoopback()) {
		return Endpoint{}, fmt.Errorf("host %q is not a loopback address, and CSI has no authentication", name)
	}
	return Endpoint{Network: "tcp", Address: address}, nil
}

// pipe takes //./pipe/NAME with either slash, after // or not.
func pipe(rest, system string) (Endpoint, error) {
	if system != "windows" {
		return Endpoint{}, errors.New("named pipes are on Windows only")
	}
	name := strings.TrimLeft(strings.ReplaceAll(rest, "/", `\`), `\`)
	const prefix = `.\pipe\`
	if len(name) <= len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
		return Endpoint{}, errors.New(`a pipe is named npipe:\\.\pipe\NAME`)
	}
	name = `\\` + prefix + name[len(prefix):]
	if len(name) > pipeNameCharsMax {
		return Endpoint{}, fmt.Errorf("the name of the pipe has %d characters, the limit is %d", len(name), pipeNameCharsMax)
	}
	return Endpoint{Network: "npipe", Address: name}, nil
}
