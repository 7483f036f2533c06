package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
)

const (
	createMapping = "cim.Exec MSFT_SmbGlobalMapping.Create"
	removeMapping = "cim.Exec MSFT_SmbGlobalMapping.Remove"
)

func TestC031_C032_VolumesShareOneMapping(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		made := l.calls(createMapping, func() {
			for volume, path := range map[string]string{"v1": `\\srv\share\a`, "v2": `//SRV/Share/b/`, "v3": `\\srv\share`, "v4": `\\srv\share\pvc\1`} {
				l.kubeletFolder(volume)
				l.ok(l.tasks.Stage(l.ctx, smbStage(volume, path)))
			}
		})
		if len(made) != 1 {
			l.Errorf("mappings were made by %+v", made)
		}
		l.holds(netStaging("v1")+`\file`, "a")
		l.holds(netStaging("v2")+`\file`, "b")
		l.holds(netStaging("v3")+`\a\file`, "a")
		l.holds(netStaging("v4")+`\file`, "pvc/1")
		l.ok(l.tasks.Stage(l.ctx, smbStage("v5", `\\srv\second`)))
		l.mapped(2)
		if changes := l.calls("cim.Exec", func() { l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`))) }); len(changes) != 0 {
			l.Errorf("staged again, it changed %+v", changes)
		}
		l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v5", `\\srv\second`)))
		l.mapped(1)
	})
}

func TestC032_MappingIsMadeAgainAfterARestart(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
		l.reboot()
		l.mapped(0)
		l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
		l.holds(netStaging("v1")+`\file`, "a")
		l.mapped(1)
		l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v1", `\\srv\share\a`)))
		l.mapped(0)
		l.missing(netStaging("v1"))
		l.noHolds()
	})
}

func TestC022_DeadLinksAreReplaced(t *testing.T) {
	t.Parallel()
	l := newNetLab(t, false)
	link := func(target string) {
		l.ok(l.agent.Mkdir(l.ctx, filepath.ToSlash(strings.TrimSuffix(netStaging("v1"), `\globalmount`))))
		l.ok(l.node.MakeLink(l.ctx, netStaging("v1"), target))
	}
	for _, target := range []string{`\\srv\other\x`, `\\gone\share`, `C:\var\lib\kubelet\none`, `\\?\Volume{11111111-2222-3333-4444-555555555555}\`} {
		link(target)
		l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
		l.holds(netStaging("v1")+`\file`, "a")
		if changes := l.calls("win32.CreateSymlink", func() { l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`))) }); len(changes) != 0 {
			t.Errorf("staged again, it changed %+v", changes)
		}
		l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v1", "")))
		l.missing(netStaging("v1"))
		l.mapped(0)
	}
	l.noHolds()
	l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
	l.want(host.KindExists, l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\b`)))
	l.holds(netStaging("v1")+`\file`, "a")
	// The mapping of the share that is replaced goes with its last stage.
	l.ok(os.Rename(filepath.Join(l.share, "a"), filepath.Join(l.share, "moved")))
	l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\second`)))
	l.mapped(1)
	l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v1", "")))
	l.mapped(0)
	l.noHolds()
}

func TestWhatIsInTheWayIsKept(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		l.kubeletFolder("v1")
		l.ok(l.node.WriteFile(l.ctx, netStaging("v1")+`\own`, []byte("mine")))
		l.want(host.KindPrecondition, l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
		l.holds(netStaging("v1")+`\own`, "mine")
		l.ok(l.agent.Mkdir(l.ctx, strings.TrimSuffix(netStaging("v2"), `\globalmount`)))
		l.ok(l.node.WriteFile(l.ctx, netStaging("v2"), []byte("a file")))
		l.want(host.KindExists, l.tasks.Stage(l.ctx, smbStage("v2", `\\srv\share\a`)))
		l.holds(netStaging("v2"), "a file")
		l.ok(l.agent.Mkdir(l.ctx, strings.TrimSuffix(netStaging("v3"), `\globalmount`)))
		l.ok(l.agent.CreateSymlink(l.ctx, netStaging("v1"), netStaging("v3")))
		l.want(host.KindExists, l.tasks.Stage(l.ctx, smbStage("v3", `\\srv\share\a`)))
		l.mapped(0)
		l.noHolds()
	})
}

func TestC033_ConcurrentStagesOfOneShare(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		made := l.calls(createMapping, func() {
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					if err := l.tasks.Stage(l.ctx, smbStage(fmt.Sprint("v", i), `\\srv\share\a`)); err != nil {
						l.Error(err)
					}
				})
			}
			all.Wait()
		})
		if len(made) != 1 {
			l.Errorf("%d mappings were made", len(made))
		}
		request := smbStage("other", `\\srv\second`)
		request.Source.SMB.Username, request.Source.SMB.Password = `d\u`, "pw"
		err := l.tasks.Stage(l.ctx, request)
		l.want(host.KindPrecondition, err)
		if text := fmt.Sprint(err); !strings.Contains(text, `\\srv\second`) || strings.Contains(text, "pw") {
			l.Errorf("the error is %v", err)
		}
		l.missing(netStaging("other"))
	})
}

func TestC045_NothingIsLeftWhenTheShareCannotBeMapped(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		for _, c := range []struct {
			path, password string
			kind           host.Kind
		}{
			{`\\srv\share\a`, "wrong", host.KindUnauthenticated},
			{`\\srv\none`, "pw", host.KindNotFound},
			{`\\none\share`, "pw", host.KindUnavailable},
			{`\\srv\share\none`, "pw", host.KindNotFound},
			{`\\srv`, "pw", host.KindInvalid},
			{`\\srv\share\..\second`, "pw", host.KindInvalid},
		} {
			l.kubeletFolder("v1")
			request := smbStage("v1", c.path)
			request.Source.SMB.Password = c.password
			l.want(c.kind, l.tasks.Stage(l.ctx, request))
			if c.kind != host.KindInvalid {
				l.missing(netStaging("v1"))
			}
			l.mapped(0)
			l.noHolds()
		}
	})
}

func TestAFailedStageTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
		l.want(host.KindNotFound, l.tasks.Stage(l.ctx, smbStage("v2", `\\srv\share\none`)))
		l.holds(netStaging("v1")+`\file`, "a")
		// A stage that stands is not taken back when it is asked for again in vain.
		l.serve(func(s *sim.SMBServer) { s.Failure = 53 })
		l.want(host.KindUnavailable, l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
		if link, err := l.agent.GetLink(l.ctx, netStaging("v1")); err != nil || link.Kind == host.NotALink {
			l.Errorf("the link of the stage is %+v, %v", link, err)
		}
		l.serve(nil)
		l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
		l.holds(netStaging("v1")+`\file`, "a")
		l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v1", `\\srv\share\a`)))
		l.mapped(0)
		l.noHolds()
	})
}

func TestC044_ServerWithoutEncryption(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		l.serve(func(s *sim.SMBServer) { s.NoEncryption = true })
		err := l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`))
		l.want(host.KindPrecondition, err)
		if !strings.Contains(fmt.Sprint(err), "-require-privacy") {
			l.Errorf("the error does not name the flag: %v", err)
		}
	})
}

func TestC047_MappingThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for _, official := range []bool{false, true} {
		l := newNetLab(t, official)
		l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
		l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.FileAttributes", Win32: 1326, Count: 1}))
		made := l.calls(createMapping, func() { l.ok(l.tasks.Stage(l.ctx, smbStage("v2", `\\srv\share\b`))) })
		if len(made) != 1 {
			t.Errorf("a mapping that is refused was made again %d times", len(made))
		}
		l.policy.ProbeTimeout = 50 * time.Millisecond // only now: a busy machine may need more to answer
		l.restart()
		l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.FileAttributes", Count: -1, Hang: true}))
		l.want(host.KindUnavailable, l.tasks.Stage(l.ctx, smbStage("v3", `\\srv\share\b`)))
		l.ok(l.node.ClearFaults(l.ctx))
		l.missing(netStaging("v3"))
		l.holds(netStaging("v1")+`\file`, "a")
	}
}

func TestC039_PasswordsArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	l := newNetLab(t, false)
	passwords := []string{
		"$x$(y)!", `it's-"quoted"`, `back\slash\`, "`tick`", "a,b;c%d:e", "  both ends  ", "пароль-ü-密", strings.Repeat("p", 127),
	}
	for i, password := range passwords {
		l.serve(func(s *sim.SMBServer) { s.Users = map[string]string{"u": password} })
		request := smbStage(fmt.Sprint("v", i), `\\srv\share\a`)
		request.Source.SMB.Password = password
		l.ok(l.tasks.Stage(l.ctx, request))
		l.ok(l.tasks.Unstage(l.ctx, smbUnstage(fmt.Sprint("v", i), "")))
		request.Source.SMB.Password = password + "\t"
		err := l.tasks.Stage(l.ctx, request)
		l.want(host.KindUnauthenticated, err)
		if strings.Contains(fmt.Sprint(err), password) || strings.Contains(l.log.String(), password) {
			t.Errorf("an error or log holds the password %q", password)
		}
	}
}

func TestC040_UserWithADomain(t *testing.T) {
	t.Parallel()
	l := newNetLab(t, false)
	request := smbStage("v1", `\\srv\share\a`)
	request.Source.SMB = &node.SMBSource{Path: `\\srv\share\a`, Username: "u", Domain: "d", Password: "pw"}
	l.ok(l.tasks.Stage(l.ctx, request))
	l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v1", "")))
	request.Source.SMB.Username, request.Source.SMB.Password = "nobody", "pw"
	err := l.tasks.Stage(l.ctx, request)
	l.want(host.KindUnauthenticated, err)
	if !strings.Contains(fmt.Sprint(err), "domain") {
		t.Errorf("the error has no hint: %v", err)
	}
	request.Source.SMB.Username = `e\u`
	l.want(host.KindInvalid, l.tasks.Stage(l.ctx, request))
}
