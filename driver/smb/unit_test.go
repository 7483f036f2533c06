package smb

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	smb2 "github.com/cloudsoda/go-smb2"

	"github.com/csi-windows/csi-windows/csikit"
)

func TestC040_UsersAndDomains(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   Credentials
		want account
	}{
		{Credentials{Username: "u", Password: " p "}, account{"u", "", " p "}},
		{Credentials{Username: "u", Domain: "d"}, account{user: "u", domain: "d"}},
		{Credentials{Username: `d\u`}, account{user: "u", domain: "d"}},
		{Credentials{Username: `d\u`, Domain: "D"}, account{user: "u", domain: "d"}},
		{Credentials{Username: "u@d.tld"}, account{user: "u@d.tld"}},
		{Credentials{Username: "u@d.tld", Domain: "D.tld"}, account{user: "u@d.tld"}},
	} {
		if got, err := test.in.account(); err != nil || got != test.want {
			t.Errorf("%q: %q, %v", test.in, got, err)
		}
	}
	for _, in := range []Credentials{{}, {Username: `d\u`, Domain: "e"}, {Username: "u@d.tld", Domain: "d"}, {Username: `d\u\v`}, {Username: `d\`},
		{Username: "u\n"}, {Username: "u\r\n", Domain: "d"}, {Username: "u", Domain: "d\n"}} {
		if got, err := in.account(); !errors.Is(err, csikit.ErrInvalid) {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func TestNodeSource(t *testing.T) {
	t.Parallel()
	b, err := New(Config{AnySource: true})
	if err != nil {
		t.Fatal(err)
	}
	request := csikit.NodeSourceRequest{VolumeID: "smb://srv:4450/share/base/v", Secrets: map[string]string{
		secretUsername: `d\u`, secretPassword: " p$ "}}
	source, err := b.NodeSource(t.Context(), request)
	if err != nil || source.SMB == nil || source.SMB.Path != `\\srv\share\base\v` ||
		source.SMB.Username != "u" || source.SMB.Domain != "d" || source.SMB.Password != " p$ " {
		t.Errorf("%+v, %v", source.SMB, err)
	}
	request.Ending = true
	if source, err = b.NodeSource(t.Context(), request); err != nil || source.SMB.Path != `\\srv\share\base\v` || source.SMB.Password != "" {
		t.Errorf("at the end: %+v, %v", source.SMB, err)
	}
	request.Ending, request.Secrets = false, nil
	if _, err := b.NodeSource(t.Context(), request); !errors.Is(err, csikit.ErrUnauthenticated) {
		t.Errorf("without secrets: %v", err)
	}
}

// The folder of a mounted Secret is read anew each time, byte for byte.
func TestC042_CredentialsFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	read := CredentialsFolder(folder)
	if _, err := read(t.Context()); !errors.Is(err, csikit.ErrUnavailable) {
		t.Errorf("nothing there: %v", err)
	}
	for _, want := range []Credentials{{Username: "u", Password: " p\n"}, {Username: "u", Password: "q", Domain: "d"}} {
		for name, value := range map[string]string{secretUsername: want.Username, secretPassword: want.Password, secretDomain: want.Domain} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(value), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := read(t.Context()); err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, secretPassword), make([]byte, credentialBytesMax+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(t.Context()); err == nil {
		t.Error("a large file is a password")
	}
}

// sink is a connection that takes everything.
type sink struct {
	net.Conn
	written []byte
}

func (s *sink) Write(p []byte) (int, error) {
	s.written = append(s.written, p...)
	return len(p), nil
}

func TestC044_NothingLeavesUnencrypted(t *testing.T) {
	t.Parallel()
	packet := func(protocol string, command uint16) []byte {
		p := make([]byte, 64)
		copy(p, protocol)
		binary.LittleEndian.PutUint16(p[commandOffset:], command)
		return p
	}
	for command := range uint16(19) {
		for _, protocol := range []string{protocolPlain, protocolEncrypted, "abcd"} {
			s := &sink{}
			c := &guardedConn{Conn: s}
			p := packet(protocol, command)
			for range 2 {
				_, lengthErr := c.Write([]byte{0, 0, 0, 64})
				_, err := c.Write(p)
				passes := protocol == protocolEncrypted || protocol == protocolPlain && command <= 4
				if lengthErr == nil && (err == nil) != passes {
					t.Errorf("%q %d: %v", protocol, command, err)
				}
			}
		}
	}
	s := &sink{}
	c := &guardedConn{Conn: s}
	for _, p := range [][]byte{packet(protocolPlain, 5), nil, {1}, {0, 0, 0}} {
		if _, err := c.Write(p); !errors.Is(err, errPlain) || len(s.written) > 0 {
			t.Errorf("%d bytes without a length: %v", len(p), err)
		}
	}
	_, _ = c.Write([]byte{0, 0, 0, 64})
	if _, err := c.Write(packet(protocolEncrypted, 0)[:10]); !errors.Is(err, errPlain) {
		t.Errorf("part of a packet: %v", err)
	}
}

func TestKindsOfErrors(t *testing.T) {
	t.Parallel()
	for code, kind := range map[uint32]error{
		statusLogonFailure: csikit.ErrUnauthenticated, statusPasswordExpired: csikit.ErrUnauthenticated, statusBadNetworkName: csikit.ErrNotFound,
		statusDiskFull: csikit.ErrExhausted, statusQuotaExceeded: csikit.ErrExhausted, statusSharingViolation: csikit.ErrInUse,
		statusObjectNameInvalid: csikit.ErrInvalid, statusUserSessionDeleted: errLost, statusServerResources: csikit.ErrUnavailable, 1: csikit.ErrUnavailable,
	} {
		if err := kindOf(&os.PathError{Op: "open", Path: "x", Err: &smb2.ResponseError{Code: code}}); !errors.Is(err, kind) {
			t.Errorf("%#x: %v", code, err)
		}
	}
	for cause, kind := range map[error]error{
		os.ErrNotExist: csikit.ErrNotFound, os.ErrExist: csikit.ErrExists, os.ErrPermission: csikit.ErrDenied,
		context.DeadlineExceeded: context.DeadlineExceeded, &smb2.TransportError{Err: net.ErrClosed}: csikit.ErrUnavailable,
		&smb2.TransportError{Err: errPlain}: csikit.ErrPrecondition,
	} {
		if err := kindOf(cause); !errors.Is(err, kind) {
			t.Errorf("%v: %v", cause, err)
		}
	}
	if err := kindOf(&smb2.InvalidResponseError{Message: "guest account doesn't support signing"}); !errors.Is(err, csikit.ErrUnauthenticated) || !strings.Contains(err.Error(), "guest") {
		t.Errorf("guest: %v", err)
	}
}
