package node

import (
	"context"
	"fmt"

	"github.com/csi-windows/csi-windows/host"
)

// Health implements Node.
func (t *Tasks) Health(ctx context.Context, r HealthRequest) (health Health, err error) {
	k := task{op: "Health", volumeID: r.VolumeID, problem: r.Validate(), reads: true}
	for _, path := range []string{r.StagingPath, r.TargetPath} {
		if path != "" {
			k.paths = append(k.paths, path)
		}
	}
	err = t.run(ctx, k, func(ctx context.Context) error {
		var conditions []HealthCondition
		for i, path := range k.paths {
			found, err := t.look(ctx, path)
			if err != nil {
				return err
			}
			conditions, err = t.pathHealth(ctx, found)
			if err != nil {
				return err
			}
			if len(conditions) > 0 && i == 0 {
				break // what is published of it cannot be better
			}
		}
		health.Conditions = conditions
		return nil
	})
	return health, err
}

// pathHealth says what is wrong at a path and with what it leads to.
func (t *Tasks) pathHealth(ctx context.Context, found place) ([]HealthCondition, error) {
	switch {
	case found.kind == placeMissing:
		return inaccessible("PathMissing", "%s does not exist", host.PrintableText(found.path)), nil
	case found.kind == placeFolder:
		return inaccessible("NotMounted", "%s is a plain folder", host.PrintableText(found.path)), nil
	case found.kind == placeVolume:
		return t.volumeHealth(ctx, found)
	case found.kind == placeLink && (found.dead || found.leadsTo != ""):
		return inaccessible("LinkDangling", "the link %s leads to no volume and no share", host.PrintableText(found.path)), nil
	default:
		return t.shareHealth(ctx, found)
	}
}

func inaccessible(reason, format string, args ...any) []HealthCondition {
	return []HealthCondition{{Status: HealthInaccessible, Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// volumeHealth asks for the volume, its file system and its disk, as far as the
// host can say.
func (t *Tasks) volumeHealth(ctx context.Context, found place) ([]HealthCondition, error) {
	volume, err := diskKind{t}.mountedVolume(ctx, found.volumeID)
	if err != nil && t.isGone(ctx, found.volumeID, err) {
		return inaccessible("VolumeMissing", "volume %s, mounted at %s, is not on the node: its disk is offline or detached",
			found.volumeID, host.PrintableText(found.path)), nil
	}
	if err != nil {
		return nil, err
	}
	if err := t.reachVolume(ctx, found); host.IsKind(err, host.KindPrecondition) {
		return inaccessible("FileSystemMissing", "volume %s has no file system that Windows knows", found.volumeID), nil
	} else if err != nil {
		return nil, err
	}
	var conditions []HealthCondition
	if volume.Health == host.HealthWarning || volume.Health == host.HealthBad {
		conditions = append(conditions, HealthCondition{
			Status: HealthDegraded, Reason: "FileSystemUnhealthy",
			Message: fmt.Sprintf("the file system of volume %s is %s: %s", found.volumeID, volume.Health, volume.HealthDetail),
		})
	}
	isReadOnly, err := t.isReadOnly(ctx, volume.DiskNumber)
	if isReadOnly {
		conditions = append(conditions, HealthCondition{
			Status: HealthDegraded, Reason: "DiskReadOnly", Message: fmt.Sprintf("disk %d is read-only", volume.DiskNumber),
		})
	}
	return conditions, err
}

// isReadOnly reports whether the read-only flag of a disk is known to be up.
func (t *Tasks) isReadOnly(ctx context.Context, number uint32) (bool, error) {
	if !t.knows("ListDisks") {
		return false, nil
	}
	disks, err := t.host.ListDisks(ctx)
	if t.lacking("ListDisks", err) {
		return false, nil
	}
	for _, d := range disks {
		if d.Number == number {
			return d.ReadOnly, err
		}
	}
	return false, err
}
