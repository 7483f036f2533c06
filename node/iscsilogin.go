package node

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// loginHold is the hold of a stage on the login to its target.
func (t *Tasks) loginHold(source ISCSISource, stagingPath string) hold {
	return t.newHold(heldTargets, strings.ToLower(source.IQN), pathKey(stagingPath))
}

// portalHold is the hold of a stage on a portal.
func (t *Tasks) portalHold(portal host.TargetPortal, source ISCSISource, stagingPath string) hold {
	return t.newHold(heldPortals, portalKey(portal), strings.ToLower(source.IQN)+"|"+pathKey(stagingPath))
}

// portalKey is equal for all spellings of a portal.
func portalKey(portal host.TargetPortal) string {
	address, port := strings.ToLower(portal.Address), portal.Port
	if parsed, err := netip.ParseAddr(portal.Address); err == nil {
		address = parsed.String()
	}
	if port == 0 {
		port = host.DefaultISCSIPort
	}
	return net.JoinHostPort(address, strconv.FormatUint(uint64(port), 10))
}

func targetKey(iqn string) lockKey { return lockKey{lockTarget, strings.ToLower(iqn)} }

// holdLogin makes the hold of a stage, unless somebody else is logged in: a login of
// which no hold tells is used, and never ended. It reports whether the hold is new.
func (k iscsiKind) holdLogin(ctx context.Context, source ISCSISource, stagingPath string) (isNew bool, err error) {
	release, err := k.locks.acquire(ctx, "Stage", targetKey(source.IQN))
	if err != nil {
		return false, err
	}
	defer release()
	return k.holdUnlessForeign(ctx, k.loginHold(source, stagingPath), func() (bool, error) {
		isLoggedIn, _, err := k.targetDisks(ctx, source)
		return isLoggedIn, err
	})
}

// targetDisks returns the disks of a target, and whether it is logged in to. Official
// csi-proxies know a target by a portal only, and say of one without a login that it has
// no disks.
func (k iscsiKind) targetDisks(ctx context.Context, source ISCSISource) (isLoggedIn bool, numbers []uint32, err error) {
	for _, portal := range source.Portals {
		numbers, err = k.host.GetTargetDisks(ctx, portal, source.IQN)
		switch {
		case !k.isOfficial() && k.isLoggedOut(err):
			return false, nil, nil // through no portal
		case k.isLoggedOut(err), err == nil && k.isOfficial() && len(numbers) == 0:
		default:
			return err == nil, numbers, err
		}
	}
	return false, nil, nil
}

// isOfficial reports whether the host is known to have the official primitives only. A
// task looks at its path first, and learns it then.
func (k iscsiKind) isOfficial() bool { return !k.knows("GetLink") }

// isLoggedOut reports whether the disks of a target could not be told because there is
// no login. Other agents than ours have no kind of error for that.
func (k iscsiKind) isLoggedOut(err error) bool {
	return host.IsKind(err, host.KindPrecondition) || host.IsKind(err, host.KindNotFound) ||
		host.IsKind(err, host.KindInternal) && k.isOfficial()
}

// initiatorService is the service without which nothing of iSCSI works. Windows has
// it start by hand. Source: Microsoft iSCSI Initiator Service.
const initiatorService = "MSiSCSI"

// withInitiator does what needs the initiator's service, which is started if that was
// missing.
func (k iscsiKind) withInitiator(ctx context.Context, do func() error) error {
	err := do()
	if err == nil || !host.IsKind(err, host.KindPrecondition) && !host.IsKind(err, host.KindInternal) {
		return err
	}
	service, serviceErr := k.host.GetService(ctx, initiatorService)
	if serviceErr != nil {
		return err
	}
	if service.Status == host.ServiceRunning {
		return do() // another task may have started it meanwhile
	}
	k.log.Info("the iSCSI initiator is started", "service", initiatorService)
	if startErr := k.host.StartService(ctx, initiatorService); startErr != nil {
		return startErr
	}
	return do()
}

// login logs in through every portal that answers. One is enough; refused
// credentials end it at once, as no other portal takes them.
func (k iscsiKind) login(ctx context.Context, source ISCSISource, stagingPath string) error {
	if source.CHAP.AuthType == host.AuthMutualCHAP {
		// The initiator has one secret for all targets: nobody may set another before
		// this login is over.
		release, err := k.locks.acquire(ctx, "Stage", lockKey{lockTarget, "initiator"})
		if err != nil {
			return err
		}
		defer release()
		if source.MutualSecret != "" {
			if err := k.withInitiator(ctx, func() error { return k.host.SetMutualChapSecret(ctx, source.MutualSecret) }); err != nil {
				return err
			}
		}
	}
	var known []host.TargetPortal
	if err := k.withInitiator(ctx, func() (err error) { known, err = k.host.ListTargetPortals(ctx); return err }); err != nil {
		return err
	}
	var failures []error
	for _, portal := range source.Portals {
		err := k.loginThrough(ctx, portal, source, stagingPath, known)
		if host.IsKind(err, host.KindUnauthenticated) || ctx.Err() != nil {
			return err
		}
		if err != nil {
			failures = append(failures, err)
			k.log.Warn("a portal of a target cannot be used", "target", host.PrintableText(source.IQN), "portal", portalKey(portal), "error", err)
		}
	}
	if len(failures) == len(source.Portals) {
		return failures[0]
	}
	return nil
}

// loginThrough logs in through one portal. A portal that was known before may have
// learned its targets before this one was made, and is then asked again.
func (k iscsiKind) loginThrough(ctx context.Context, portal host.TargetPortal, source ISCSISource, stagingPath string, known []host.TargetPortal) error {
	if err := k.addPortal(ctx, portal, source, stagingPath, isKnownPortal(known, portal)); err != nil {
		return err
	}
	err := k.host.ConnectTarget(ctx, portal, source.IQN, source.CHAP)
	mayBeUnknown := host.IsKind(err, host.KindInternal) && k.isOfficial()
	if !host.IsKind(err, host.KindNotFound) && !mayBeUnknown {
		return err
	}
	iqns, discoverErr := k.host.DiscoverTargetPortal(ctx, portal)
	if discoverErr != nil {
		return discoverErr
	}
	isTold := slices.ContainsFunc(iqns, func(iqn string) bool { return strings.EqualFold(iqn, source.IQN) })
	if mayBeUnknown {
		// An official csi-proxy repeats what the portal told of when it was made.
		if isTold {
			return err
		}
		isTold, discoverErr = k.renewPortal(ctx, portal, source, stagingPath)
	}
	if !isTold || discoverErr != nil {
		return cmp.Or(discoverErr, err)
	}
	return k.host.ConnectTarget(ctx, portal, source.IQN, source.CHAP)
}

// renewPortal makes a portal of ours anew, which ends no login, so that it tells of its
// targets as they are now. It reports whether it did: somebody else's stays.
func (k iscsiKind) renewPortal(ctx context.Context, portal host.TargetPortal, source ISCSISource, stagingPath string) (bool, error) {
	release, err := k.locks.acquire(ctx, "Stage", lockKey{lockTarget, "portal " + portalKey(portal)})
	if err != nil {
		return false, err
	}
	defer release()
	if made, err := k.isMade(ctx, k.portalHold(portal, source, stagingPath)); err != nil || !made {
		return false, err
	}
	if err := k.forgetPortal(ctx, portal); err != nil {
		return false, err
	}
	return true, k.host.AddTargetPortal(ctx, portal)
}

// addPortal makes the initiator know a portal.
func (k iscsiKind) addPortal(ctx context.Context, portal host.TargetPortal, source ISCSISource, stagingPath string, isKnown bool) error {
	release, err := k.locks.acquire(ctx, "Stage", lockKey{lockTarget, "portal " + portalKey(portal)})
	if err != nil {
		return err
	}
	defer release()
	h := k.portalHold(portal, source, stagingPath)
	if _, err := k.holdUnlessForeign(ctx, h, func() (bool, error) { return isKnown, nil }); err != nil {
		return err
	}
	return k.host.AddTargetPortal(ctx, portal)
}

// logout takes the holds of a stage away, with the last one of the target its login,
// and with the last one of a portal that.
func (k iscsiKind) logout(ctx context.Context, source ISCSISource, stagingPath string) error {
	if err := k.endLogin(ctx, source, stagingPath); err != nil {
		return err
	}
	for _, portal := range source.Portals {
		if err := k.removePortal(ctx, portal, source, stagingPath); err != nil {
			return err
		}
	}
	return nil
}

func (k iscsiKind) endLogin(ctx context.Context, source ISCSISource, stagingPath string) error {
	release, err := k.locks.acquire(ctx, "Unstage", targetKey(source.IQN))
	if err != nil {
		return err
	}
	defer release()
	h := k.loginHold(source, stagingPath)
	isLast, err := k.dropLastHold(ctx, h)
	if err != nil || !isLast {
		return err
	}
	use, err := k.targetUse(ctx, source)
	if err != nil {
		return err
	}
	if use != "" {
		k.log.Warn("the login to a target is kept: a disk of it is in use", "target", host.PrintableText(source.IQN), "use", use)
		return nil
	}
	for _, portal := range source.Portals {
		if err := k.disconnect(ctx, portal, source); err != nil {
			return err
		}
	}
	return k.forgetHold(ctx, h)
}

// disconnect ends the login to a target, if there is one. Official csi-proxies fail for a
// portal that is not known, and for a target that is not behind it: no login can be ended
// through such a one.
func (k iscsiKind) disconnect(ctx context.Context, portal host.TargetPortal, source ISCSISource) error {
	err := k.withInitiator(ctx, func() error { return k.host.DisconnectTarget(ctx, portal, source.IQN) })
	if err == nil || !k.isOfficial() || !host.IsKind(err, host.KindInternal) {
		return err
	}
	if _, listErr := k.host.ListTargetPortals(ctx); listErr != nil {
		return err // it fails whatever it is asked
	}
	if _, askErr := k.host.GetTargetDisks(ctx, portal, source.IQN); !k.isLoggedOut(askErr) {
		return err
	}
	k.log.Info("a target is not known by one of its portals, and has no login by it", "target", host.PrintableText(source.IQN), "portal", portalKey(portal))
	return nil
}

// forgetPortal makes the initiator forget a portal. Official csi-proxies fail for one
// that is not known.
func (k iscsiKind) forgetPortal(ctx context.Context, portal host.TargetPortal) error {
	err := k.withInitiator(ctx, func() error { return k.host.RemoveTargetPortal(ctx, portal) })
	if err == nil || !k.isOfficial() || !host.IsKind(err, host.KindInternal) {
		return err
	}
	known, listErr := k.host.ListTargetPortals(ctx)
	if listErr != nil || isKnownPortal(known, portal) {
		return err
	}
	return nil
}

func isKnownPortal(known []host.TargetPortal, portal host.TargetPortal) bool {
	return slices.ContainsFunc(known, func(p host.TargetPortal) bool { return portalKey(p) == portalKey(portal) })
}

// targetUse says what of a target's disks is in use by somebody without a hold. A
// host that cannot list mounts is taken for one where nobody is.
func (k iscsiKind) targetUse(ctx context.Context, source ISCSISource) (use string, err error) {
	if !k.knows("GetVolume") {
		return "", nil
	}
	_, numbers, err := k.targetDisks(ctx, source)
	if err != nil {
		return "", err
	}
	for _, number := range numbers {
		use, err := k.disk().diskUse(ctx, number, host.VolumeInfo{}, isAnyMount)
		if err != nil || use != "" {
			return use, err
		}
	}
	return "", nil
}

func (k iscsiKind) removePortal(ctx context.Context, portal host.TargetPortal, source ISCSISource, stagingPath string) error {
	release, err := k.locks.acquire(ctx, "Unstage", lockKey{lockTarget, "portal " + portalKey(portal)})
	if err != nil {
		return err
	}
	defer release()
	h := k.portalHold(portal, source, stagingPath)
	isLast, err := k.dropLastHold(ctx, h)
	if err != nil || !isLast {
		return err
	}
	if err := k.forgetPortal(ctx, portal); err != nil {
		return err
	}
	return k.forgetHold(ctx, h)
}
