package agent_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

const (
	iqn1, iqn2 = "iqn.2024-01.com.example:one", "iqn.2024-01.com.example:two"
	secret1    = "secret-one-1"
	secret2    = "secret-two-22"
	ownSecret  = "secret-own-333"
)

func portal() host.TargetPortal { return host.TargetPortal{Address: "10.0.0.1"} }

// targets puts two targets with CHAP behind one portal and starts the initiator.
func (l *lab) targets(change ...func(*sim.ISCSITarget)) {
	l.Helper()
	for i, iqn := range []string{iqn1, iqn2} {
		target := sim.ISCSITarget{
			IQN: iqn, Portals: []string{"10.0.0.1:3260"}, ChapUser: "u",
			ChapSecret: []string{secret1, secret2}[i],
			LUNs:       []sim.DiskSpec{{Image: filepath.Join(l.TempDir(), "lun"), SizeBytes: 64 * mib}},
		}
		for _, c := range change {
			c(&target)
		}
		l.ok(l.node.SetISCSITarget(l.ctx, target))
	}
	l.ok(l.agent.StartService(l.ctx, "MSiSCSI"))
}

func chap(secret string) host.ConnectOptions {
	return host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: "u", ChapSecret: secret}
}

func TestC049_C050_ISCSILife(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.targets()
	l.want(host.KindNotFound, second(l.agent.DiscoverTargetPortal(l.ctx, portal())))
	for range 2 {
		l.ok(l.agent.AddTargetPortal(l.ctx, portal()))
	}
	portals, err := l.agent.ListTargetPortals(l.ctx)
	l.ok(err)
	if len(portals) != 1 || portals[0] != (host.TargetPortal{Address: "10.0.0.1", Port: 3260}) {
		t.Errorf("portals are %v", portals)
	}
	iqns, err := l.agent.DiscoverTargetPortal(l.ctx, portal())
	l.ok(err)
	slices.Sort(iqns)
	if !slices.Equal(iqns, []string{iqn1, iqn2}) {
		t.Errorf("targets are %q", iqns)
	}
	l.want(host.KindPrecondition, second(l.agent.GetTargetDisks(l.ctx, portal(), iqn1)))
	l.want(host.KindUnauthenticated, l.agent.ConnectTarget(l.ctx, portal(), iqn1, chap(secret2)))
	for range 2 {
		l.ok(l.agent.ConnectTarget(l.ctx, portal(), iqn1, chap(secret1)))
		l.ok(l.agent.ConnectTarget(l.ctx, portal(), strings.ToUpper(iqn2), chap(secret2)))
	}
	disks1, err := l.agent.GetTargetDisks(l.ctx, portal(), iqn1)
	l.ok(err)
	disks2, err := l.agent.GetTargetDisks(l.ctx, portal(), iqn2)
	l.ok(err)
	if len(disks1) != 1 || len(disks2) != 1 || disks1[0] == disks2[0] {
		t.Errorf("disks are %v and %v", disks1, disks2)
	}
	targets, err := l.agent.ListTargets(l.ctx)
	l.ok(err)
	if len(targets) != 2 || !targets[0].Connected || len(targets[0].DiskNumbers) != 1 {
		t.Errorf("ListTargets = %+v", targets)
	}
	for range 2 {
		l.ok(l.agent.DisconnectTarget(l.ctx, portal(), iqn1))
	}
	l.want(host.KindPrecondition, second(l.agent.GetTargetDisks(l.ctx, portal(), iqn1)))
	if again, err := l.agent.GetTargetDisks(l.ctx, portal(), iqn2); err != nil || !slices.Equal(again, disks2) {
		t.Errorf("the other target: %v, %v", again, err)
	}
	l.ok(l.agent.DisconnectTarget(l.ctx, portal(), iqn2))
	for range 2 {
		l.ok(l.agent.RemoveTargetPortal(l.ctx, portal()))
	}
	if text := l.log.String(); strings.Contains(text, "secret-") {
		t.Errorf("the log holds a secret:\n%s", text)
	}
}

func TestC049_MutualChap(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.targets(func(s *sim.ISCSITarget) { s.MutualSecret = ownSecret })
	l.ok(l.agent.AddTargetPortal(l.ctx, portal()))
	mutual := chap(secret1)
	mutual.AuthType = host.AuthMutualCHAP
	err := l.agent.ConnectTarget(l.ctx, portal(), iqn1, mutual)
	l.want(host.KindPrecondition, err)
	if err == nil || !strings.Contains(err.Error(), "SetMutualChapSecret") {
		t.Errorf("the text is %v", err)
	}
	for _, secret := range []string{"", "secret-of11", strings.Repeat("s", 17)} {
		l.want(host.KindInvalid, l.agent.SetMutualChapSecret(l.ctx, secret))
	}
	for range 2 {
		l.ok(l.agent.SetMutualChapSecret(l.ctx, ownSecret))
	}
	l.ok(l.agent.ConnectTarget(l.ctx, portal(), iqn1, mutual))
	if text := l.log.String(); strings.Contains(text, "secret-") {
		t.Errorf("the log holds a secret:\n%s", text)
	}
}

func TestISCSIRefusals(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	calls := l.calls(func() {
		for _, bad := range []host.TargetPortal{{}, {Address: "10.0.0.1", Port: 65536}, {Address: "10.0.0.1;x"}} {
			for _, err := range []error{
				l.agent.AddTargetPortal(l.ctx, bad), l.agent.RemoveTargetPortal(l.ctx, bad), second(l.agent.DiscoverTargetPortal(l.ctx, bad)),
				l.agent.ConnectTarget(l.ctx, bad, iqn1, host.ConnectOptions{}), l.agent.DisconnectTarget(l.ctx, bad, iqn1),
				second(l.agent.GetTargetDisks(l.ctx, bad, iqn1)), l.agent.ConnectTarget(l.ctx, portal(), "x", host.ConnectOptions{}),
				l.agent.DisconnectTarget(l.ctx, portal(), ""), l.agent.ConnectTarget(l.ctx, portal(), iqn1, host.ConnectOptions{AuthType: 7}),
			} {
				l.want(host.KindInvalid, err)
			}
		}
	})
	if len(calls) != 0 {
		t.Errorf("bad requests reached the node: %q", calls)
	}
}

func TestC052_LoginsAreNotPersistent(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.targets()
	l.ok(l.agent.AddTargetPortal(l.ctx, portal()))
	l.ok(l.agent.ConnectTarget(l.ctx, portal(), iqn1, chap(secret1)))
	// A login an administrator has made persistent is forgotten at disconnect.
	l.ok(l.agent.ConnectTarget(l.ctx, portal(), iqn2, chap(secret2)))
	rows, err := l.node.Query(l.ctx, `root\Microsoft\Windows\Storage`, `SELECT * FROM MSFT_iSCSISession WHERE TargetNodeAddress = '`+iqn2+`'`)
	l.ok(err)
	if len(rows) != 1 {
		t.Fatalf("sessions are %v", rows)
	}
	_, err = l.node.Exec(l.ctx, `root\Microsoft\Windows\Storage`, rows[0].Path, "Register", nil)
	l.ok(err)
	l.ok(l.agent.DisconnectTarget(l.ctx, portal(), iqn2))
	l.ok(l.node.Reboot(l.ctx))
	l.ok(l.agent.StartService(l.ctx, "MSiSCSI"))
	targets, err := l.agent.ListTargets(l.ctx)
	l.ok(err)
	for _, target := range targets {
		if target.Connected {
			t.Errorf("%s is connected after the restart", target.IQN)
		}
	}
}

// C052, the option: a login that is asked to be persistent comes back with its disk,
// whoever made it; one more connect is a no-op, and a disconnect forgets it.
func TestC052_PersistentLogins(t *testing.T) {
	t.Parallel()
	kept := func(secret string) host.ConnectOptions {
		options := chap(secret)
		options.Persistent = true
		return options
	}
	for name, connects := range map[string][]host.ConnectOptions{
		"from the start": {kept(secret1)},
		"later":          {chap(secret1), kept(secret1)},
		"and no more":    {kept(secret1), chap(secret1)}, // somebody else has asked for it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.targets()
			l.ok(l.agent.AddTargetPortal(l.ctx, portal()))
			for _, options := range connects {
				l.ok(l.agent.ConnectTarget(l.ctx, portal(), iqn1, options))
			}
			l.ok(l.agent.ConnectTarget(l.ctx, portal(), iqn2, kept(secret2)))
			restart := func() {
				l.ok(l.node.Reboot(l.ctx))
				l.ok(l.agent.StartService(l.ctx, "MSiSCSI"))
			}
			restart()
			logins := l.calls(func() { l.ok(l.agent.ConnectTarget(l.ctx, portal(), iqn1, kept(secret1))) })
			if strings.Contains(strings.Join(logins, " "), "cim.Exec") {
				t.Errorf("the login that is back was changed: %q", logins)
			}
			for _, iqn := range []string{iqn1, iqn2} {
				if disks, err := l.agent.GetTargetDisks(l.ctx, portal(), iqn); err != nil || len(disks) != 1 {
					t.Errorf("disks of %s after the restart: %v, %v", iqn, disks, err)
				}
				l.ok(l.agent.DisconnectTarget(l.ctx, portal(), iqn))
			}
			restart()
			if sessions, err := l.os.Sessions(l.ctx); err != nil || len(sessions) > 0 {
				t.Errorf("sessions after the disconnect and a restart: %+v, %v", sessions, err)
			}
			if text := l.log.String(); strings.Contains(text, "secret-") {
				t.Errorf("the log holds a secret:\n%s", text)
			}
		})
	}
}

// A target is connected through another portal: there is one login, and that is kept.
func TestC052_PersistentThroughAnotherPortal(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.targets(func(target *sim.ISCSITarget) { target.Portals = append(target.Portals, "10.0.0.2:3260") })
	other := host.TargetPortal{Address: "10.0.0.2"}
	l.ok(l.agent.AddTargetPortal(l.ctx, portal()))
	l.ok(l.agent.AddTargetPortal(l.ctx, other))
	l.ok(l.agent.ConnectTarget(l.ctx, portal(), iqn1, chap(secret1)))
	options := chap(secret1)
	options.Persistent = true
	l.ok(l.agent.ConnectTarget(l.ctx, other, iqn1, options))
	if sessions, err := l.os.Sessions(l.ctx); err != nil || len(sessions) != 1 || !sessions[0].Persistent {
		t.Errorf("sessions are %+v, %v", sessions, err)
	}
}

// C049, the kind: the address of the connection is not the portal's.
func TestC049_RedirectedLogin(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.targets(func(target *sim.ISCSITarget) { target.Redirect = "10.0.9.9:3260" })
	l.ok(l.agent.AddTargetPortal(l.ctx, portal()))
	for range 2 {
		l.ok(l.agent.ConnectTarget(l.ctx, portal(), iqn1, chap(secret1)))
	}
	if disks, err := l.agent.GetTargetDisks(l.ctx, portal(), iqn1); err != nil || len(disks) != 1 {
		t.Errorf("disks are %v, %v", disks, err)
	}
	l.ok(l.agent.DisconnectTarget(l.ctx, portal(), iqn1))
	if sessions, err := l.os.Sessions(l.ctx); err != nil || len(sessions) != 0 {
		t.Errorf("left after the disconnect: %v, %v", sessions, err)
	}
}

// An address has many spellings; an administrator may have used another.
func TestPortalInAnotherSpelling(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.targets(func(target *sim.ISCSITarget) { target.Portals = []string{"[2001:DB8:0::1]:3260"} })
	_, err := l.node.Exec(l.ctx, `root\Microsoft\Windows\Storage`, "MSFT_iSCSITargetPortal", "New",
		cim.Values{"TargetPortalAddress": "2001:DB8:0::1", "TargetPortalPortNumber": uint16(3260)})
	l.ok(err)
	ours := host.TargetPortal{Address: "2001:db8::1"}
	l.ok(l.agent.AddTargetPortal(l.ctx, ours))
	if iqns, err := l.agent.DiscoverTargetPortal(l.ctx, ours); err != nil || len(iqns) != 2 {
		t.Errorf("targets are %q, %v", iqns, err)
	}
	l.ok(l.agent.RemoveTargetPortal(l.ctx, ours))
	if portals, err := l.agent.ListTargetPortals(l.ctx); err != nil || len(portals) != 0 {
		t.Errorf("portals are %v, %v", portals, err)
	}
}

// A target with two portals is one target: its disks are found through either,
// and only the session of the portal asked for is ended.
func TestTargetWithTwoPortals(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.targets(func(target *sim.ISCSITarget) { target.Portals = append(target.Portals, "10.0.0.2:3260") })
	other := host.TargetPortal{Address: "10.0.0.2"}
	l.ok(l.agent.AddTargetPortal(l.ctx, portal()))
	l.ok(l.agent.AddTargetPortal(l.ctx, other))
	l.ok(l.agent.ConnectTarget(l.ctx, portal(), iqn1, chap(secret1)))
	l.ok(l.agent.ConnectTarget(l.ctx, other, iqn1, chap(secret1)))
	for _, p := range []host.TargetPortal{portal(), other} {
		if disks, err := l.agent.GetTargetDisks(l.ctx, p, iqn1); err != nil || len(disks) != 1 {
			t.Errorf("disks through %s are %v, %v", p.Address, disks, err)
		}
	}
	for _, tc := range []struct {
		portal host.TargetPortal
		left   int
	}{{other, 1}, {portal(), 0}} {
		l.ok(l.agent.DisconnectTarget(l.ctx, tc.portal, iqn1))
		if sessions, err := l.os.Sessions(l.ctx); err != nil || len(sessions) != tc.left {
			t.Errorf("left after the disconnect from %s: %v, %v", tc.portal.Address, sessions, err)
		}
	}
}
