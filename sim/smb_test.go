package sim

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// smbNode is a node with the server srv: users u and v (password p), shares
// open (for all) and private (for v).
func smbNode(t *testing.T, config Config, change func(*SMBServer)) *Node {
	t.Helper()
	config.ArrivalPolls, config.ServicePolls = -1, -1
	n := openNode(t, config)
	server := SMBServer{
		Name: "srv", Users: map[string]string{"u": "p", `DOM\v`: "p"},
		Shares: []SMBShare{{Name: "open", Folder: t.TempDir()}, {Name: "second", Folder: t.TempDir()}, {Name: "private", Folder: t.TempDir(), Users: []string{`DOM\v`}}},
	}
	if change != nil {
		change(&server)
	}
	if err := n.SetSMBServer(context.Background(), server); err != nil {
		t.Fatal(err)
	}
	return n
}

// mapShare creates a mapping and returns its system error number.
func mapShare(t *testing.T, n *Node, in cim.Values) uint32 {
	t.Helper()
	_, err := n.Exec(context.Background(), cim.NamespaceSMB, "MSFT_SmbGlobalMapping", "Create", in)
	var e *cim.Error
	if errors.As(err, &e) {
		if e.HRESULT != cim.Failed {
			t.Fatalf("HRESULT 0x%X", e.HRESULT)
		}
		return e.Win32
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

func TestMappingErrors(t *testing.T) {
	t.Parallel()
	in := func(remote, credential string, more ...any) cim.Values {
		v := cim.Values{"RemotePath": remote, "Credential": credential}
		for i := 0; i < len(more); i += 2 {
			v[more[i].(string)] = more[i+1]
		}
		return v
	}
	for _, c := range []struct {
		name   string
		server func(*SMBServer)
		before []cim.Values
		in     cim.Values
		want   uint32
	}{
		{"good", nil, nil, in(`\\srv\open`, "u:p"), 0},
		{"slashes", nil, nil, in(`//SRV/Open`, "U:p"), 0},
		{"domain user", nil, nil, in(`\\srv\private`, `DOM\\v:p`), 0},
		{"no server", nil, nil, in(`\\none\open`, "u:p"), win32.ErrBadNetPath},
		{"no share", nil, nil, in(`\\srv\none`, "u:p"), win32.ErrBadNetName},
		{"no share name", nil, nil, in(`\\srv`, "u:p"), win32.ErrBadNetName},
		{"final backslash", nil, nil, in(`\\srv\open\`, "u:p"), win32.ErrInvalidParameter},
		{"wrong password", nil, nil, in(`\\srv\open`, "u:x"), win32.ErrLogonFailure},
		{"wrong user", nil, nil, in(`\\srv\open`, "w:p"), win32.ErrLogonFailure},
		{"no credential", nil, nil, cim.Values{"RemotePath": `\\srv\open`}, win32.ErrLogonFailure},
		{"invalid password code", func(s *SMBServer) { s.WrongPasswordError = 86 }, nil, in(`\\srv\open`, "u:x"), 86},
		{"share of others", nil, nil, in(`\\srv\private`, "u:p"), win32.ErrAccessDenied},
		{"no encryption", func(s *SMBServer) { s.NoEncryption = true }, nil, in(`\\srv\open`, "u:p", "RequirePrivacy", true), win32.ErrNetworkAccessDenied},
		{"no encryption asked", func(s *SMBServer) { s.NoEncryption = true }, nil, in(`\\srv\open`, "u:p", "RequirePrivacy", false), 0},
		{"unreachable", func(s *SMBServer) { s.Failure = 1232 }, nil, in(`\\srv\open`, "u:p"), 1232},
		{"server full", func(s *SMBServer) { s.MaxConnections = 1 }, []cim.Values{in(`\\srv\open`, "u:p")}, in(`\\srv\second`, "u:p"), errRequestNotAccepted},
		{"second share, same user", nil, []cim.Values{in(`\\srv\open`, "u:p")}, in(`\\srv\second`, "u:p"), 0},
		{"second share, other user", nil, []cim.Values{in(`\\srv\open`, "u:p")}, in(`\\srv\private`, `DOM\\v:p`), win32.ErrCredentialConflict},
		{"same share again", nil, []cim.Values{in(`\\srv\open`, "u:p")}, in(`\\SRV\OPEN`, "u:p"), win32.ErrCredentialConflict},
		{"below a mapping", nil, []cim.Values{in(`\\srv\open`, "u:p")}, in(`\\srv\open\sub`, "u:p"), win32.ErrCredentialConflict},
		{"above a mapping", nil, []cim.Values{in(`\\srv\open\sub`, "u:p")}, in(`\\srv\open`, "u:p"), win32.ErrCredentialConflict},
		{"name that starts alike", func(s *SMBServer) { s.Shares = append(s.Shares, SMBShare{Name: "open2"}) }, []cim.Values{in(`\\srv\open`, "u:p")}, in(`\\srv\open2`, "u:p"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := smbNode(t, Config{}, c.server)
			for _, before := range c.before {
				if code := mapShare(t, n, before); code != 0 {
					t.Fatalf("first mapping: %d", code)
				}
			}
			if got := mapShare(t, n, c.in); got != c.want {
				t.Errorf("Windows error %d, want %d", got, c.want)
			}
		})
	}
}

func TestMappingErrorAsReturnValue(t *testing.T) {
	t.Parallel()
	n := smbNode(t, Config{SMBErrorsAsReturnValue: true}, nil)
	code(t, n, "MSFT_SmbGlobalMapping", "Create", cim.Values{"RemotePath": `\\none\x`}, win32.ErrBadNetPath)
}

func TestMappingLimit(t *testing.T) {
	t.Parallel()
	n := smbNode(t, Config{SMBMappingLimit: 1}, nil)
	mapShare(t, n, cim.Values{"RemotePath": `\\srv\open`, "Credential": "u:p"})
	if got := mapShare(t, n, cim.Values{"RemotePath": `\\srv\second`, "Credential": "u:p"}); got != win32.ErrNotEnoughMemory {
		t.Fatalf("Windows error %d, want 8", got)
	}
}

func TestWorkstationServiceIsNeeded(t *testing.T) {
	t.Parallel()
	n := smbNode(t, Config{}, nil)
	if err := n.SetService(context.Background(), Service{Name: serviceWorkstation, StartType: startManual, State: serviceStopped}); err != nil {
		t.Fatal(err)
	}
	if got := mapShare(t, n, cim.Values{"RemotePath": `\\srv\open`, "Credential": "u:p"}); got != win32.ErrNoNetOrBadPath {
		t.Fatalf("Windows error %d, want 1203", got)
	}
}

func TestRemoteFiles(t *testing.T) {
	t.Parallel()
	n := smbNode(t, Config{}, nil)
	ctx := context.Background()
	probe := func(path string) uint32 {
		_, err := n.FileAttributes(ctx, path)
		return win32Code(err)
	}
	if got := probe(`\\srv\open`); got != win32.ErrLogonFailure {
		t.Fatalf("without mapping: %d", got)
	}
	mapShare(t, n, cim.Values{"RemotePath": `\\srv\open`, "Credential": "u:p"})
	if got := probe(`\\srv\open`); got != 0 {
		t.Fatalf("with mapping: %d", got)
	}
	if err := n.MakeLink(ctx, `C:\link`, `\\srv\open`); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, n, `C:\link\f`, "remote")
	if got := content(n, `\\srv\open\f`); got != "remote" {
		t.Fatalf("file through the link: %q", got)
	}
	total, free, err := n.DiskFreeSpace(ctx, `C:\link\`)
	if err != nil || total != shareBytes || free != shareBytes-4096 {
		t.Fatalf("%d of %d, %v", free, total, err)
	}
	m := one(t, n, "SELECT * FROM MSFT_SmbGlobalMapping WHERE RemotePath = '%s'", wqlText(`\\srv\open`))
	if m.Props["Status"] != uint32(smbStatusOK) {
		t.Fatal(m.Props)
	}
	server := SMBServer{Name: "srv", Users: map[string]string{"u": "changed"}, Shares: []SMBShare{{Name: "open", Folder: t.TempDir()}}}
	if err := n.SetSMBServer(ctx, server); err != nil {
		t.Fatal(err)
	}
	m = one(t, n, "SELECT * FROM MSFT_SmbGlobalMapping")
	if got := probe(`\\srv\open`); got != win32.ErrLogonFailure || m.Props["Status"] != uint32(smbStatusOK) {
		t.Fatalf("after the password changed: %d, status %v", got, m.Props["Status"])
	}
	server.Failure = win32.ErrBadNetPath
	if err := n.SetSMBServer(ctx, server); err != nil {
		t.Fatal(err)
	}
	m = one(t, n, "SELECT * FROM MSFT_SmbGlobalMapping")
	if got := probe(`\\srv\open`); got != win32.ErrBadNetPath || m.Props["Status"] != uint32(smbStatusDisconnected) {
		t.Fatalf("server down: %d, status %v", got, m.Props["Status"])
	}
	code(t, n, m.Path, "Remove", cim.Values{"Force": true}, 0)
	if rows := query(t, n, "SELECT * FROM MSFT_SmbGlobalMapping"); len(rows) != 0 {
		t.Fatal("mapping stays")
	}
}

func TestRemoveOfAMappingInUse(t *testing.T) {
	t.Parallel()
	n := smbNode(t, Config{}, nil)
	mapShare(t, n, cim.Values{"RemotePath": `\\srv\open`, "Credential": "u:p"})
	open(t, n, `\\srv\open\`, win32.FileListDir)
	m := one(t, n, "SELECT * FROM MSFT_SmbGlobalMapping")
	_, err := n.Exec(context.Background(), cim.NamespaceSMB, m.Path, "Remove", nil)
	var e *cim.Error
	if !errors.As(err, &e) || e.Win32 != errOpenFiles {
		t.Fatalf("remove in use: %v", err)
	}
	code(t, n, m.Path, "Remove", cim.Values{"Force": true}, 0)
}

func TestC032_PersistentMappingsSurviveAReboot(t *testing.T) {
	t.Parallel()
	n := smbNode(t, Config{}, nil)
	mapShare(t, n, cim.Values{"RemotePath": `\\srv\open`, "Credential": "u:p"})
	mapShare(t, n, cim.Values{"RemotePath": `\\srv\second`, "Credential": "u:p", "Persistent": false})
	cutAndBoot(t, n)
	m := one(t, n, "SELECT RemotePath FROM MSFT_SmbGlobalMapping")
	if m.Props["RemotePath"] != `\\srv\open` {
		t.Fatalf("left over: %v", m.Props)
	}
	if got := mapShare(t, n, cim.Values{"RemotePath": `\\srv\open`, "Credential": "u:p"}); got != win32.ErrCredentialConflict {
		t.Fatalf("again: %d, want 1219", got)
	}
}

func TestC039_PasswordsArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, password := range []string{`$x`, `'`, `"`, `\`, "`", `,`, `;`, `%`, `:`, ` both ends `, `ünï`, strings.Repeat("x", 127)} {
		user, got := parseCredential(`a\\b\:c:` + password)
		if user != `a\b:c` || got != password {
			t.Errorf("user %q, password %q, want %q", user, got, password)
		}
	}
}
