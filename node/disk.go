package node

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// diskKind stages disks that are attached to the node.
type diskKind struct{ *Tasks }

// growGainMinBytes is the gain up to which a file system is not grown: partition
// tables and file systems leave up to that much unused. The agent's limit is the same.
const growGainMinBytes = 100 << 20

func (k diskKind) stage(ctx context.Context, r StageRequest, found place) error {
	if err := k.refuseOccupied(ctx, &found); err != nil {
		return err
	}
	find := func(ctx context.Context) (disk, error) { return k.findDisk(ctx, *r.Source.Disk) }
	return k.stageDisk(ctx, r, find, found)
}

// refuseOccupied refuses a path where something lives that is no volume, before a
// disk is looked for. Which volume it is comes out later.
func (k diskKind) refuseOccupied(ctx context.Context, found *place) error {
	switch found.kind {
	case placeVolume:
		if err := k.reachVolume(ctx, *found); host.IsKind(err, host.KindPrecondition) {
			found.dead = true
		} else if err != nil {
			return err
		}
	case placeRemote:
		return occupied(*found)
	case placeLink:
		if !found.dead {
			return occupied(*found)
		}
	}
	return nil
}

// occupied is the refusal of a path where something else lives.
func occupied(found place) error {
	what := "a link"
	switch {
	case found.volumeID != "":
		what = "volume " + found.volumeID
	case found.remote != "":
		what = "share " + host.PrintableText(found.remote)
	case found.leadsTo != "":
		what = "a link to " + host.PrintableText(found.leadsTo)
	}
	return refuse(host.KindExists, "something else is at %s: %s", host.PrintableText(found.path), what)
}

// stageDisk makes the disk that find returns usable at r.StagingPath. found is what is
// there.
func (k diskKind) stageDisk(ctx context.Context, r StageRequest, find func(context.Context) (disk, error), found place) error {
	d, release, err := k.lockDisk(ctx, find)
	if err != nil {
		return err
	}
	defer release()
	if d.System {
		return refuse(host.KindPrecondition, "disk %d holds the operating system", d.Number)
	}
	if found.kind == placeVolume && !found.dead {
		number, err := k.host.GetDiskNumberFromVolumeID(ctx, found.volumeID)
		if err != nil {
			return err
		}
		if number != d.Number {
			return occupied(found)
		}
	}
	volume, err := k.prepareVolume(ctx, r, d)
	if err != nil {
		return err
	}
	return k.mount(ctx, r, d, volume, found)
}

// lockDisk finds a disk and takes its lock. Had another task the lock first, it may
// have changed the disk, or the number is another disk's now: it is looked at again.
func (k diskKind) lockDisk(ctx context.Context, find func(context.Context) (disk, error)) (d disk, release func(), err error) {
	if d, err = find(ctx); err != nil {
		return d, nil, err
	}
	number := d.Number
	release, waited, err := k.locks.acquireTelling(ctx, "Stage", diskKey(number))
	if err != nil || !waited {
		return d, release, err
	}
	d, err = find(ctx)
	if err == nil && d.Number != number {
		err = refuse(host.KindBusy, "disk %d has become disk %d meanwhile", number, d.Number)
	}
	if err != nil {
		release()
	}
	return d, release, err
}

// prepareVolume makes the disk ready up to its one volume, which has a file system then.
func (k diskKind) prepareVolume(ctx context.Context, r StageRequest, d disk) (volume string, err error) {
	blank := d.known && d.Style == host.StyleRaw
	if blank && r.Access.ReadOnly {
		return "", blankReadOnly(d)
	}
	if !blank {
		if err := k.bringOnline(ctx, r, d); err != nil {
			return "", err
		}
		volume, err = k.dataVolume(ctx, d.Number)
		// Some csi-proxies fail for a disk without partitions, and do not say why.
		if err != nil && (d.known || !host.IsKind(err, host.KindInternal)) {
			return "", err
		}
	}
	if volume == "" {
		if volume, err = k.partition(ctx, r, d); err != nil {
			return "", err
		}
	}
	if err := k.makeFileSystem(ctx, r, d, volume); err != nil {
		return "", err
	}
	if r.Grow && !r.Access.ReadOnly {
		return volume, k.grow(ctx, d, volume)
	}
	return volume, nil
}

func blankReadOnly(d disk) error {
	return refuse(host.KindPrecondition, "disk %d has no file system, and the access is read-only", d.Number)
}

// bringOnline brings a disk with a partition table online and, unless nobody is to
// write, takes away the read-only flag: Windows raises both by itself. A disk whose
// signature another one has gets a new one from Windows when it comes online.
// Source: MSFT_Disk.OfflineReason, SAN policy.
func (k diskKind) bringOnline(ctx context.Context, r StageRequest, d disk) error {
	online := d.known && !d.Offline
	if !d.known {
		var err error
		if online, err = k.host.GetDiskState(ctx, d.Number); err != nil {
			return err
		}
	}
	if !online {
		if d.OfflineReason != "" {
			k.log.Info("a disk is brought online", "volume", r.VolumeID, "disk", d.Number, "wasOffline", d.OfflineReason)
		}
		if err := k.host.SetDiskState(ctx, d.Number, true); err != nil {
			return k.explainCollision(ctx, d, err)
		}
	}
	if r.Access.ReadOnly || d.known && !d.ReadOnly || !k.knows("SetDiskReadOnly") {
		return nil
	}
	err := k.host.SetDiskReadOnly(ctx, d.Number, false)
	if k.lacking("SetDiskReadOnly", err) {
		return nil // what that means shows when something is written; see mustBeWritable
	}
	return err
}

// dataVolume returns the one volume of a disk, "" when there is none.
func (k diskKind) dataVolume(ctx context.Context, number uint32) (string, error) {
	volumes, err := k.host.ListVolumesOnDisk(ctx, number, 0)
	// Some csi-proxies list a partition without a volume as an empty text.
	volumes = slices.DeleteFunc(volumes, func(id string) bool { return id == "" })
	switch {
	case err != nil || len(volumes) == 0:
		return "", err
	case len(volumes) > 1:
		return "", refuse(host.KindPrecondition, "disk %d has %d volumes, one is expected: %s",
			number, len(volumes), strings.Join(volumes, ", "))
	default:
		return volumes[0], nil
	}
}

// partition makes sure that the disk has a data partition, and waits for its
// volume, which Windows makes some time after the partition is there.
func (k diskKind) partition(ctx context.Context, r StageRequest, d disk) (volume string, err error) {
	if !r.Access.ReadOnly {
		if err := k.host.PartitionDisk(ctx, d.Number); err != nil {
			return "", err
		}
	}
	arrived, err := k.await(ctx, func(ctx context.Context) (bool, error) {
		var err error
		volume, err = k.dataVolume(ctx, d.Number)
		return volume != "", err
	})
	switch {
	case err != nil || arrived:
		return volume, err
	case r.Access.ReadOnly:
		return "", blankReadOnly(d)
	default:
		return "", refuse(host.KindPrecondition, "disk %d has a partition that Windows gives no volume", d.Number)
	}
}

// makeFileSystem formats the volume unless it is formatted. That a disk with
// somebody's data is neither partitioned nor formatted is the csi-proxy's to see to:
// ours looks at the bytes, others believe what Windows says. What was made is written
// back at once, so that a power cut after the mount finds it.
func (k diskKind) makeFileSystem(ctx context.Context, r StageRequest, d disk, volume string) error {
	formatted, err := k.host.IsVolumeFormatted(ctx, volume)
	if err != nil || formatted {
		return err
	}
	if r.Access.ReadOnly {
		return blankReadOnly(d)
	}
	if err := k.format(ctx, volume, r.Format); err != nil {
		return err
	}
	return k.host.WriteVolumeCache(ctx, volume)
}

func (k diskKind) format(ctx context.Context, volume string, options host.FormatOptions) error {
	plain := (options.FileSystem == "" || strings.EqualFold(options.FileSystem, "NTFS")) && options.ClusterBytes == 0 && options.Label == ""
	if plain {
		return k.host.FormatVolume(ctx, volume)
	}
	err := k.host.FormatVolumeWith(ctx, volume, options)
	if k.lacking("FormatVolumeWith", err) {
		return refuse(host.KindUnsupported, "the csi-proxy of this node makes NTFS with its defaults only, not %s with cluster size %d and label %q",
			options.FileSystem, options.ClusterBytes, host.PrintableText(options.Label))
	}
	return err
}

// grow makes the file system fill its disk.
func (k diskKind) grow(ctx context.Context, d disk, volume string) error {
	sizeBytes := d.SizeBytes
	if !d.known {
		size, err := k.host.GetDiskStats(ctx, d.Number)
		if err != nil {
			return err
		}
		sizeBytes = size.TotalBytes
	}
	stats, err := k.host.GetVolumeStats(ctx, volume)
	if err != nil || sizeBytes-stats.TotalBytes <= growGainMinBytes {
		return err
	}
	if err := k.host.ResizeVolume(ctx, volume, 0); err != nil {
		return err
	}
	return k.host.WriteVolumeCache(ctx, volume)
}

// mount mounts the volume at the staging path unless it is mounted there.
func (k diskKind) mount(ctx context.Context, r StageRequest, d disk, volume string, found place) error {
	mounted := found.kind == placeVolume && sameVolume(found.volumeID, volume)
	if !mounted {
		if found.kind == placeVolume || found.kind == placeLink {
			if err := k.removeDead(ctx, r, found); err != nil {
				return err
			}
		}
	}
	if !d.known {
		if err := k.takeHold(ctx, k.diskHold(volume, r.StagingPath)); err != nil {
			return err
		}
	}
	if !mounted {
		if err := k.mountAt(ctx, volume, found); err != nil {
			k.dropFailed(ctx, d, volume, r.StagingPath, err)
			return err
		}
	}
	if d.known || r.Access.ReadOnly {
		return nil
	}
	if err := k.mustBeWritable(ctx, r, d); err != nil {
		if !mounted {
			k.takeBack(ctx, volume, r.StagingPath)
			k.dropFailed(ctx, d, volume, r.StagingPath, err)
		}
		return err
	}
	return nil
}

// removeDead removes what is at the staging path and leads nowhere any more.
func (k diskKind) removeDead(ctx context.Context, r StageRequest, found place) error {
	k.log.Info("a dead link is replaced", "volume", r.VolumeID, "path", found.path, "ledTo", found.leadsTo)
	if err := k.dropGoneDisk(ctx, found); err != nil {
		return err
	}
	return k.host.Rmdir(ctx, found.path, false)
}

// mountAt mounts a volume at a path that is free or an empty folder.
func (k diskKind) mountAt(ctx context.Context, volume string, found place) error {
	if found.kind != placeFolder && !k.knows("GetLink") { // only our own csi-proxy is known to make the folder
		if err := k.host.Mkdir(ctx, found.path); err != nil {
			return err
		}
	}
	return k.host.MountVolume(ctx, volume, found.path)
}

// writeProbe is the name of a folder that is made in a volume, and removed at once.
const writeProbe = ".csi-windows-write-probe"

// mustBeWritable proves that the staged volume can be written, by writing: a
// csi-proxy that does not tell the read-only flag of a disk cannot clear it either.
func (k diskKind) mustBeWritable(ctx context.Context, r StageRequest, d disk) error {
	probe := strings.TrimRight(r.StagingPath, `\/`) + `\` + writeProbe
	err := k.host.Mkdir(ctx, probe)
	switch {
	case err == nil:
		return k.host.Rmdir(ctx, probe, false)
	case isPassing(err):
		return err
	default:
		return &host.Error{Op: "write to", Object: diskText(d.Number), Kind: host.KindPrecondition, Cause: err}
	}
}

func diskText(number uint32) string { return "disk " + strconv.FormatUint(uint64(number), 10) }

// takeBack unmounts what this stage has mounted. The stage has failed already.
func (k diskKind) takeBack(ctx context.Context, volume, path string) {
	if err := k.host.UnmountVolume(ctx, volume, path); err != nil {
		k.log.Warn("a volume that cannot be written stays mounted", "path", path, "error", err)
	}
}

func diskKey(number uint32) lockKey {
	return lockKey{lockDisk, strconv.FormatUint(uint64(number), 10)}
}

// explainCollision adds to the failure of bringing a disk online that its
// signature is the reason, and which disk it may be that has it.
func (k diskKind) explainCollision(ctx context.Context, d disk, err error) error {
	if d.OfflineReason != collision {
		return err
	}
	others, listErr := k.host.ListDisks(ctx)
	if listErr != nil {
		return err
	}
	var numbers []string
	for _, other := range others {
		if other.Number != d.Number && !other.Offline && other.Style == d.Style {
			numbers = append(numbers, strconv.FormatUint(uint64(other.Number), 10))
		}
	}
	return &host.Error{
		Op: "bring online", Object: diskText(d.Number) + ", whose signature an online disk has too (one of " + strings.Join(numbers, ", ") + ")",
		Kind: host.KindPrecondition, Cause: err,
	}
}

// collision is host.DiskInfo.OfflineReason of a disk whose signature another has.
// Source: MSFT_Disk.OfflineReason.
const collision = "Collision"
