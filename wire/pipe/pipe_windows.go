package pipe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// DefaultDir is empty: csi-proxy's pipes have no prefix.
const DefaultDir = ""

// neededAccount tells a caller who was refused what would help.
const neededAccount = "the pipe is for SYSTEM and Administrators; run the caller as one of them or let the server allow its SID"

// baseDescriptor is the security descriptor of every pipe: full access for SYSTEM
// (SY) and Administrators (BA), nothing inherited, nobody else.
//
// Source: Security Descriptor Definition Language, ACE strings.
const baseDescriptor = "D:P(A;;GA;;;SY)(A;;GA;;;BA)"

// allowRights are what an added SID gets: read and write. Clients open a pipe with
// GENERIC_WRITE, which holds the right to make another instance of the pipe; so an
// added account is one that is trusted not to pose as the server.
//
// Source: Named Pipe Security and Access Rights, FILE_CREATE_PIPE_INSTANCE.
const allowRights = "GRGW"

// bufferBytes is the size of the kernel's buffer in each direction.
const bufferBytes = 16 << 10

// Address returns the path of the pipe of a group and version.
func (p Place) Address(group, version string) (string, error) {
	return p.address(Name(group, version)), nil
}

func (p Place) address(name string) string {
	if p.Dir != "" {
		name = p.Dir + `\` + name
	}
	return `\\.\pipe\` + name
}

// listen makes the first instance of a pipe. go-winio refuses remote clients, and
// refuses a name that has an instance already.
func (p Place) listen(ctx context.Context, name string) (net.Listener, error) {
	path := p.address(name)
	descriptor, err := p.descriptor()
	if err != nil {
		return nil, fmt.Errorf("not usable: %w", err)
	}
	if _, err := serverPID(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, ErrInUse
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("not usable: %w", err)
	}
	listener, err := winio.ListenPipe(path, &winio.PipeConfig{
		SecurityDescriptor: descriptor,
		InputBufferSize:    bufferBytes,
		OutputBufferSize:   bufferBytes,
	})
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrExist):
		// Another server was faster, or a client keeps a connection of a dead one.
		return nil, fmt.Errorf("%w, if only by a client of a server that has gone: %w", ErrInUse, err)
	case err != nil:
		return nil, fmt.Errorf("not usable: %w", err)
	}
	// The first instance only keeps the name. Windows never connects a client to
	// it, Wine does once, and that client would wait for ever: be that client.
	if err := ownPipe(serverPID(path)); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// ownPipe refuses a pipe that another process answers, who was given a name that
// is ours. That nobody answers yet is right.
func ownPipe(pid uint32, err error) error {
	if err == nil && pid != windows.GetCurrentProcessId() {
		return fmt.Errorf("%w: process %d answers it", ErrInUse, pid)
	}
	return nil
}

// descriptor returns the security descriptor of the pipes: the base and one entry
// for each allowed SID, however often it is named.
func (p Place) descriptor() (string, error) {
	var b strings.Builder
	b.WriteString(baseDescriptor)
	seen := []string{"S-1-5-18", "S-1-5-32-544"} // SYSTEM and Administrators
	for _, text := range p.AllowSIDs {
		sid, err := windows.StringToSid(text)
		if err != nil {
			return "", fmt.Errorf("security identifier %q: %w", text, err)
		}
		if canonical := sid.String(); !slices.Contains(seen, canonical) {
			seen = append(seen, canonical)
			fmt.Fprintf(&b, "(A;;%s;;;%s)", allowRights, canonical)
		}
	}
	return b.String(), nil
}

// serverPID opens and closes a pipe once, without waiting for a free instance, and
// returns the process id of its server.
//
// Source: GetNamedPipeServerProcessId, Windows API.
func serverPID(path string) (uint32, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	// SECURITY_ANONYMOUS: whoever answers learns nothing of our token.
	const flags = windows.SECURITY_SQOS_PRESENT | windows.SECURITY_ANONYMOUS
	handle, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING, flags, 0)
	if err != nil {
		return 0, err
	}
	var pid uint32
	err = windows.GetNamedPipeServerProcessId(handle, &pid)
	return pid, errors.Join(err, windows.CloseHandle(handle))
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	return winio.DialPipeContext(ctx, address)
}
