package node

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// Publish implements Node.
func (t *Tasks) Publish(ctx context.Context, r PublishRequest) error {
	k := task{op: "Publish", volumeID: r.VolumeID, paths: []string{r.TargetPath, r.StagingPath}, problem: r.Validate()}
	return t.run(ctx, k, func(ctx context.Context) error {
		staged, err := t.look(ctx, r.StagingPath)
		if err != nil {
			return err
		}
		if err := t.reach(ctx, staged); err != nil {
			return err
		}
		if r.Access.SingleWriter {
			if err := t.holdTarget(ctx, r.VolumeID, r.TargetPath); err != nil {
				return err
			}
		}
		if r.ReadOnly && !r.Access.ReadOnly {
			t.log.Debug("read-only for the container only: the volume itself can be written", "volume", r.VolumeID)
		}
		return t.link(ctx, staged, r.TargetPath)
	})
}

// link makes the target a link to what is staged.
func (t *Tasks) link(ctx context.Context, staged place, target string) error {
	if t.knows("GetLink") {
		// Nearly always nothing is there, or the very link already. Only our own
		// csi-proxy says reliably which of the reasons a failure has.
		err := t.createLink(ctx, staged, target)
		if err == nil || !host.IsKind(err, host.KindExists) {
			return err
		}
	}
	found, err := t.look(ctx, target)
	if err != nil {
		return err
	}
	published, err := t.makeRoom(ctx, staged, found)
	if err != nil || published {
		return err
	}
	return t.createLink(ctx, staged, target)
}

// createLink makes the link and the missing folders above it.
func (t *Tasks) createLink(ctx context.Context, staged place, target string) error {
	err := t.host.CreateSymlink(ctx, staged.path, target)
	parent := parentPath(target)
	if err == nil || parent == "" || host.IsKind(err, host.KindExists) {
		return err
	}
	if exists, lookErr := t.host.PathExists(ctx, parent); lookErr != nil || exists {
		return err
	}
	if err := t.host.Mkdir(ctx, parent); err != nil {
		return err
	}
	return t.host.CreateSymlink(ctx, staged.path, target)
}

// makeRoom takes away what is in the way of the link and holds nothing of
// anybody's. It reports whether what is there is the link that is wanted.
func (t *Tasks) makeRoom(ctx context.Context, staged, found place) (published bool, err error) {
	switch {
	case found.kind == placeMissing:
		return false, nil
	case found.kind == placeFolder:
		return false, t.removeEmptyFolder(ctx, found.path)
	case !found.isMount && leadsTo(found, staged):
		return true, nil
	case found.kind == placeLink && !found.dead && found.leadsTo == "":
		// A host that cannot read links; the path is the kubelet's, and nothing but
		// the link goes.
		t.log.Info("a link that cannot be read is made anew", "path", found.path)
	case found.kind == placeVolume:
		if err := t.mustBeDead(ctx, found); err != nil {
			return false, err
		}
	case !found.dead:
		return false, occupied(found)
	}
	return false, t.host.Rmdir(ctx, found.path, false)
}

// mustBeDead refuses a path that leads to a volume that can be reached.
func (t *Tasks) mustBeDead(ctx context.Context, found place) error {
	err := t.reachVolume(ctx, found)
	switch {
	case err == nil:
		return occupied(found)
	case host.IsKind(err, host.KindPrecondition):
		return nil
	default:
		return err
	}
}

// leadsTo reports whether what is found at a path is a link to what is staged.
func leadsTo(found, staged place) bool {
	if found.leadsTo != "" {
		return samePath(found.leadsTo, staged.path)
	}
	return found.kind == placeVolume && sameVolume(found.volumeID, staged.volumeID)
}

// removeUnlinked removes what is no link and holds nothing. There are csi-proxies that
// take a mount point for no link, and remove it as if it were empty.
func (t *Tasks) removeUnlinked(ctx context.Context, path string) error {
	if !t.knows("GetLink") {
		found, err := t.lookByQuestions(ctx, path)
		if err == nil && found.kind == placeVolume {
			err = t.mustBeDead(ctx, found)
		}
		if err != nil {
			return err
		}
	}
	return t.removeEmptyFolder(ctx, path)
}

// removeEmptyFolder removes a folder of which it is sure that it is one, and empty.
func (t *Tasks) removeEmptyFolder(ctx context.Context, path string) error {
	// Rmdir takes a file away as well. Mkdir refuses one, and leaves a folder as it is.
	if err := t.host.Mkdir(ctx, path); err != nil {
		return notAFolder(path, err)
	}
	err := t.host.Rmdir(ctx, path, false)
	if err == nil || isPassing(err) {
		return err
	}
	return &host.Error{Op: "remove", Object: host.PrintableText(path), Kind: host.KindPrecondition, Cause: err}
}

// notAFolder is the failure of Mkdir at a path where something is that should be a
// folder. It is a file, or a link that leads nowhere: some csi-proxies cannot tell
// the two apart, and a file is not to be lost.
func notAFolder(path string, err error) error {
	if isPassing(err) {
		return err
	}
	return &host.Error{Op: "use", Object: host.PrintableText(path) + " as a folder", Kind: host.KindPrecondition, Cause: err}
}

// isPassing reports whether a failure says nothing of the object it is about.
func isPassing(err error) bool {
	switch host.KindOf(err) {
	case host.KindTimeout, host.KindUnavailable, host.KindBusy:
		return true
	default:
		return false
	}
}

// Unpublish implements Node.
func (t *Tasks) Unpublish(ctx context.Context, r UnpublishRequest) error {
	k := task{op: "Unpublish", volumeID: r.VolumeID, paths: []string{r.TargetPath}, problem: r.Validate()}
	return t.run(ctx, k, func(ctx context.Context) error {
		isLink, exists, err := t.isLink(ctx, r.TargetPath)
		switch {
		case err != nil:
			return err
		case isLink:
			err = t.host.Rmdir(ctx, r.TargetPath, false)
		case exists:
			err = t.removeUnlinked(ctx, r.TargetPath)
		}
		if err != nil {
			return err
		}
		return t.dropTarget(ctx, r.VolumeID, r.TargetPath)
	})
}

// isLink reports whether a path is a link or a dead mount point, and whether anything is
// there at all. A live mount point is KindPrecondition: Publish makes none, so it is
// where a volume is staged.
func (t *Tasks) isLink(ctx context.Context, path string) (isLink, exists bool, err error) {
	if t.knows("GetLink") {
		link, err := t.host.GetLink(ctx, path)
		if host.IsKind(err, host.KindNotFound) {
			return false, false, nil
		}
		if volume, isVolume := volumeOf(link.Target); err == nil && isVolume && link.Kind == host.LinkMountPoint {
			err = t.mustBeDead(ctx, place{path: path, kind: placeVolume, volumeID: volume})
		}
		if !t.lacking("GetLink", err) {
			return link.Kind != host.NotALink, err == nil, err
		}
	}
	if exists, err = t.host.PathExists(ctx, path); err != nil || !exists {
		return false, false, err
	}
	isLink, err = t.host.IsSymlink(ctx, path)
	return isLink, true, err
}
