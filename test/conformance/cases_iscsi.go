package conformance

import (
	"context"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

func iscsiCases() []Case {
	return []Case{
		{"iscsi/bad-input", GroupISCSI, nil, iscsiBadInput},
		{"iscsi/absent-portal", GroupISCSI, nil, iscsiAbsentPortal},
		{"iscsi/target", GroupISCSI, []Need{NeedISCSI}, iscsiTarget},
	}
}

// silentPortal is a portal on which nobody listens: the discard port of this machine.
func silentPortal() host.TargetPortal { return host.TargetPortal{Address: "127.0.0.1", Port: 9} }

// isPlainAddress reports whether a portal could be that of somebody.
func isPlainAddress(portal host.TargetPortal) bool {
	return portal.Address != "" && portal.Port <= 65535 && !strings.ContainsAny(portal.Address, " /\\\x00")
}

// What names no portal, no target and no secret is invalid, and no error has the secret.
func iscsiBadInput(ctx context.Context, s *scene) {
	bad := []host.TargetPortal{{}, {Address: "two words"}, {Address: `a\b`}, {Address: "a/b"}, {Address: "a\x00b"}, {Address: "127.0.0.1", Port: 65536}}
	iqn := "iqn.2026-01.invalid:" + s.run
	for _, portal := range bad {
		s.fails(s.host.AddTargetPortal(ctx, portal), "AddTargetPortal "+portal.Address, host.KindInvalid)
		s.fails(s.host.RemoveTargetPortal(ctx, portal), "RemoveTargetPortal "+portal.Address, host.KindInvalid)
		_, err := s.host.DiscoverTargetPortal(ctx, portal)
		s.fails(err, "DiscoverTargetPortal "+portal.Address, host.KindInvalid)
		s.fails(s.host.ConnectTarget(ctx, portal, iqn, host.ConnectOptions{}), "ConnectTarget at "+portal.Address, host.KindInvalid)
	}
	for _, name := range []string{"", "target", "iqn.nonsense." + s.run, "iqn.2026-13.invalid:" + s.run, "eui.12", "iqn.2026-01.invalid:a b" + s.run} {
		s.fails(s.host.ConnectTarget(ctx, silentPortal(), name, host.ConnectOptions{}), "ConnectTarget "+name, host.KindInvalid)
		s.fails(s.host.DisconnectTarget(ctx, silentPortal(), name), "DisconnectTarget "+name, host.KindInvalid)
		_, err := s.host.GetTargetDisks(ctx, silentPortal(), name)
		s.fails(err, "GetTargetDisks "+name, host.KindInvalid)
	}
	const secret = "short-one"
	for what, err := range map[string]error{
		"ConnectTarget with a short secret":       s.host.ConnectTarget(ctx, silentPortal(), iqn, host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: "u", ChapSecret: secret}),
		"ConnectTarget with an unknown kind":      s.host.ConnectTarget(ctx, silentPortal(), iqn, host.ConnectOptions{AuthType: 7}),
		"SetMutualChapSecret with a short secret": s.host.SetMutualChapSecret(ctx, secret),
		"SetMutualChapSecret with a long secret":  s.host.SetMutualChapSecret(ctx, secret+secret),
		"SetMutualChapSecret without a secret":    s.host.SetMutualChapSecret(ctx, ""),
	} {
		s.fails(err, what, host.KindInvalid)
		if err != nil && strings.Contains(err.Error(), secret) {
			s.Errorf("%s: the error holds the secret", what)
		}
	}
}

// initiator makes sure that the initiator's service runs until the case ends.
func (s *scene) initiator(ctx context.Context) {
	info, err := s.host.GetService(ctx, initiatorService)
	s.must(err, "GetService")
	switch info.Status {
	case host.ServiceRunning:
		return
	case host.ServiceStopped:
	default:
		s.Fatalf("%s is on its way between states: %+v", initiatorService, info)
	}
	s.must(s.host.StartService(ctx, initiatorService), "StartService")
	s.later(func(ctx context.Context) error { return s.host.StopService(ctx, initiatorService, false) })
}

// A portal that nobody answers on is unavailable; what was never there can be removed.
func iscsiAbsentPortal(ctx context.Context, s *scene) {
	s.initiator(ctx)
	iqn := "iqn.2026-01.invalid:" + s.run
	before, err := s.host.ListTargetPortals(ctx)
	s.must(err, "ListTargetPortals")
	s.later(func(ctx context.Context) error { return s.host.RemoveTargetPortal(ctx, silentPortal()) })
	s.fails(s.host.AddTargetPortal(ctx, silentPortal()), "AddTargetPortal where nobody listens", host.KindUnavailable)
	_, err = s.host.DiscoverTargetPortal(ctx, silentPortal())
	s.fails(err, "DiscoverTargetPortal where nobody listens", host.KindUnavailable, host.KindNotFound)
	err = s.host.ConnectTarget(ctx, silentPortal(), iqn, host.ConnectOptions{})
	s.fails(err, "ConnectTarget where nobody listens", host.KindUnavailable, host.KindNotFound)
	_, err = s.host.GetTargetDisks(ctx, silentPortal(), iqn)
	s.fails(err, "GetTargetDisks of a target that is not connected", host.KindPrecondition, host.KindNotFound)
	for range 2 {
		s.must(s.host.DisconnectTarget(ctx, silentPortal(), iqn), "DisconnectTarget without a session")
		s.must(s.host.RemoveTargetPortal(ctx, silentPortal()), "RemoveTargetPortal of an unknown portal")
	}
	if after, err := s.host.ListTargetPortals(ctx); err != nil || len(after) != len(before) {
		s.Errorf("ListTargetPortals was %v, and is %v, %v", before, after, err)
	}
}

// A target is found, connected once, shows its disks and goes again.
func iscsiTarget(ctx context.Context, s *scene) {
	s.initiator(ctx)
	portal := s.env.ISCSI.Portal
	known, err := s.host.ListTargetPortals(ctx)
	s.must(err, "ListTargetPortals")
	wasKnown := slices.ContainsFunc(known, func(p host.TargetPortal) bool { return samePortal(p, portal) })
	if !wasKnown {
		s.later(func(ctx context.Context) error { return s.host.RemoveTargetPortal(ctx, portal) })
	}
	for range 2 {
		s.must(s.host.AddTargetPortal(ctx, portal), "AddTargetPortal")
		s.knowsPortal(ctx, portal, true)
	}
	iqn := s.target(ctx, portal)
	disksBefore, err := s.host.ListDiskIDs(ctx)
	s.must(err, "ListDiskIDs")
	s.later(func(ctx context.Context) error { return s.host.DisconnectTarget(ctx, portal, iqn) })
	for range 2 {
		s.must(s.host.ConnectTarget(ctx, portal, iqn, s.env.ISCSI.Options), "ConnectTarget")
		s.isConnected(ctx, iqn, true)
	}
	lasting := s.env.ISCSI.Options
	lasting.Persistent = true
	if err := s.host.ConnectTarget(ctx, portal, iqn, lasting); !s.unsupported(err, "persistent login") {
		s.must(err, "ConnectTarget with a persistent login")
		s.isConnected(ctx, iqn, true)
	}
	var numbers []uint32
	s.eventually(ctx, "disks of the target", func() (bool, error) {
		var err error
		numbers, err = s.host.GetTargetDisks(ctx, portal, iqn)
		return len(numbers) > 0, err
	})
	disks, err := s.host.ListDiskIDs(ctx)
	s.must(err, "ListDiskIDs")
	for _, number := range numbers {
		if _, before := disksBefore[number]; before {
			s.Errorf("disk %d of the target was there before it was connected", number)
		}
		if _, listed := disks[number]; !listed {
			s.Errorf("ListDiskIDs lacks disk %d of the target", number)
		}
	}
	for range 2 {
		s.must(s.host.DisconnectTarget(ctx, portal, iqn), "DisconnectTarget")
		s.isConnected(ctx, iqn, false)
	}
	_, err = s.host.GetTargetDisks(ctx, portal, iqn)
	s.fails(err, "GetTargetDisks of a target that is not connected", host.KindPrecondition, host.KindNotFound)
	if wasKnown {
		s.Notef("the initiator knew the portal before, so it was not removed")
		return
	}
	for range 2 {
		s.must(s.host.RemoveTargetPortal(ctx, portal), "RemoveTargetPortal")
		s.knowsPortal(ctx, portal, false)
	}
}

// target is the name of the environment's target: the given one, or the only one
// the portal tells of. It must not be connected: a session that is there is
// somebody's.
func (s *scene) target(ctx context.Context, portal host.TargetPortal) string {
	iqns, err := s.host.DiscoverTargetPortal(ctx, portal)
	s.must(err, "DiscoverTargetPortal")
	iqn := s.env.ISCSI.IQN
	if iqn == "" && len(iqns) == 1 {
		iqn = iqns[0]
		s.env.ISCSI.IQN = iqn
	}
	if !slices.ContainsFunc(iqns, func(n string) bool { return strings.EqualFold(n, iqn) }) {
		s.Fatalf("the portal tells of %q; the target to use is %q", iqns, iqn)
	}
	numbers, err := s.host.GetTargetDisks(ctx, portal, iqn)
	if err == nil {
		s.Fatalf("the target is connected already, with disks %v", numbers)
	}
	if !host.IsKind(err, host.KindPrecondition) && !host.IsKind(err, host.KindNotFound) {
		s.Fatalf("whether the target is connected cannot be told: %v", err)
	}
	return iqn
}

// knowsPortal makes the case fail unless the initiator knows the portal, or does not.
func (s *scene) knowsPortal(ctx context.Context, portal host.TargetPortal, want bool) {
	portals, err := s.host.ListTargetPortals(ctx)
	s.must(err, "ListTargetPortals")
	if knows := slices.ContainsFunc(portals, func(p host.TargetPortal) bool { return samePortal(p, portal) }); knows != want {
		s.Errorf("the initiator knows the portals %v; want %v among them: %v", portals, portal, want)
	}
}

// samePortal compares portals, the default port filled in.
func samePortal(a, b host.TargetPortal) bool {
	port := func(p host.TargetPortal) uint32 {
		if p.Port == 0 {
			return host.DefaultISCSIPort
		}
		return p.Port
	}
	return strings.EqualFold(a.Address, b.Address) && port(a) == port(b)
}

// isConnected makes the case fail unless ListTargets gives the answer.
func (s *scene) isConnected(ctx context.Context, iqn string, want bool) {
	targets, err := s.host.ListTargets(ctx)
	if s.unsupported(err, "ListTargets") {
		return
	}
	s.must(err, "ListTargets")
	at := slices.IndexFunc(targets, func(t host.TargetInfo) bool { return strings.EqualFold(t.IQN, iqn) })
	if at >= 0 && targets[at].Connected != want || at < 0 && want {
		s.Errorf("ListTargets says %+v; want %s connected: %v", targets, iqn, want)
	}
}
