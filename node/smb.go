package node

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// smbKind stages shares and folders in them: a mapping of the share for the whole
// node, and a link to the folder at the staging path. All stages of one share have
// one mapping, which goes with the last of them; holds tell which that is.
type smbKind struct{ *Tasks }

// stage implements sourceKind. The mapping comes before the link, so a failure
// leaves nothing behind that could be taken for the share.
func (k smbKind) stage(ctx context.Context, r StageRequest, found place) error {
	source := r.Source.SMB
	want, err := parseShare("source.smb.path", source.Path)
	if err != nil {
		return err
	}
	username, err := smbUser(source.Username, source.Domain)
	if err != nil {
		return err
	}
	release, err := k.lockShares(ctx, "Stage", append(sharesOf(Source{}, found), want))
	if err != nil {
		return err
	}
	defer release()
	linked, err := k.makeRoom(ctx, r.StagingPath, want, found)
	if err != nil {
		return err
	}
	if err := k.holdShare(ctx, want, r.StagingPath); err != nil {
		return err
	}
	err = k.mapAndLink(ctx, want, r.StagingPath, linked, username, source.Password)
	if err == nil || linked || ctx.Err() != nil || host.IsKind(err, host.KindTimeout) {
		// With the outcome unknown all is left for the next attempt to find.
		return err
	}
	if undoErr := k.undo(ctx, want, r.StagingPath); undoErr != nil {
		k.log.Warn("a failed stage is not undone whole", "path", r.StagingPath, "share", want.key(), "error", undoErr)
	}
	return err
}

// mapAndLink maps the share, checks that the folder is there, and makes the link.
func (k smbKind) mapAndLink(ctx context.Context, want sharePath, stagingPath string, linked bool, username, password string) error {
	link := stagingPath
	if linked && !k.knows("GetLink") {
		link = "" // an agent that cannot read links may refuse to make one twice
	}
	if err := k.host.NewSmbGlobalMapping(ctx, want.String(), link, username, password); err != nil {
		return err
	}
	if k.knows("GetLink") {
		return nil // an agent with additions has looked at the folder
	}
	live, err := k.host.IsSymlink(ctx, stagingPath)
	if err == nil && !live {
		err = refuse(host.KindNotFound, "%s cannot be reached", host.PrintableText(want.String()))
	}
	return err
}

// undo takes back what a failed stage has made.
func (k smbKind) undo(ctx context.Context, want sharePath, stagingPath string) error {
	found, err := k.look(ctx, stagingPath)
	if err == nil && found.kind != placeMissing {
		err = k.removeLink(ctx, found)
	}
	if err != nil {
		return err
	}
	return k.letGoShare(ctx, want, stagingPath)
}

// makeRoom makes the staging path free for the link, and reports whether the link
// is there already.
func (k smbKind) makeRoom(ctx context.Context, stagingPath string, want sharePath, found place) (linked bool, err error) {
	switch found.kind {
	case placeMissing:
		if parent := parentPath(stagingPath); parent != "" {
			return false, k.host.Mkdir(ctx, parent)
		}
		return false, nil
	case placeFolder:
		return false, k.removeFolder(ctx, stagingPath)
	case placeRemote:
		other, err := parseShare("link", found.remote)
		if err == nil && other.isSame(want) {
			return true, nil
		}
		return false, k.replaceRemote(ctx, found, other, err == nil)
	case placeVolume:
		_, err := k.host.GetDiskNumberFromVolumeID(ctx, found.volumeID)
		if host.IsKind(err, host.KindNotFound) {
			return false, k.host.Rmdir(ctx, stagingPath, false)
		}
		if err != nil {
			return false, err
		}
		return false, refuse(host.KindExists, "a volume is mounted there: %s", found.volumeID)
	default:
		return k.makeRoomForLink(ctx, stagingPath, want, found)
	}
}

// makeRoomForLink is makeRoom for a link of which not much is known.
func (k smbKind) makeRoomForLink(ctx context.Context, stagingPath string, want sharePath, found place) (linked bool, err error) {
	if found.dead {
		return false, k.host.Rmdir(ctx, stagingPath, false)
	}
	if found.leadsTo != "" {
		return false, refuse(host.KindExists, "a link to another place is there: %s", host.PrintableText(found.leadsTo))
	}
	held, err := k.host.PathExists(ctx, k.shareHold(want, stagingPath).user)
	if err == nil && !held {
		err = refuse(host.KindExists, "a link is there, and the csi-proxy of this node cannot say where it leads")
	}
	return held, err
}

// removeFolder removes the empty folder that the kubelet makes. Mkdir fails when it
// is a file, which Rmdir would take for something to be removed.
func (k smbKind) removeFolder(ctx context.Context, path string) error {
	if err := k.host.Mkdir(ctx, path); err != nil {
		return err
	}
	return k.host.Rmdir(ctx, path, false)
}

// replaceRemote removes a link to another place on a file server if that cannot be
// used any more: its folder is gone, or its share is not mapped, as after a restart.
func (k smbKind) replaceRemote(ctx context.Context, found place, other sharePath, isShare bool) error {
	_, err := k.host.GetPathStats(ctx, found.path)
	switch {
	case err == nil || k.lacking("GetPathStats", err):
		return refuse(host.KindExists, "another share is staged there: %s", host.PrintableText(found.remote))
	case !host.IsKind(err, host.KindNotFound) && !host.IsKind(err, host.KindPrecondition):
		return err
	}
	k.log.Warn("a dead link to a share is replaced", "path", found.path, "link", host.PrintableText(found.remote))
	if isShare {
		if err := k.letGoShare(ctx, other, found.path); err != nil {
			return err
		}
	}
	return k.host.Rmdir(ctx, found.path, false)
}

// unstage implements sourceKind. The link goes last: until then it says which
// share there is to let go of, however often the task is cut off.
func (k smbKind) unstage(ctx context.Context, r UnstageRequest, found place) error {
	shares := sharesOf(r.Source, found)
	release, err := k.lockShares(ctx, "Unstage", shares)
	if err != nil {
		return err
	}
	defer release()
	for _, share := range shares {
		if err := k.letGoShare(ctx, share, r.StagingPath); err != nil {
			return err
		}
	}
	if len(shares) == 0 && found.kind == placeLink {
		k.log.Warn("a link was unstaged of which nobody says where it leads; its mapping, if any, is kept", "path", r.StagingPath)
	}
	return k.removeLink(ctx, found)
}

// lockShares takes the locks of shares: a task that looks whether it is the last
// on a share never meets one that begins to use it.
func (k smbKind) lockShares(ctx context.Context, op string, shares []sharePath) (release func(), err error) {
	keys := make([]lockKey, 0, len(shares))
	for _, share := range shares {
		keys = append(keys, lockKey{lockShare, share.key()})
	}
	return k.locks.acquire(ctx, op, keys...)
}

// sharesOf returns the shares a stage may have used: the one its link names, and
// the one of the hint.
func sharesOf(hint Source, found place) []sharePath {
	var shares []sharePath
	if share, err := parseShare("link", found.remote); err == nil {
		shares = append(shares, share)
	}
	if hint.SMB == nil {
		return shares
	}
	share, err := parseShare("source.smb.path", hint.SMB.Path)
	if err == nil && (len(shares) == 0 || !shares[0].isSame(share)) {
		shares = append(shares, share)
	}
	return shares
}

// removeLink removes a link at a path, and nothing else that may be there.
func (k smbKind) removeLink(ctx context.Context, found place) error {
	switch found.kind {
	case placeRemote, placeLink:
		return k.host.Rmdir(ctx, found.path, false)
	default:
		return nil
	}
}
