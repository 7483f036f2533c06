package node

import (
	"context"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// A host that cannot list mounts cannot say whether a disk is in use. Over such a
// host every stage has a hold on the volume of its disk, and an unstage has a mark
// while it is under way: an empty folder for who repeats it.

// listsMounts is false for a host that is known not to list mounts. One of the two is
// asked before this matters.
func (k diskKind) listsMounts() bool { return k.knows("GetVolume") && k.knows("ListDisks") }

// diskHold is the hold of a stage on a volume of a disk.
func (k diskKind) diskHold(volumeID, stagingPath string) hold {
	return k.newHold(heldDisks, host.FoldName(strings.TrimRight(volumeID, `\`)), pathKey(stagingPath))
}

// isLastStage takes away the hold of a stage on a disk, and reports whether no other
// stage has one.
func (k diskKind) isLastStage(ctx context.Context, number uint32, stagingPath string) (bool, error) {
	if k.listsMounts() {
		return true, nil
	}
	volume, err := k.dataVolume(ctx, number)
	switch {
	case host.IsKind(err, host.KindPrecondition): // several volumes; letGoLocked says what that means
		return true, nil
	case err != nil || volume == "":
		return err == nil, err
	default:
		return k.dropDiskHold(ctx, volume, stagingPath)
	}
}

// dropDiskHold takes away the hold of a stage on a volume, and reports whether it was
// the last one. A host that lists mounts needs none, and says itself what is in use.
func (k diskKind) dropDiskHold(ctx context.Context, volumeID, stagingPath string) (last bool, err error) {
	h := k.diskHold(volumeID, stagingPath)
	if k.listsMounts() {
		return true, k.dropOldHold(ctx, h)
	}
	if last, err = k.dropHold(ctx, h); err != nil || !last {
		if err == nil {
			k.log.Info("a disk stays online: another stage uses it", "volume", volumeID)
		}
		return false, err
	}
	return true, k.forgetHold(ctx, h)
}

// dropOldHold takes away the hold of a stage from before csi-proxy was replaced by one that
// lists mounts.
func (k diskKind) dropOldHold(ctx context.Context, h hold) error {
	held, err := k.host.PathExists(ctx, h.user)
	if err != nil || !held {
		return err
	}
	last, err := k.dropHold(ctx, h)
	if err != nil || !last {
		return err
	}
	return k.forgetHold(ctx, h)
}

// dropGoneDisk takes away the hold of a stage whose volume has gone.
func (k diskKind) dropGoneDisk(ctx context.Context, found place) error {
	if found.volumeID == "" {
		return nil
	}
	_, err := k.dropDiskHold(ctx, found.volumeID, found.path)
	return err
}

// dropFailed takes away the hold of a stage that has failed for a reason. With the
// outcome unknown it stays for the next attempt to find.
func (k diskKind) dropFailed(ctx context.Context, d disk, volumeID, stagingPath string, reason error) {
	if d.known || isPassing(reason) {
		return
	}
	if _, err := k.dropDiskHold(ctx, volumeID, stagingPath); err != nil {
		k.log.Warn("the hold of a failed stage stays; the next stage or unstage takes it away", "path", stagingPath, "error", err)
	}
}

// markPath is the folder that says that an unstage is under way.
func (k diskKind) markPath(r UnstageRequest) string {
	name := hashOf(r.VolumeID + "|" + pathKey(r.StagingPath) + "|" + host.FoldName(r.Source.Disk.String()))
	return strings.TrimRight(k.options.Folder, `\/`) + `\unstaging\` + name
}

// marks reports whether an unstage needs a mark, and can be told to go on by one.
func (k diskKind) marks(r UnstageRequest) bool {
	return r.Source.Disk != nil && !k.listsMounts()
}

// mark says that a disk is about to be let go of, for who repeats the unstage. A hint
// that does not name that disk gets none: it would be another disk that is let go of.
func (k diskKind) mark(ctx context.Context, r UnstageRequest, number uint32) error {
	if !k.marks(r) {
		return nil
	}
	hinted, err := k.lookForDisk(ctx, *r.Source.Disk)
	if isPassing(err) {
		return err
	}
	if fits := err == nil && hinted.Number == number; !fits {
		k.log.Warn("the source of an unstage is not what is staged, and is ignored", "volume", r.VolumeID, "path", r.StagingPath, "disk", number)
		return nil
	}
	return k.host.Mkdir(ctx, k.markPath(r))
}

func (k diskKind) unmark(ctx context.Context, r UnstageRequest) error {
	if !k.marks(r) {
		return nil
	}
	_, err := k.removeEmpty(ctx, k.markPath(r))
	return err
}

// isBegun reports whether an unstage of this disk from this path, or a stage of it
// there, was cut off.
func (k diskKind) isBegun(ctx context.Context, r UnstageRequest, number uint32) (bool, error) {
	marked, err := k.host.PathExists(ctx, k.markPath(r))
	if err != nil || marked {
		return marked, err
	}
	volume, err := k.dataVolume(ctx, number)
	if host.IsKind(err, host.KindPrecondition) {
		return false, nil // several volumes; nobody stages such a disk
	}
	if err != nil || volume == "" {
		return false, err
	}
	return k.host.PathExists(ctx, k.diskHold(volume, r.StagingPath).user)
}
