package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// A hold says on the node itself that something has a use for a thing that
// several may use. It is an empty folder
//
//	<Options.Folder>\<group>\<thing>\users\<user>
//
// with hashes for thing and user. The folder of the thing says in addition that
// the thing was made here: what was there before is somebody else's and has none.
// Mkdir and a Rmdir that spares what is not empty are all that is needed, and every
// csi-proxy has them. See docs/decisions/0010-holds.md.
type hold struct {
	thing string // the folder of the thing
	user  string // the folder of this user in it
}

// Groups of things that are held.
const (
	heldShares  = "smb"     // shares by their keys, held by stages
	heldTargets = "iscsi"   // logins to targets by their names, held by stages
	heldPortals = "portal"  // portals by their addresses, held by stages
	heldDisks   = "disk"    // volumes of disks by their ids, held by stages; see diskhold.go
	heldVolumes = "publish" // volumes with one writer by their ids, held by target paths
)

func (t *Tasks) newHold(group, thing, user string) hold {
	folder := strings.TrimRight(t.options.Folder, `\/`) + `\` + group + `\` + hashOf(thing)
	return hold{thing: folder, user: folder + `\users\` + hashOf(user)}
}

// hashOf is a text as a name every file system takes.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// takeHold makes the hold. It is made before the thing, so that none is without.
func (t *Tasks) takeHold(ctx context.Context, h hold) error { return t.host.Mkdir(ctx, h.user) }

// holdUnlessForeign makes a hold of a stage, unless the thing is there and nothing says
// that it was made here. It reports whether the hold is new.
func (t *Tasks) holdUnlessForeign(ctx context.Context, h hold, isThere func() (bool, error)) (isNew bool, err error) {
	made, err := t.isMade(ctx, h)
	if err != nil {
		return false, err
	}
	if made {
		held, err := t.host.PathExists(ctx, h.user)
		if err != nil || held {
			return false, err
		}
	} else if there, err := isThere(); err != nil || there {
		return false, err
	}
	return true, t.takeHold(ctx, h)
}

// isMade reports whether the thing was made here.
func (t *Tasks) isMade(ctx context.Context, h hold) (bool, error) {
	return t.host.PathExists(ctx, h.thing)
}

// dropHold takes the hold away, and reports whether it was the last one. The thing
// is then to be taken away, and forgetHold ends it: cut off before that, the next
// dropHold finds the last one gone and says so again.
func (t *Tasks) dropHold(ctx context.Context, h hold) (last bool, err error) {
	gone, err := t.removeEmpty(ctx, h.user)
	if err != nil {
		return false, err
	}
	if !gone {
		t.log.Warn("a hold is not as it was made; what it holds is kept", "folder", h.user)
		return false, nil
	}
	return t.removeEmpty(ctx, parentPath(h.user))
}

// dropLastHold is dropHold, and reports whether the thing is to be taken away: the
// hold was the last, and the thing was made here.
func (t *Tasks) dropLastHold(ctx context.Context, h hold) (bool, error) {
	last, err := t.dropHold(ctx, h)
	if err != nil || !last {
		return false, err
	}
	return t.isMade(ctx, h)
}

// forgetHold ends a thing whose last hold is gone.
func (t *Tasks) forgetHold(ctx context.Context, h hold) error {
	_, err := t.removeEmpty(ctx, h.thing)
	return err
}

// removeEmpty removes an empty folder and reports whether it is gone: one that was
// missing is, one that holds something is not. Other agents than ours have no kind
// of error for either, so what fails twice is judged by what is there then.
func (t *Tasks) removeEmpty(ctx context.Context, path string) (gone bool, err error) {
	err = t.host.Rmdir(ctx, path, false)
	if host.IsKind(err, host.KindInternal) {
		err = t.host.Rmdir(ctx, path, false)
	}
	switch {
	case err == nil:
		return true, nil
	case host.IsKind(err, host.KindPrecondition):
		return false, nil
	case host.IsKind(err, host.KindInternal):
		exists, err := t.host.PathExists(ctx, path)
		return !exists && err == nil, err
	default:
		return false, err
	}
}

// kindByHold is asked when neither the path nor a hint says what was staged. Only a
// link to a file server cannot be read by a csi-proxy without GetLink.
func (t *Tasks) kindByHold(_ context.Context, found place) (sourceKind, error) {
	if found.kind == placeLink && !found.dead && found.leadsTo == "" {
		return smbKind{t}, nil
	}
	return diskKind{t}, nil
}

// holdTarget makes a path the one at which a volume is published. Another one is
// KindPrecondition.
func (t *Tasks) holdTarget(ctx context.Context, volumeID, targetPath string) error {
	h := t.newHold(heldVolumes, volumeID, pathKey(targetPath))
	held, err := t.host.PathExists(ctx, h.user)
	if err != nil || held {
		return err
	}
	free, err := t.removeEmpty(ctx, parentPath(h.user))
	if err != nil {
		return err
	}
	if !free {
		return refuse(host.KindPrecondition, "the volume is published at another path, and its access mode allows one")
	}
	return t.takeHold(ctx, h)
}

// dropTarget takes back holdTarget. Nothing held is success.
func (t *Tasks) dropTarget(ctx context.Context, volumeID, targetPath string) error {
	h := t.newHold(heldVolumes, volumeID, pathKey(targetPath))
	last, err := t.dropHold(ctx, h)
	if err != nil || !last {
		return err
	}
	return t.forgetHold(ctx, h)
}
