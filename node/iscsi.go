package node

import (
	"context"
	"slices"
	"strconv"

	"github.com/csi-windows/csi-windows/host"
)

// iscsiKind stages logical units of iSCSI targets: a login, and then the disk that
// it brings. All units of a target have one login, which goes with the last of them;
// holds tell which that is.
type iscsiKind struct{ *Tasks }

// stage implements sourceKind.
func (k iscsiKind) stage(ctx context.Context, r StageRequest, found place) error {
	if err := k.disk().refuseOccupied(ctx, &found); err != nil {
		return err
	}
	source := *r.Source.ISCSI
	isNew, err := k.holdLogin(ctx, source, r.StagingPath)
	if err != nil {
		return err
	}
	err = k.stageUnit(ctx, r, found)
	if err == nil || !isNew || ctx.Err() != nil || host.IsKind(err, host.KindTimeout) {
		// With the outcome unknown, or with something of an earlier stage there, all is
		// left for the next attempt to find.
		return err
	}
	if undoErr := k.undo(ctx, r, found); undoErr != nil {
		k.log.Warn("a failed stage is not undone whole", "path", r.StagingPath, "target", host.PrintableText(source.IQN), "error", undoErr)
	}
	return err
}

func (k iscsiKind) disk() diskKind { return diskKind(k) }

func (k iscsiKind) stageUnit(ctx context.Context, r StageRequest, found place) error {
	source := *r.Source.ISCSI
	if err := k.login(ctx, source, r.StagingPath); err != nil {
		return err
	}
	find := func(ctx context.Context) (disk, error) { return k.awaitUnit(ctx, source) }
	return k.disk().stageDisk(ctx, r, find, found)
}

// undo takes back what a failed stage has made. before is what was at the path then:
// a living volume there is not the work of this stage.
func (k iscsiKind) undo(ctx context.Context, r StageRequest, before place) error {
	found := place{path: r.StagingPath}
	if before.kind != placeVolume || before.dead {
		var err error
		if found, err = k.look(ctx, r.StagingPath); err != nil {
			return err
		}
	}
	if found.kind != placeVolume && !k.knows("GetVolume") {
		// Whether the disk is mounted elsewhere cannot be asked here, so it is left as it is.
		return k.logout(ctx, *r.Source.ISCSI, r.StagingPath)
	}
	return k.unstage(ctx, UnstageRequest{VolumeID: r.VolumeID, StagingPath: r.StagingPath, Source: r.Source}, found)
}

// awaitUnit returns the disk of a logical unit of a target that is logged in to.
// Disks arrive some time after a login, and a unit that was added after it only
// after a rescan.
func (k iscsiKind) awaitUnit(ctx context.Context, source ISCSISource) (unit disk, err error) {
	rescans := false
	arrived, err := k.await(ctx, func(ctx context.Context) (bool, error) {
		if rescans {
			if err := k.host.Rescan(ctx); err != nil {
				return false, err
			}
		}
		rescans = true
		var err error
		unit, err = k.findUnit(ctx, source)
		if host.IsKind(err, host.KindNotFound) {
			return false, nil
		}
		return err == nil, err
	})
	if err == nil && !arrived {
		err = noUnit(source)
	}
	return unit, err
}

func noUnit(source ISCSISource) error {
	return refuse(host.KindNotFound, "target %s has no disk with LUN %d", host.PrintableText(source.IQN), source.LUN)
}

// findUnit returns the disk of a logical unit as it is now. More than one is
// KindPrecondition: they are ways to one medium, and nobody here knows how to use
// them together.
func (k iscsiKind) findUnit(ctx context.Context, source ISCSISource) (disk, error) {
	isLoggedIn, numbers, err := k.targetDisks(ctx, source)
	switch {
	case err != nil:
		return disk{}, err
	case !isLoggedIn && !k.isOfficial():
		return disk{}, refuse(host.KindPrecondition, "target %s is not connected", host.PrintableText(source.IQN))
	case !isLoggedIn:
		return disk{}, noUnit(source) // or its disks have not arrived yet
	}
	atLUN := DiskSource{Location: host.DiskLocation{LUNID: strconv.FormatUint(uint64(source.LUN), 10)}}
	disks, err := k.disks(ctx, atLUN)
	if err != nil {
		return disk{}, err
	}
	units := slices.DeleteFunc(disks, func(d disk) bool { return !slices.Contains(numbers, d.Number) || !atLUN.fits(d) })
	switch len(units) {
	case 0:
		return disk{}, noUnit(source)
	case 1:
		return units[0], nil
	default:
		return disk{}, ambiguous(units)
	}
}

// unstage implements sourceKind. It is asked with a hint only.
func (k iscsiKind) unstage(ctx context.Context, r UnstageRequest, found place) error {
	source := *r.Source.ISCSI
	switch found.kind {
	case placeVolume:
		if _, _, err := k.disk().unstageVolume(ctx, r, found); err != nil {
			return err
		}
	case placeLink:
		if err := k.host.Rmdir(ctx, found.path, false); err != nil {
			return err
		}
		fallthrough
	default:
		if err := k.takeUnitOffline(ctx, source, r.StagingPath); err != nil {
			return err
		}
	}
	return k.logout(ctx, source, r.StagingPath)
}

// takeUnitOffline does what is left of a task that was cut off before or after the
// volume was mounted. That there was one is told by its hold.
func (k iscsiKind) takeUnitOffline(ctx context.Context, source ISCSISource, stagingPath string) error {
	held, err := k.host.PathExists(ctx, k.loginHold(source, stagingPath).user)
	if err != nil || !held {
		return err
	}
	unit, err := k.findUnit(ctx, source)
	switch {
	case k.isLoggedOut(err):
		return nil // or there is no such unit, or several
	case err != nil:
		return err
	case unit.System || unit.known && unit.Offline:
		return nil
	}
	_, err = k.disk().letGo(ctx, unit.Number, stagingPath)
	return err
}

// logoutUnused ends the login a disk came from, if its unit was the last in use. Only
// a host that lists targets can say which login that is.
func (t *Tasks) logoutUnused(ctx context.Context, r UnstageRequest, number uint32) error {
	if !t.knows("ListTargets") {
		return nil
	}
	targets, err := t.host.ListTargets(ctx)
	if err != nil {
		if t.lacking("ListTargets", err) || host.IsKind(err, host.KindPrecondition) {
			err = nil // the initiator is not running, so nothing came from it
		}
		return err
	}
	for _, target := range targets {
		if !slices.Contains(target.DiskNumbers, number) {
			continue
		}
		portals, err := t.host.ListTargetPortals(ctx)
		if err != nil {
			return err
		}
		if len(portals) == 0 {
			t.log.Warn("no portal of a target is known; its login is kept", "target", target.IQN)
			return nil
		}
		return iscsiKind{t}.logout(ctx, ISCSISource{Portals: portals, IQN: target.IQN}, r.StagingPath)
	}
	return nil
}
