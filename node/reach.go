package node

import (
	"context"
	"slices"

	"github.com/csi-windows/csi-windows/host"
)

// reach fails unless what a place leads to is staged and can be reached now:
// KindPrecondition when it cannot.
func (t *Tasks) reach(ctx context.Context, found place) error {
	switch {
	case found.kind == placeVolume:
		return t.reachVolume(ctx, found)
	case found.kind == placeRemote, found.kind == placeLink && !found.dead && found.leadsTo == "":
		return t.reachShare(ctx, found)
	default:
		return notStaged(found)
	}
}

// notStaged is the refusal of a path at which no volume and no share is.
func notStaged(found place) error {
	switch found.kind {
	case placeMissing:
		return refuse(host.KindPrecondition, "nothing is staged at %s: there is no such path", host.PrintableText(found.path))
	case placeFolder:
		return refuse(host.KindPrecondition, "nothing is staged at %s: it is a plain folder", host.PrintableText(found.path))
	default:
		return refuse(host.KindPrecondition, "nothing is staged at %s: it is a link that leads to no volume and no share", host.PrintableText(found.path))
	}
}

// reachVolume fails with KindPrecondition when the volume has gone or has no file
// system.
func (t *Tasks) reachVolume(ctx context.Context, found place) error {
	formatted, err := t.host.IsVolumeFormatted(ctx, found.volumeID)
	switch {
	case err == nil && !formatted:
		return refuse(host.KindPrecondition, "%s has no file system", found.volumeID)
	case err != nil && t.isGone(ctx, found.volumeID, err):
		return &host.Error{Kind: host.KindPrecondition, Cause: err}
	default:
		return err
	}
}

// isGone reports whether a question about a volume has failed because the volume
// is not on the node any more. Of a csi-proxy whose errors do not say so, the
// disks are asked for their volumes; in doubt the volume is there.
func (t *Tasks) isGone(ctx context.Context, volumeID string, err error) bool {
	if host.IsKind(err, host.KindNotFound) {
		return true
	}
	if !host.IsKind(err, host.KindInternal) || t.knows("GetLink") {
		return false
	}
	disks, err := t.host.ListDiskIDs(ctx)
	if err != nil {
		return false
	}
	for number := range disks {
		volumes, err := t.host.ListVolumesOnDisk(ctx, number, 0)
		if err != nil || slices.ContainsFunc(volumes, func(id string) bool { return sameVolume(id, volumeID) }) {
			return false
		}
	}
	return true
}
