package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
)

// share puts a file server with one user on the lab's network and returns the
// real folder of its share.
func (l *lab) share(change ...func(*sim.SMBServer)) string {
	l.Helper()
	folder := l.TempDir()
	server := sim.SMBServer{Name: "srv", Users: map[string]string{"u": "pw", `d\u`: "pw"}, Shares: []sim.SMBShare{
		{Name: "share", Folder: folder}, {Name: "second", Folder: l.TempDir()},
	}}
	for _, c := range change {
		c(&server)
	}
	l.ok(l.node.SetSMBServer(l.ctx, server))
	return folder
}

func (l *lab) mappings() []host.SmbMapping {
	l.Helper()
	mappings, err := l.agent.ListSmbGlobalMappings(l.ctx)
	l.ok(err)
	return mappings
}

const (
	createMapping = "cim.Exec MSFT_SmbGlobalMapping.Create"
	removeMapping = "cim.Exec MSFT_SmbGlobalMapping.Remove"
)

func TestC031_C032_OneMappingForAShare(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	folder := l.share()
	for _, dir := range []string{"a/b", "c"} {
		l.ok(os.MkdirAll(filepath.Join(folder, dir), 0o755))
	}
	writeFile(t, filepath.Join(folder, "a/b/file"), []byte("remote"))
	calls := l.calls(func() {
		l.ok(l.agent.NewSmbGlobalMapping(l.ctx, `\\SRV\Share`, "", "u", "pw"))
		l.ok(l.agent.NewSmbGlobalMapping(l.ctx, `//srv/share/a/b`, root+`\one`, "u", "pw"))
		l.ok(l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share\a\b`, root+`\one`, "u", "pw"))
		l.ok(l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share\c\`, root+`\two`, "u", "pw"))
	})
	if n := count(calls, createMapping); n != 1 {
		t.Errorf("%d mappings were made: %q", n, calls)
	}
	l.ok(l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\second`, "", "u", "pw"))
	if m := l.mappings(); len(m) != 2 || m[0].RemotePath != `\\srv\share` || !m[0].RequirePrivacy {
		t.Errorf("mappings are %+v", m)
	}
	l.holds(root+`\one\file`, "remote")
	link, err := l.agent.GetLink(l.ctx, root+`\one`)
	l.ok(err)
	if link.Target != `\\srv\share\a\b` {
		t.Errorf("the link leads to %q", link.Target)
	}
	l.exists(root+`\one\file`, true)
	l.exists(root+`\one\none`, false)
	l.want(host.KindInvalid, l.agent.Mkdir(l.ctx, root+`\one\new`))
	l.want(host.KindInvalid, l.agent.Rmdir(l.ctx, root+`\one\file`, true))
	l.want(host.KindExists, l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share\c`, root+`\one`, "u", "pw"))
	l.want(host.KindNotFound, l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share\none`, root+`\three`, "u", "pw"))
	l.exists(root+`\three`, false)
	l.ok(l.agent.Rmdir(l.ctx, root+`\one`, true))
	if _, err := os.Stat(filepath.Join(folder, "a/b/file")); err != nil {
		t.Errorf("removing the link removed the file: %v", err)
	}
	for range 2 {
		l.ok(l.agent.RemoveSmbGlobalMapping(l.ctx, `\\srv\share\any\thing`))
	}
	if m := l.mappings(); len(m) != 1 {
		t.Errorf("mappings are %+v", m)
	}
	l.noHandles()
}

func TestC033_ConcurrentMappings(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.share()
	calls := l.calls(func() {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if err := l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, "", "u", "pw"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
	if n := count(calls, createMapping); n != 1 {
		t.Errorf("%d mappings were made", n)
	}
	// Another user on the same server: Windows refuses with 1219.
	err := l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\second`, "", `d\u`, "pw")
	l.want(host.KindPrecondition, err)
	if err == nil || !strings.Contains(err.Error(), `\\srv\second`) || strings.Contains(err.Error(), "pw") {
		t.Errorf("the text is %v", err)
	}
}

func TestC033_SomebodyElseWasFirst(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.share()
	first := true
	l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: createMapping, Hook: func() {
		if first {
			first = false
			if err := l.os.CreateSMBMapping(l.ctx, agent.SMBRequest{Share: `\\srv\share`, Username: "u", Password: "pw", RequirePrivacy: true}); err != nil {
				t.Error(err)
			}
		}
	}}))
	l.ok(l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, "", "u", "pw"))
	if m := l.mappings(); len(m) != 1 {
		t.Errorf("mappings are %+v", m)
	}
}

func TestC047_BrokenMappingIsMadeAgainOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.share()
	l.ok(l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, "", "u", "pw"))
	l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.FileAttributes", Win32: 1326}))
	calls := l.calls(func() { l.ok(l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, root+`\link`, "u", "pw")) })
	if count(calls, removeMapping) != 1 || count(calls, createMapping) != 1 {
		t.Errorf("calls were %q", calls)
	}
	l.linkKind(root+`\link`, host.LinkSymlink)
}

func TestC047_ProbeHasALimit(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]sim.Fault{
		"slow": {Call: "win32.FileAttributes", Count: -1, Latency: time.Minute},
		"deaf": {Call: "win32.FileAttributes", Count: -1, Hang: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, func(_ *sim.Config, p *agent.Policy) { p.ProbeTimeout = 2 * time.Second })
			l.share()
			l.ok(l.node.AddFault(l.ctx, fault))
			started := time.Now()
			l.want(host.KindUnavailable, l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, root+`\link`, "u", "pw"))
			if took := time.Since(started); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			l.exists(root+`\link`, false)
			l.ok(l.node.ClearFaults(l.ctx))
			l.ok(l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, root+`\link`, "u", "pw"))
		})
	}
}

func TestC045_FailureLeavesNoLink(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.share()
	for _, tc := range []struct {
		remote, user, password string
		kind                   host.Kind
	}{
		{`\\srv\share`, "u", "wrong-PASSWORD-1", host.KindUnauthenticated},
		{`\\srv\none`, "u", "pw", host.KindNotFound},
		{`\\nobody\share`, "u", "pw", host.KindUnavailable},
		{`\\srv\share`, "", "wrong-PASSWORD-1", host.KindInvalid},
		{`\\srv`, "u", "pw", host.KindInvalid},
	} {
		err := l.agent.NewSmbGlobalMapping(l.ctx, tc.remote, root+`\link`, tc.user, tc.password)
		l.want(tc.kind, err)
		l.exists(root+`\link`, false)
	}
	for _, local := range []string{`C:\outside\link`, root + `\a\..\..\link`, `\\srv\share`, root + `\no\parent`} {
		calls := l.calls(func() {
			if err := l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, local, "u", "pw"); err == nil {
				t.Errorf("local path %s was accepted", local)
			}
		})
		if n := count(calls, createMapping); n != 0 {
			t.Errorf("local path %s is refused only after the share was mapped", local)
		}
	}
	if text := l.log.String(); strings.Contains(text, "PASSWORD") {
		t.Errorf("the log holds a password:\n%s", text)
	}
}

func TestC044_PrivacyAsThePolicySays(t *testing.T) {
	t.Parallel()
	old := func(s *sim.SMBServer) { s.NoEncryption = true }
	strict := newLab(t)
	strict.share(old)
	err := strict.agent.NewSmbGlobalMapping(strict.ctx, `\\srv\share`, "", "u", "pw")
	strict.want(host.KindPrecondition, err)
	if err == nil || !strings.Contains(err.Error(), "require-privacy") {
		t.Errorf("the flag is not named: %v", err)
	}
	lax := newLab(t, func(_ *sim.Config, p *agent.Policy) { p.RequirePrivacy = false })
	lax.share(old)
	lax.ok(lax.agent.NewSmbGlobalMapping(lax.ctx, `\\srv\share`, "", "u", "pw"))
	if m := lax.mappings(); len(m) != 1 || m[0].RequirePrivacy {
		t.Errorf("mappings are %+v", m)
	}
}

func TestC039_PasswordsArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, password := range []string{`$x`, `'`, `"`, `\`, "`", `,`, `;`, `%`, `:`, " p ", "pä😀", strings.Repeat("p", 127), `a:b\c"d'e`} {
		l := newLab(t)
		l.share(func(s *sim.SMBServer) { s.Users = map[string]string{"u": password} })
		if err := l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, "", "u", password); err != nil {
			t.Errorf("password %q: %v", password, err)
		}
		if len(password) > 2 && strings.Contains(l.log.String(), password) {
			t.Errorf("password %q is in the log", password)
		}
	}
}

// A link on a disk must not make the node log on to a server of somebody's choice.
func TestLinkToUnmappedServerIsNotProbed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.share()
	l.ok(l.node.MakeLink(l.ctx, root+`\evil`, `\\srv\share`))
	calls := l.calls(func() {
		l.want(host.KindPrecondition, second(l.agent.PathExists(l.ctx, root+`\evil\x`)))
		l.want(host.KindPrecondition, l.agent.Mkdir(l.ctx, root+`\evil`))
	})
	if n := count(calls, "win32.FileAttributes"); n != 0 {
		t.Errorf("the server was asked: %q", calls)
	}
}

func TestC036_MappingLimit(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(c *sim.Config, _ *agent.Policy) { c.SMBMappingLimit = 1 })
	l.share()
	for range 50 { // short-lived claims on one share
		l.ok(l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, root+`\claim`, "u", "pw"))
		l.ok(l.agent.Rmdir(l.ctx, root+`\claim`, false))
	}
	l.want(host.KindExhausted, l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\second`, "", "u", "pw"))
	l.ok(l.agent.RemoveSmbGlobalMapping(l.ctx, `\\srv\share`))
	if m := l.mappings(); len(m) != 0 {
		t.Errorf("mappings are %+v", m)
	}
}

func TestWeakMappingIsReplaced(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.share()
	l.ok(l.os.CreateSMBMapping(l.ctx, agent.SMBRequest{Share: `\\srv\share`, Username: "u", Password: "pw"}))
	l.ok(l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, "", "u", "pw"))
	if m := l.mappings(); len(m) != 1 || !m[0].RequirePrivacy {
		t.Errorf("mappings are %+v", m)
	}
}
