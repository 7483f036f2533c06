package conformance

import (
	"context"
	"fmt"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// absentDisk is a disk number that no node has.
const absentDisk = uint32(2_000_000_011)

// absentVolume is the id of a volume that no node has, and absentGUID what is in it.
const (
	absentGUID   = "5f0c1e5a-0000-4c5f-8a11-000000000000"
	absentVolume = `\\?\Volume{` + absentGUID + `}\`
)

// volumePrefix is what every volume id begins with.
const volumePrefix = `\\?\Volume`

// initiatorService is the one service the suite starts and stops.
const initiatorService = "MSiSCSI"

// guard is the host under test for the cases: it lets a change pass only when it
// is of something the case has made, or of nothing that exists. Questions pass.
type guard struct {
	host.Host
	scene *scene
}

// refused is the guard's own failure. It is no host.Error, so no case takes it for
// one that was wanted.
func refused(format string, args ...any) error {
	return fmt.Errorf("conformance: refused to touch "+format, args...)
}

// mayChangeDisk looks at the disk again, just before a change.
func (g *guard) mayChangeDisk(ctx context.Context, number uint32) (*scratchDisk, error) {
	if number == absentDisk {
		return nil, nil
	}
	for _, d := range g.scene.disks {
		if d.Number() != number {
			continue
		}
		if _, err := d.check(ctx); err != nil {
			return nil, refused("disk %d: %w", number, err)
		}
		return d, nil
	}
	return nil, refused("disk %d: it was not made here", number)
}

// mayChangeVolume passes what names nothing, and volumes of a disk of the case. A
// host that is wrong may take a path for a volume, so none that exists passes.
func (g *guard) mayChangeVolume(ctx context.Context, id string) error {
	if strings.Contains(id, absentGUID) || strings.Contains(id, g.scene.run) || id == volumePrefix || id == "\x00" {
		return nil
	}
	for _, d := range g.scene.disks {
		holds, err := d.Holds(ctx, id)
		if err != nil || !holds {
			continue
		}
		if _, err := d.check(ctx); err != nil {
			return refused("volume %s: %w", id, err)
		}
		return nil
	}
	return refused("volume %s: it lies on no disk that was made here", id)
}

// mayChangePath passes paths with the name of the run in them, and none at all.
func (g *guard) mayChangePath(path string) error {
	if path != "" && !strings.Contains(path, g.scene.run) {
		return refused("%s", path)
	}
	return nil
}

// PartitionDisk implements host.Disk.
func (g *guard) PartitionDisk(ctx context.Context, diskNumber uint32) error {
	d, err := g.mayChangeDisk(ctx, diskNumber)
	if err != nil {
		return err
	}
	err = g.Host.PartitionDisk(ctx, diskNumber)
	if d != nil {
		if lookErr := d.remember(ctx); err == nil {
			err = lookErr
		}
	}
	return err
}

// SetDiskState implements host.Disk.
func (g *guard) SetDiskState(ctx context.Context, diskNumber uint32, online bool) error {
	if _, err := g.mayChangeDisk(ctx, diskNumber); err != nil {
		return err
	}
	return g.Host.SetDiskState(ctx, diskNumber, online)
}

// SetDiskReadOnly implements host.Disk.
func (g *guard) SetDiskReadOnly(ctx context.Context, diskNumber uint32, readOnly bool) error {
	if _, err := g.mayChangeDisk(ctx, diskNumber); err != nil {
		return err
	}
	return g.Host.SetDiskReadOnly(ctx, diskNumber, readOnly)
}

// MountVolume implements host.Volume.
func (g *guard) MountVolume(ctx context.Context, volumeID, targetPath string) error {
	if err := g.mayChangeVolume(ctx, volumeID); err != nil {
		return err
	}
	if err := g.mayChangePath(targetPath); err != nil {
		return err
	}
	return g.Host.MountVolume(ctx, volumeID, targetPath)
}

// UnmountVolume implements host.Volume. The path alone decides: a volume may have
// gone with its disk.
func (g *guard) UnmountVolume(ctx context.Context, volumeID, targetPath string) error {
	if err := g.mayChangePath(targetPath); err != nil {
		return err
	}
	return g.Host.UnmountVolume(ctx, volumeID, targetPath)
}

// FormatVolume implements host.Volume.
func (g *guard) FormatVolume(ctx context.Context, volumeID string) error {
	if err := g.mayChangeVolume(ctx, volumeID); err != nil {
		return err
	}
	return g.Host.FormatVolume(ctx, volumeID)
}

// FormatVolumeWith implements host.Volume.
func (g *guard) FormatVolumeWith(ctx context.Context, volumeID string, options host.FormatOptions) error {
	if err := g.mayChangeVolume(ctx, volumeID); err != nil {
		return err
	}
	return g.Host.FormatVolumeWith(ctx, volumeID, options)
}

// ResizeVolume implements host.Volume.
func (g *guard) ResizeVolume(ctx context.Context, volumeID string, sizeBytes int64) error {
	if err := g.mayChangeVolume(ctx, volumeID); err != nil {
		return err
	}
	return g.Host.ResizeVolume(ctx, volumeID, sizeBytes)
}

// Mkdir implements host.Filesystem.
func (g *guard) Mkdir(ctx context.Context, path string) error {
	if err := g.mayChangePath(path); err != nil {
		return err
	}
	return g.Host.Mkdir(ctx, path)
}

// mayEmpty passes paths with the name of the run in them. A host that is wrong may
// take no path at all for the folder it was started in.
func (g *guard) mayEmpty(path string) error {
	if path == "" {
		return refused("what no path may lead to")
	}
	return g.mayChangePath(path)
}

// Rmdir implements host.Filesystem.
func (g *guard) Rmdir(ctx context.Context, path string, force bool) error {
	if err := g.mayEmpty(path); err != nil {
		return err
	}
	return g.Host.Rmdir(ctx, path, force)
}

// RmdirContents implements host.Filesystem.
func (g *guard) RmdirContents(ctx context.Context, path string) error {
	if err := g.mayEmpty(path); err != nil {
		return err
	}
	return g.Host.RmdirContents(ctx, path)
}

// CreateSymlink implements host.Filesystem.
func (g *guard) CreateSymlink(ctx context.Context, sourcePath, targetPath string) error {
	if err := g.mayChangePath(targetPath); err != nil {
		return err
	}
	return g.Host.CreateSymlink(ctx, sourcePath, targetPath)
}
