package node

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// Expand implements Node.
func (t *Tasks) Expand(ctx context.Context, r ExpandRequest) (result ExpandResult, err error) {
	k := task{op: "Expand", volumeID: r.VolumeID, paths: []string{r.Path}, problem: r.Validate()}
	err = t.run(ctx, k, func(ctx context.Context) error {
		found, err := t.lookForStaged(ctx, r.Path)
		if err != nil {
			return err
		}
		if found.kind != placeVolume {
			return t.reach(ctx, found) // a share grows without its users
		}
		result.CapacityBytes, err = t.expandVolume(ctx, r, found.volumeID)
		return err
	})
	return result, err
}

// lookForStaged is look for a path that is staged or published: one that is
// missing is KindNotFound.
func (t *Tasks) lookForStaged(ctx context.Context, path string) (place, error) {
	found, err := t.look(ctx, path)
	if err == nil && found.kind == placeMissing {
		err = refuse(host.KindNotFound, "there is no such path")
	}
	return found, err
}

// expandVolume grows a volume to the size of its disk, and returns that.
func (t *Tasks) expandVolume(ctx context.Context, r ExpandRequest, volumeID string) (sizeBytes int64, err error) {
	number, err := t.host.GetDiskNumberFromVolumeID(ctx, volumeID)
	if err != nil {
		return 0, err
	}
	release, err := t.locks.acquire(ctx, "Expand", diskKey(number))
	if err != nil {
		return 0, err
	}
	defer release()
	// Windows goes on telling the old size until it is made to look.
	if err := t.host.Rescan(ctx); err != nil {
		return 0, err
	}
	size, err := t.host.GetDiskStats(ctx, number)
	switch {
	case err != nil:
		return 0, err
	case r.LimitBytes > 0 && size.TotalBytes > r.LimitBytes:
		return 0, invalid("limitBytes", "disk %d has %d bytes already, more than the limit of %d", number, size.TotalBytes, r.LimitBytes)
	case size.TotalBytes < r.RequiredBytes:
		return 0, refuse(host.KindPrecondition, "disk %d has %d bytes, %d are required: the disk itself has not grown yet",
			number, size.TotalBytes, r.RequiredBytes)
	}
	return size.TotalBytes, t.host.ResizeVolume(ctx, volumeID, 0)
}

// Stats implements Node.
func (t *Tasks) Stats(ctx context.Context, r StatsRequest) (stats Stats, err error) {
	k := task{op: "Stats", volumeID: r.VolumeID, paths: []string{r.Path}, problem: r.Validate(), reads: true}
	err = t.run(ctx, k, func(ctx context.Context) error {
		found, err := t.lookForStaged(ctx, r.Path)
		switch {
		case err != nil:
			return err
		case found.kind == placeVolume:
			stats, err = t.volumeStats(ctx, found)
			return err
		case found.kind == placeFolder || found.dead || found.kind == placeLink && found.leadsTo != "":
			return notStaged(found)
		default:
			stats, err = t.shareStats(ctx, found)
			return err
		}
	})
	return stats, err
}

func (t *Tasks) volumeStats(ctx context.Context, found place) (Stats, error) {
	sizes, err := t.host.GetVolumeStats(ctx, found.volumeID)
	if err != nil && t.isGone(ctx, found.volumeID, err) {
		return Stats{}, &host.Error{Kind: host.KindUnavailable, Cause: err}
	}
	return statsOf(sizes), err
}

// statsOf completes the sizes of a volume or share. None is negative, whatever the
// host says: under a quota some tell more free bytes than there are bytes at all.
func statsOf(sizes host.VolumeStats) Stats {
	used := max(0, sizes.UsedBytes)
	return Stats{TotalBytes: sizes.TotalBytes, UsedBytes: used, AvailableBytes: max(0, sizes.TotalBytes-used)}
}
