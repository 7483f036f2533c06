package agent

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// portalChange carries out a change of one portal, given with its port.
func (a *Agent) portalChange(ctx context.Context, op string, portal host.TargetPortal, do func(context.Context, host.TargetPortal) error) error {
	portal, err := parsePortal(portal)
	c := a.mutation(ctx, op, "portal "+portalText(portal))
	if err != nil {
		return c.refused(err)
	}
	wants := []want{exclusive(lockPortal, portal.Port, host.FoldName(portal.Address))}
	return exec(ctx, c, wants, func(ctx context.Context) error { return do(ctx, portal) })
}

// AddTargetPortal implements host.ISCSI.
func (a *Agent) AddTargetPortal(ctx context.Context, portal host.TargetPortal) error {
	return a.portalChange(ctx, "AddTargetPortal", portal, func(ctx context.Context, portal host.TargetPortal) error {
		return unlessKind(host.KindExists, a.os.AddTargetPortal(ctx, portal))
	})
}

// RemoveTargetPortal implements host.ISCSI.
func (a *Agent) RemoveTargetPortal(ctx context.Context, portal host.TargetPortal) error {
	return a.portalChange(ctx, "RemoveTargetPortal", portal, func(ctx context.Context, portal host.TargetPortal) error {
		return unlessKind(host.KindNotFound, a.os.RemoveTargetPortal(ctx, portal))
	})
}

// unlessKind takes an error of the kind for success: what was to be done had
// been done before.
func unlessKind(kind host.Kind, err error) error {
	if host.IsKind(err, kind) {
		return nil
	}
	return err
}

// DiscoverTargetPortal implements host.ISCSI.
func (a *Agent) DiscoverTargetPortal(ctx context.Context, portal host.TargetPortal) ([]string, error) {
	var iqns []string
	err := a.portalChange(ctx, "DiscoverTargetPortal", portal, func(ctx context.Context, portal host.TargetPortal) error {
		if err := a.os.RefreshTargetPortal(ctx, portal); err != nil {
			return err
		}
		found, err := a.os.Targets(ctx, portal)
		iqns = found
		return err
	})
	if err != nil {
		return nil, err
	}
	return iqns, nil
}

// ListTargetPortals implements host.ISCSI.
func (a *Agent) ListTargetPortals(ctx context.Context) ([]host.TargetPortal, error) {
	return nodeQuery(ctx, a, "ListTargetPortals", a.os.TargetPortals)
}

// iscsiTarget is a checked pair of portal and target name.
type iscsiTarget struct {
	portal host.TargetPortal
	iqn    string
}

// parseTargetName checks a portal and a target name. What it returns with an
// error names the target in that error.
func parseTargetName(portal host.TargetPortal, iqn string) (iscsiTarget, error) {
	checkedPortal, portalErr := parsePortal(portal)
	checkedIQN, iqnErr := parseIQN(iqn)
	if iqnErr != nil {
		checkedIQN = iqn
	}
	return iscsiTarget{checkedPortal, checkedIQN}, firstError(portalErr, iqnErr)
}

// String names the target in errors and logs.
func (t iscsiTarget) String() string {
	return "target " + host.PrintableText(t.iqn) + " at " + portalText(t.portal)
}

// ConnectTarget implements host.ISCSI.
func (a *Agent) ConnectTarget(ctx context.Context, portal host.TargetPortal, iqn string, options host.ConnectOptions) error {
	t, err := parseTargetName(portal, iqn)
	c := a.mutation(ctx, "ConnectTarget", t.String()).withSecrets(options.ChapSecret)
	if err = firstError(err, checkChap(options)); err != nil {
		return c.refused(err)
	}
	return exec(ctx, c, []want{exclusive(lockTarget, 0, t.iqn)}, func(ctx context.Context) error {
		sessions, err := a.targetSessions(ctx, t)
		if err != nil {
			return err
		}
		if len(sessions) > 0 {
			return a.keepSessions(ctx, sessions, options)
		}
		err = a.os.Connect(ctx, t.portal, t.iqn, options)
		if !host.IsKind(err, host.KindExists) {
			return a.explainMutual(options, err)
		}
		if sessions, err = a.sessionsOf(ctx, t.iqn); err != nil {
			return err
		}
		return a.keepSessions(ctx, sessions, options)
	})
}

// keepSessions makes sessions persistent if that is asked for. One that is stays so:
// somebody else may have asked for it.
func (a *Agent) keepSessions(ctx context.Context, sessions []ISCSISession, options host.ConnectOptions) error {
	for _, session := range sessions {
		if !options.Persistent || session.Persistent {
			continue
		}
		if err := a.os.RegisterSession(ctx, session.ID, options); err != nil {
			return err
		}
	}
	return nil
}

// explainMutual says what is missing when a mutual login fails and nobody has
// set the initiator's secret since the agent started: the credentials of the
// request may be right.
func (a *Agent) explainMutual(options host.ConnectOptions, err error) error {
	if err == nil || options.AuthType != host.AuthMutualCHAP || a.initiatorSecretSet.Load() {
		return err
	}
	if host.IsKind(err, host.KindUnauthenticated) || host.IsKind(err, host.KindPrecondition) {
		return refuse(host.KindPrecondition, "mutual CHAP needs the initiator's own secret, see SetMutualChapSecret: %w", err)
	}
	return err
}

// sessionsOf returns the sessions of a target, through whichever portal.
func (a *Agent) sessionsOf(ctx context.Context, iqn string) ([]ISCSISession, error) {
	sessions, err := a.os.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	return ofTarget(sessions, iqn), nil
}

func ofTarget(sessions []ISCSISession, iqn string) []ISCSISession {
	return slices.DeleteFunc(slices.Clone(sessions), func(s ISCSISession) bool { return !strings.EqualFold(s.IQN, iqn) })
}

// targetSessions returns the sessions of a target through its portal. The
// address of a connection need not be the portal's: a portal can be asked for by
// host name, and an array with one address for several controllers sends logins
// on to one of them. So a session whose connections are to no portal the
// initiator knows counts as well, and for a host name the port alone decides.
func (a *Agent) targetSessions(ctx context.Context, t iscsiTarget) ([]ISCSISession, error) {
	sessions, err := a.sessionsOf(ctx, t.iqn)
	if err != nil || len(sessions) == 0 {
		return nil, err
	}
	_, nameErr := netip.ParseAddr(t.portal.Address)
	through := withPortals(sessions, func(p host.TargetPortal) bool {
		return samePortal(p, t.portal) || nameErr != nil && p.Port == t.portal.Port
	})
	if len(through) > 0 {
		return through, nil
	}
	known, err := a.os.TargetPortals(ctx)
	if err != nil {
		return nil, err
	}
	return withPortals(sessions, func(p host.TargetPortal) bool {
		return !slices.ContainsFunc(known, func(k host.TargetPortal) bool { return samePortal(p, k) })
	}), nil
}

// withPortals returns the sessions with a connection to a wanted portal, and
// those that tell of no connection.
func withPortals(sessions []ISCSISession, wanted func(host.TargetPortal) bool) []ISCSISession {
	var found []ISCSISession
	for _, s := range sessions {
		if len(s.Portals) == 0 || slices.ContainsFunc(s.Portals, wanted) {
			found = append(found, s)
		}
	}
	return found
}

// DisconnectTarget implements host.ISCSI. The persistent entry goes first: cut
// off in between, the node must not log in again when it restarts.
func (a *Agent) DisconnectTarget(ctx context.Context, portal host.TargetPortal, iqn string) error {
	t, err := parseTargetName(portal, iqn)
	c := a.mutation(ctx, "DisconnectTarget", t.String())
	if err != nil {
		return c.refused(err)
	}
	return exec(ctx, c, []want{exclusive(lockTarget, 0, t.iqn)}, func(ctx context.Context) error {
		sessions, err := a.targetSessions(ctx, t)
		if err != nil {
			return err
		}
		for _, session := range sessions {
			if err := a.endSession(ctx, session); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *Agent) endSession(ctx context.Context, session ISCSISession) error {
	if session.Persistent {
		if err := unlessKind(host.KindNotFound, a.os.UnregisterSession(ctx, session.ID)); err != nil {
			return err
		}
	}
	return unlessKind(host.KindNotFound, a.os.Disconnect(ctx, session.ID))
}

// GetTargetDisks implements host.ISCSI. The disks of a target are the same
// through all of its portals, and so are those of any session.
func (a *Agent) GetTargetDisks(ctx context.Context, portal host.TargetPortal, iqn string) ([]uint32, error) {
	t, err := parseTargetName(portal, iqn)
	c := a.query("GetTargetDisks", t.String())
	if err != nil {
		return nil, c.refused(err)
	}
	return run(ctx, c, []want{shared(lockTarget, 0, t.iqn)}, func(ctx context.Context) ([]uint32, error) {
		sessions, err := a.sessionsOf(ctx, t.iqn)
		if err != nil {
			return nil, err
		}
		if len(sessions) == 0 {
			return nil, refuse(host.KindPrecondition, "the target is not connected")
		}
		return a.disksOf(ctx, sessions)
	})
}

// disksOf returns the disks of sessions in ascending order, each once.
func (a *Agent) disksOf(ctx context.Context, sessions []ISCSISession) ([]uint32, error) {
	var numbers []uint32
	for _, session := range sessions {
		disks, err := a.os.SessionDisks(ctx, session.ID)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, disks...)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

// SetMutualChapSecret implements host.ISCSI.
func (a *Agent) SetMutualChapSecret(ctx context.Context, secret string) error {
	c := a.mutation(ctx, "SetMutualChapSecret", "").withSecrets(secret)
	if err := checkSecret("mutualChapSecret", secret); err != nil {
		return c.refused(err)
	}
	return exec(ctx, c, []want{exclusive(lockInitiator, 0, "")}, func(ctx context.Context) error {
		err := a.os.SetInitiatorSecret(ctx, secret)
		if err == nil {
			a.initiatorSecretSet.Store(true)
		}
		return err
	})
}

// ListTargets implements host.ISCSI.
func (a *Agent) ListTargets(ctx context.Context) ([]host.TargetInfo, error) {
	return nodeQuery(ctx, a, "ListTargets", func(ctx context.Context) ([]host.TargetInfo, error) {
		iqns, err := a.os.Targets(ctx, host.TargetPortal{})
		if err != nil {
			return nil, err
		}
		sessions, err := a.os.Sessions(ctx)
		if err != nil {
			return nil, err
		}
		infos := make([]host.TargetInfo, 0, len(iqns))
		for _, iqn := range iqns {
			info := host.TargetInfo{IQN: iqn}
			own := ofTarget(sessions, iqn)
			info.Connected = len(own) > 0
			if info.DiskNumbers, err = a.disksOf(ctx, own); err != nil {
				return nil, err
			}
			infos = append(infos, info)
		}
		return infos, nil
	})
}
