package node_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
)

func TestC035_MappingGoesWithItsLastStage(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		for _, restart := range []func(){func() {}, l.restart} {
			l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
			restart()
			l.ok(l.tasks.Stage(l.ctx, smbStage("v2", `\\srv\share\b`)))
			restart()
			l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v1", `\\srv\share\a`)))
			l.missing(netStaging("v1"))
			l.mapped(1)
			l.holds(netStaging("v2")+`\file`, "b")
			restart()
			for range 2 {
				l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v2", `\\srv\share\b`)))
				l.mapped(0)
				l.missing(netStaging("v2"))
			}
			l.noHolds()
		}
	})
}

func TestC035_RecordThatIsGoneKeepsTheMapping(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		for i, damage := range []func(){
			func() { l.ok(l.agent.Rmdir(l.ctx, node.DefaultFolder, true)) },
			func() { // something else in it
				for _, share := range l.names(node.DefaultFolder + `\smb`) {
					folder := node.DefaultFolder + `\smb\` + share + `\users`
					for _, user := range l.names(folder) {
						l.ok(l.node.WriteFile(l.ctx, folder+`\`+user+`\x`, []byte("x")))
					}
				}
			},
		} {
			volume := fmt.Sprint("v", i)
			l.ok(l.tasks.Stage(l.ctx, smbStage(volume, `\\srv\share\a`)))
			damage()
			l.ok(l.tasks.Unstage(l.ctx, smbUnstage(volume, `\\srv\share\a`)))
			l.missing(netStaging(volume))
			l.mapped(1)
			if !strings.Contains(l.log.String(), "level=WARN") || !strings.Contains(l.log.String(), "kept") {
				l.Errorf("that a mapping is kept is not in the log:\n%s", l.log)
			}
			l.ok(l.agent.RemoveSmbGlobalMapping(l.ctx, `\\srv\share`))
			l.ok(l.agent.Rmdir(l.ctx, node.DefaultFolder, true))
		}
	})
}

// names are the names in a folder.
func (l *netLab) names(folder string) []string {
	l.Helper()
	names, err := l.node.ListDir(l.ctx, folder)
	l.ok(err)
	return names
}

func TestC035_MappingOfSomebodyElseStays(t *testing.T) {
	t.Parallel()
	l := newNetLab(t, false)
	l.ok(l.os.CreateSMBMapping(l.ctx, agent.SMBRequest{Share: `\\srv\share`, Username: "u", Password: "pw", RequirePrivacy: true}))
	l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
	l.ok(l.tasks.Stage(l.ctx, smbStage("v2", `\\srv\share\b`)))
	l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v2", "")))
	l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v1", "")))
	l.mapped(1)
	l.noHolds()
}

func TestC035_LinkWithoutAHintOverAnOfficialProxy(t *testing.T) {
	t.Parallel()
	l := newNetLab(t, true)
	l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
	l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v1", "")))
	l.missing(netStaging("v1"))
	l.mapped(1)
	if !strings.Contains(l.log.String(), "its mapping, if any, is kept") {
		t.Errorf("that the mapping is kept is not in the log:\n%s", l.log)
	}
	// The next life of the volume finds the hold and ends it.
	l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
	l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v1", `\\srv\share\a`)))
	l.mapped(0)
	l.noHolds()
}

// The case has a thousand claims; the workers here live through a hundred and sixty, which
// is as many overlaps as the lock allows.
func TestC036_ShortLivedClaims(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				for i := range 20 {
					volume, path := fmt.Sprintf("v%d-%d", worker, i), `\\srv\share\`+[]string{"a", "b"}[rand.IntN(2)]
					if err := l.tasks.Stage(l.ctx, smbStage(volume, path)); err != nil {
						l.Error(err)
					}
					mappings, err := l.agent.ListSmbGlobalMappings(l.ctx)
					if err != nil || len(mappings) != 1 {
						l.Errorf("while a volume is staged, mappings are %+v, %v", mappings, err)
					}
					if err := l.tasks.Unstage(l.ctx, smbUnstage(volume, path)); err != nil {
						l.Error(err)
					}
				}
			})
		}
		all.Wait()
		l.mapped(0)
		l.noHolds()
	})
}

func TestC036_FailedLookKeepsTheMapping(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
		l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.Delete", Win32: 5, Count: -1}))
		if err := l.tasks.Unstage(l.ctx, smbUnstage("v1", `\\srv\share\a`)); err == nil {
			l.Error("nobody is told that the holds cannot be looked at")
		}
		l.mapped(1)
		l.ok(l.node.ClearFaults(l.ctx))
		l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v1", `\\srv\share\a`)))
		l.mapped(0)
		l.noHolds()
	})
}

func TestC036_MappingLimit(t *testing.T) {
	t.Parallel()
	l := newNetLab(t, false, func(c *sim.Config, _ *agent.Policy) { c.SMBMappingLimit = 1 })
	l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
	l.want(host.KindExhausted, l.tasks.Stage(l.ctx, smbStage("v2", `\\srv\second`)))
	l.missing(netStaging("v2"))
	l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v1", "")))
	l.noHolds()
}
