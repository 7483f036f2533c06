package agent

import (
	"context"
	"slices"

	"github.com/csi-windows/csi-windows/host"
)

// mountChange carries out a change of the mount of a volume at a path.
func (a *Agent) mountChange(ctx context.Context, op, volumeID, targetPath string, do func(ctx context.Context, id string, s *spot) error) error {
	c := a.mutation(ctx, op, host.PrintableText(volumeID)+" at "+host.PrintableText(targetPath))
	id, idErr := parseVolumeID("volumeID", volumeID)
	target, targetErr := parsePath("targetPath", targetPath, a.systemDrive)
	if err := firstError(idErr, targetErr); err != nil {
		return c.refused(err)
	}
	wants := []want{exclusive(lockVolume, 0, id), exclusive(lockPath, 0, target.key())}
	return exec(ctx, c, wants, func(ctx context.Context) error {
		spots, err := c.settle(ctx, target)
		if err != nil {
			return err
		}
		defer spots[0].Close()
		return do(ctx, id, spots[0])
	})
}

// MountVolume implements host.Volume.
func (a *Agent) MountVolume(ctx context.Context, volumeID, targetPath string) error {
	return a.mountChange(ctx, "MountVolume", volumeID, targetPath, func(ctx context.Context, id string, s *spot) error {
		if _, err := a.os.VolumeDisk(ctx, id); err != nil { // is it there?
			return err
		}
		if s.isMountOf(id) {
			return nil
		}
		if err := a.refuseNodeVolume(ctx, id); err != nil {
			return err
		}
		if err := s.makeMountFolder(ctx); err != nil {
			return err
		}
		return a.os.Mount(ctx, id, s.node.file)
	})
}

// isMountOf reports whether the object at the spot is a mount point of the volume.
func (s *spot) isMountOf(id string) bool {
	return s.node != nil && s.node.info.Kind == FileMountPoint && canonicalVolumeID(s.node.info.Target) == id
}

// makeMountFolder makes sure that an empty, plain folder is at the spot.
func (s *spot) makeMountFolder(ctx context.Context) error {
	if s.node == nil {
		return s.makeFolders(ctx)
	}
	if s.isRoot {
		return refuse(host.KindPrecondition, "nothing is mounted on a working folder")
	}
	if s.node.info.Kind == FileMountPoint {
		if err := s.clearStaleMount(ctx); err != nil {
			return err
		}
	}
	if s.node.info.Kind != FileFolder {
		return refuse(host.KindPrecondition, "something that is no plain folder is there")
	}
	names, err := s.node.file.Names(ctx)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return refuse(host.KindPrecondition, "the folder is not empty: it holds %s", host.PrintableText(names[0]))
	}
	return nil
}

// clearStaleMount takes away a mount point whose volume is not on the node any
// more, as a power cut or a disk that was pulled leaves behind: nothing can be
// reached through it. A volume that is there stays mounted.
func (s *spot) clearStaleMount(ctx context.Context) error {
	_, err := s.agent.os.VolumeDisk(ctx, canonicalVolumeID(s.node.info.Target))
	if err == nil {
		return refuse(host.KindPrecondition, "another volume is mounted there: %s", host.PrintableText(s.node.info.Target))
	}
	if !host.IsKind(err, host.KindNotFound) {
		return err
	}
	if err := s.agent.os.Unmount(ctx, s.node.file); err != nil {
		return err
	}
	s.node.info, err = s.node.file.Info(ctx)
	return err
}

// refuseNodeVolume refuses the volumes that hold the operating system or a
// working folder: mounted below one, they would be a way around it.
func (a *Agent) refuseNodeVolume(ctx context.Context, id string) error {
	paths, err := a.os.MountPaths(ctx, id)
	if err != nil {
		return err
	}
	systemRoot := localPath{drive: a.systemDrive}
	for _, text := range paths {
		mounted, err := parsePath("mount path", text, a.systemDrive)
		if err != nil {
			continue // a path no request can name holds no working folder either
		}
		holdsRoot := slices.ContainsFunc(a.roots, func(root localPath) bool { return root.isUnder(mounted) })
		if holdsRoot || systemRoot.isUnder(mounted) {
			return refuse(host.KindPrecondition, "the volume belongs to the node itself: it is %s", mounted)
		}
	}
	return nil
}

// UnmountVolume implements host.Volume. What is cached is written back before
// the mount point goes, which Windows does not do by itself.
func (a *Agent) UnmountVolume(ctx context.Context, volumeID, targetPath string) error {
	return a.mountChange(ctx, "UnmountVolume", volumeID, targetPath, func(ctx context.Context, id string, s *spot) error {
		if s.node == nil || s.node.info.Kind == FileFolder {
			return nil
		}
		if s.node.info.Kind != FileMountPoint {
			return refuse(host.KindPrecondition, "something that is no mount point is there")
		}
		if !s.isMountOf(id) {
			return refuse(host.KindPrecondition, "another volume is mounted there: %s", host.PrintableText(s.node.info.Target))
		}
		if s.isRoot {
			return refuse(host.KindPrecondition, "a working folder is never unmounted")
		}
		if err := a.flushIfThere(ctx, id); err != nil {
			return err
		}
		return a.os.Unmount(ctx, s.node.file)
	})
}
