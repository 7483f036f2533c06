package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

const (
	createMapping = "cim.Exec MSFT_SmbGlobalMapping.Create"
	removeMapping = "cim.Exec MSFT_SmbGlobalMapping.Remove"
)

// smbVersions are all versions of the smb group.
func smbVersions() []string { return []string{"v1alpha1", "v1beta1", "v1beta2", "v1"} }

// mappingRequest is the request for a mapping.
func mappingRequest(remote, local, user, password string) string {
	return fmt.Sprintf(`{"remote_path":"%s","local_path":"%s","username":"%s","password":"%s"}`,
		stack.Quoted(remote), stack.Quoted(local), stack.Quoted(user), stack.Quoted(password))
}

// C031, C032, C034: there is one mapping for a share, however its paths are written
// and whichever version asks, and each link leads to the whole remote path.
func TestC031_C032_C034_OneMappingForAShareOverTheWire(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	folder := s.Share("u", "pw")
	s.RealFile("x", folder, "pvc-1", "x", "file")
	spellings := []string{`\\srv\share\pvc-1\x`, `\\SRV\Share\pvc-1\x\`, `//srv/share/pvc-1/x`, `\\srv/share\pvc-1/x`}
	calls := s.Calls(func() {
		for i, remote := range spellings {
			link := fmt.Sprintf(`%s\l%d`, stack.Root, i)
			for range 2 {
				s.Must("smb", smbVersions()[i], "NewSmbGlobalMapping", mappingRequest(remote, link, "u", "pw"))
			}
			s.Holds(link+`\file`, "x")
		}
	})
	if n := countPrefix(calls, createMapping); n != 1 {
		t.Errorf("%d mappings were made", n)
	}
	if m := s.Mappings(); !slices.Equal(m, []string{`\\srv\share`}) {
		t.Errorf("mappings are %q", m)
	}
	s.Must("smb", "v1", "NewSmbGlobalMapping", mappingRequest(`\\srv\other`, "", "u", "pw"))
	if m := s.Mappings(); len(m) != 2 {
		t.Errorf("mappings are %q", m)
	}
	for _, version := range smbVersions() { // the first removes it, the others find nothing to do
		s.Must("smb", version, "RemoveSmbGlobalMapping", `{"remote_path":"\\\\SRV\\share\\pvc-1"}`)
		if m := s.Mappings(); !slices.Equal(m, []string{`\\srv\other`}) {
			t.Errorf("%s: mappings are %q", version, m)
		}
	}
}

// C034: what names no share is refused before the node is asked anything, and a
// server by name and by address are two servers.
func TestC034_RemotePaths(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.Share("u", "pw")
	s.OK(s.Node.SetSMBServer(context.Background(), sim.SMBServer{Name: "10.1.2.3", Users: map[string]string{"u": "pw"}, Shares: []sim.SMBShare{{Name: "share", Folder: s.TempDir()}}}))
	for _, remote := range []string{``, `\\`, `\\srv`, `\\srv\`, `srv\share`, `\srv\share`, `\\\share`, `C:\share`, `\\?\UNC\srv\share`, `\\.\pipe\x`, `\\srv\share\..\other`, `\\srv\share\a*`, `\\s"rv\share`, `\\srv\sh|are`, "\\\\srv\\share\\a\x00b"} {
		for _, version := range smbVersions() {
			for _, m := range []struct{ method, request string }{
				{"NewSmbGlobalMapping", mappingRequest(remote, "", "u", "pw")}, {"RemoveSmbGlobalMapping", fmt.Sprintf(`{"remote_path":"%s"}`, stack.Quoted(remote))},
			} {
				calls := s.Calls(func() { s.Refused(codes.InvalidArgument, "smb", version, m.method, m.request) })
				if len(calls) > 0 {
					t.Errorf("%s %q: the node was asked %q", m.method, remote, calls)
				}
			}
		}
	}
	s.Must("smb", "v1", "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, "", "u", "pw"))
	s.Must("smb", "v1", "NewSmbGlobalMapping", mappingRequest(`\\10.1.2.3\share`, "", "u", "pw"))
	if m := s.Mappings(); len(m) != 2 {
		t.Errorf("mappings are %q", m)
	}
}

// C033: twenty callers of four versions who want one share make one mapping, and a
// mapping somebody else made meanwhile is reused when it fits.
func TestC033_ConcurrentMappingsOverTheWire(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.Share("u", "pw", func(server *sim.SMBServer) { server.Users["v"] = "pw" })
	s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: createMapping, Count: -1, Latency: 5 * time.Millisecond}))
	calls := s.Calls(func() {
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				link := fmt.Sprintf(`%s\l%d`, stack.Root, i)
				if _, err := s.Call("smb", smbVersions()[i%4], "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, link, "u", "pw")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
	if n := countPrefix(calls, createMapping); n != 1 {
		t.Errorf("%d mappings were made", n)
	}
	text := s.Refused(codes.FailedPrecondition, "smb", "v1", "NewSmbGlobalMapping", mappingRequest(`\\srv\other`, "", "v", "pw"))
	if !strings.Contains(text, `\\srv\other`) || !strings.Contains(text, "1219") || strings.Contains(text, "pw") {
		t.Errorf("the text is %q", text)
	}
}

// C036: a mapping that is used a thousand times is one, and when the node has no room
// for one more it says so.
func TestC036_MappingsDoNotPileUp(t *testing.T) {
	t.Parallel()
	const limit = 3
	s := stack.New(t, func(cfg *stack.Config) { cfg.Node.SMBMappingLimit = limit })
	s.Share("u", "pw")
	for i := range 1000 {
		link := ""
		if i%20 == 0 {
			link = linkPath
		}
		s.Must("smb", smbVersions()[i%4], "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, link, "u", "pw"))
		if link != "" {
			s.Must("filesystem", "v1", "Rmdir", fmt.Sprintf(`{"path":%q}`, link))
		}
	}
	if m := s.Mappings(); len(m) != 1 {
		t.Errorf("mappings are %q", m)
	}
	s.Must("smb", "v1", "RemoveSmbGlobalMapping", `{"remote_path":"\\\\srv\\share"}`)
	if m := s.Mappings(); len(m) != 0 {
		t.Errorf("mappings are %q", m)
	}
	var codesSeen []codes.Code
	for i := range limit + 1 {
		name := fmt.Sprintf("srv%d", i)
		s.OK(s.Node.SetSMBServer(context.Background(), sim.SMBServer{Name: name, Users: map[string]string{"u": "pw"}, Shares: []sim.SMBShare{{Name: "s", Folder: s.TempDir()}}}))
		_, err := s.Call("smb", "v1", "NewSmbGlobalMapping", mappingRequest(`\\`+name+`\s`, "", "u", "pw"))
		codesSeen = append(codesSeen, status.Code(err))
	}
	if want := []codes.Code{codes.OK, codes.OK, codes.OK, codes.ResourceExhausted}; !slices.Equal(codesSeen, want) {
		t.Errorf("codes %v, want %v", codesSeen, want)
	}
}

// C039: a password arrives byte for byte, whatever is in it, and stands in no log and
// no error, be it right or wrong.
func TestC039_PasswordsOverTheWire(t *testing.T) {
	t.Parallel()
	const marker = "MARKER"
	for i, password := range []string{
		`$x`, `'`, `"`, `\`, "`", `,`, `;`, `%`, `:`, ` `, `  both ends  `, `pä😀`, strings.Repeat("p", 121), `%PATH%$(x)`, `a:b\c"d'e,f;g`, "tab\tline\n", "\u202e",
	} {
		password += marker
		s := stack.New(t)
		s.Share("u", password)
		version := smbVersions()[i%4]
		text := s.Refused(codes.Unauthenticated, "smb", version, "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, linkPath, "u", password+"x"))
		s.Must("smb", version, "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, linkPath, "u", password))
		if strings.Contains(text, marker) || strings.Contains(s.Log.String(), marker) {
			t.Errorf("password %q is in an error or the log", password)
		}
	}
}

// C040: forms of a user, and what a wrong one is told.
func TestC040_UsersOverTheWire(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]codes.Code{
		`u`: codes.OK, `d\u`: codes.OK, `u@d.tld`: codes.OK, `AZURE\acct`: codes.OK,
		`d\e\u`: codes.InvalidArgument, `\u`: codes.InvalidArgument, `d\`: codes.InvalidArgument, "u\x00": codes.InvalidArgument, "u\n": codes.InvalidArgument, `nobody`: codes.Unauthenticated,
	} {
		s := stack.New(t)
		s.Share("u", "pw", func(server *sim.SMBServer) {
			for _, known := range []string{`d\u`, `u@d.tld`, `AZURE\acct`} {
				server.Users[known] = "pw"
			}
		})
		_, err := s.Call("smb", "v1", "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, "", user, "pw"))
		if status.Code(err) != want {
			t.Errorf("user %q: %v, want %v", user, err, want)
		}
		if want == codes.Unauthenticated && !strings.Contains(err.Error(), "domain") {
			t.Errorf("user %q: %v does not speak of the domain", user, err)
		}
	}
}

// C044: privacy is asked for as the administrator says, and a server that cannot
// encrypt is refused with the name of the flag.
func TestC044_PrivacyOverTheWire(t *testing.T) {
	t.Parallel()
	for _, privacy := range []bool{true, false} {
		s := stack.New(t, func(cfg *stack.Config) { cfg.Policy.RequirePrivacy = privacy })
		s.Share("u", "pw", func(server *sim.SMBServer) { server.NoEncryption = !privacy })
		s.OK(s.Node.RecordCalls(context.Background(), true))
		s.Must("smb", "v1", "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, "", "u", "pw"))
		log, err := s.Node.CallLog(context.Background())
		s.OK(err)
		asked := false
		for _, call := range log {
			if call.Name == createMapping {
				asked = call.Params["RequirePrivacy"] == privacy
			}
		}
		if !asked {
			t.Errorf("privacy %t was not asked for", privacy)
		}
	}
	s := stack.New(t)
	s.Share("u", "pw", func(server *sim.SMBServer) { server.NoEncryption = true })
	text := s.Refused(codes.FailedPrecondition, "smb", "v1", "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, linkPath, "u", "pw"))
	if !strings.Contains(text, "require-privacy") || !strings.Contains(text, "65") || s.Has(stack.Root, "l") {
		t.Errorf("%q, or there is a link", text)
	}
}

// C045: whatever goes wrong with a mapping, there is no link and no folder that could
// be taken for the share, and what was there before still is.
func TestC045_NoLinkWithoutAMapping(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.Share("u", "pw")
	s.WriteFile(stack.Root+`\folder\file`, "kept")
	for _, failure := range []sim.Fault{
		{Call: createMapping, Count: -1, Win32: 5}, {Call: createMapping, Count: -1, Win32: 53}, {Call: createMapping, Count: -1, Win32: 64}, {Call: createMapping, Count: -1, Win32: 67},
		{Call: createMapping, Count: -1, Win32: 71}, {Call: createMapping, Count: -1, Win32: 86}, {Call: createMapping, Count: -1, Win32: 1231}, {Call: createMapping, Count: -1, Win32: 1326},
		{Call: createMapping, Count: -1, ReturnValue: 1}, {Call: "win32.FileAttributes", Count: -1, Win32: 53}, {Call: "cim.Query MSFT_SmbGlobalMapping", Count: -1, Win32: 1726},
	} {
		s.OK(s.Node.AddFault(context.Background(), failure))
		for _, version := range smbVersions() {
			if _, err := s.Call("smb", version, "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, linkPath, "u", "pw")); err == nil || status.Code(err) == codes.Unknown {
				t.Errorf("%s: with %+v: %v", version, failure, err)
			}
		}
		s.OK(s.Node.ClearFaults(context.Background()))
		mustHave(s, stack.Root, "folder")
		s.Must("smb", "v1", "RemoveSmbGlobalMapping", `{"remote_path":"\\\\srv\\share"}`)
	}
	for _, local := range []string{`C:\outside`, `C:\k-x\l`, `C:\k\..\l`, `relative`, `\\srv\share`, `C:\k\no\parent`, `C:\k\folder`, `C:\k\folder\file`} {
		calls := s.Calls(func() {
			if _, err := s.Call("smb", "v1", "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, local, "u", "pw")); err == nil {
				t.Errorf("the local path %s was taken", local)
			}
		})
		if n := countPrefix(calls, createMapping); n != 0 {
			t.Errorf("the share was mapped before the local path %s was refused", local)
		}
	}
	s.Holds(stack.Root+`\folder\file`, "kept")
}

// C047 and C032: a mapping that does not work is removed and made again once; a
// server that does not answer is Unavailable within the time limit.
func TestC047_C032_BrokenMappingOverTheWire(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	folder := s.Share("u", "pw")
	request := mappingRequest(`\\srv\share`, linkPath, "u", "pw")
	s.Must("smb", "v1", "NewSmbGlobalMapping", request)
	for name, breakIt := range map[string]func(){
		"the probe is refused": func() { s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "win32.FileAttributes", Win32: 5})) },
		"the server was away": func() {
			s.OK(s.Node.RemoveSMBServer(context.Background(), "srv"))
			s.Refused(codes.Unavailable, "smb", "v1", "NewSmbGlobalMapping", request)
			s.OK(s.Node.SetSMBServer(context.Background(), sim.SMBServer{Name: "srv", Users: map[string]string{"u": "pw"}, Shares: []sim.SMBShare{{Name: "share", Folder: folder}}}))
		},
	} {
		breakIt()
		calls := s.Calls(func() { s.Must("smb", "v1beta1", "NewSmbGlobalMapping", request) })
		if countPrefix(calls, createMapping) != 1 || countPrefix(calls, removeMapping) > 1 {
			t.Errorf("%s: calls were %q", name, calls)
		}
	}
	s.Restart(func(cfg *stack.Config) { cfg.Policy.ProbeTimeout = 50 * time.Millisecond })
	s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "win32.FileAttributes", Count: -1, Latency: time.Hour}))
	started := time.Now()
	s.Refused(codes.Unavailable, "smb", "v1", "NewSmbGlobalMapping", request)
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if _, err := os.Stat(filepath.Join(folder)); err != nil {
		t.Error(err)
	}
}

// The errors Windows gives for a mapping have the code of what is
// wrong, with the Windows error in the text.
func TestSmbErrorsHaveCodes(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.Share("u", "pw")
	for windows, want := range map[uint32]codes.Code{
		5: codes.PermissionDenied, 8: codes.ResourceExhausted, 53: codes.Unavailable, 64: codes.Unavailable, 65: codes.FailedPrecondition, 67: codes.NotFound, 71: codes.Unavailable,
		86: codes.Unauthenticated, 121: codes.Unavailable, 1231: codes.Unavailable, 1232: codes.Unavailable, 1326: codes.Unauthenticated, 1331: codes.Unauthenticated, 1909: codes.Unauthenticated, 2202: codes.Unauthenticated,
	} {
		s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: createMapping, Count: -1, Win32: windows}))
		_, err := s.Call("smb", "v1", "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, "", "u", "pw"))
		if status.Code(err) != want || !strings.Contains(status.Convert(err).Message(), fmt.Sprint(windows)) {
			t.Errorf("Windows error %d: %v, want %v", windows, err, want)
		}
		s.OK(s.Node.ClearFaults(context.Background()))
	}
}
