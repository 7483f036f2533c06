package agent

import (
	"context"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// follow carries out a question for what is behind a path, given in the field of
// that name: the path itself is confined, the links it leads through may go
// anywhere.
func follow[T any](ctx context.Context, a *Agent, op, field, path string, ask func(context.Context, *walk) (T, error)) (T, error) {
	var none T
	c := a.query(op, host.PrintableText(path))
	p, err := parsePath(field, path, a.systemDrive)
	if err != nil {
		return none, c.refused(err)
	}
	wants := []want{shared(lockPath, 0, p.key())}
	return run(ctx, c, wants, func(ctx context.Context) (T, error) {
		if err := a.mustStartInside(ctx, p); err != nil {
			return none, err
		}
		w, err := a.newWalk(ctx, p, walkMode{followLast: true, anyVolume: true})
		if err != nil {
			return none, err
		}
		defer w.Close()
		if w.remote == "" && w.node == nil {
			return none, refuse(host.KindNotFound, "no such file or folder")
		}
		return ask(ctx, w)
	})
}

// findVolume carries out a question for the volume behind a path.
func (a *Agent) findVolume(ctx context.Context, op, targetPath string, ask func(context.Context, *walk) (string, error)) (string, error) {
	return follow(ctx, a, op, "targetPath", targetPath, func(ctx context.Context, w *walk) (string, error) {
		if w.remote != "" {
			return "", refuse(host.KindPrecondition, "the path leads to a file server: %s", host.PrintableText(w.remote))
		}
		return ask(ctx, w)
	})
}

// mustStartInside refuses a path that is not below a working folder, whatever
// lies behind its links.
func (a *Agent) mustStartInside(ctx context.Context, p localPath) error {
	for _, root := range a.roots {
		if p.isUnder(root) {
			return nil
		}
	}
	s, err := a.reach(ctx, p)
	if err != nil {
		return err
	}
	s.Close()
	return nil
}

// GetVolumeIDFromTargetPath implements host.Volume.
func (a *Agent) GetVolumeIDFromTargetPath(ctx context.Context, targetPath string) (string, error) {
	return a.findVolume(ctx, "GetVolumeIDFromTargetPath", targetPath, func(ctx context.Context, w *walk) (string, error) {
		switch {
		case w.node.info.Kind == FileMountPoint:
			return canonicalVolumeID(w.node.info.Target), nil
		case w.node.volume != "":
			return w.node.volume, nil // a link that names the volume itself
		case len(w.steps) == 1:
			return a.driveVolume(ctx, w.start.drive)
		default:
			return "", refuse(host.KindPrecondition, "no volume is mounted there")
		}
	})
}

// GetClosestVolumeIDFromTargetPath implements host.Volume.
func (a *Agent) GetClosestVolumeIDFromTargetPath(ctx context.Context, targetPath string) (string, error) {
	return a.findVolume(ctx, "GetClosestVolumeIDFromTargetPath", targetPath, func(ctx context.Context, w *walk) (string, error) {
		if w.node.info.Kind == FileMountPoint {
			return canonicalVolumeID(w.node.info.Target), nil
		}
		for i := len(w.steps) - 1; i >= 0; i-- {
			if w.steps[i].volume != "" {
				return w.steps[i].volume, nil
			}
		}
		return a.driveVolume(ctx, w.start.drive)
	})
}

// driveVolume returns the volume with the drive letter.
func (a *Agent) driveVolume(ctx context.Context, drive byte) (string, error) {
	volumes, err := a.os.Volumes(ctx)
	if err != nil {
		return "", err
	}
	root := localPath{drive: drive}.String()
	for _, volume := range volumes {
		paths, err := a.os.MountPaths(ctx, volume.ID)
		if err != nil && !host.IsKind(err, host.KindNotFound) {
			return "", err
		}
		for _, path := range paths {
			if strings.EqualFold(strings.TrimRight(path, `\`)+`\`, root) {
				return canonicalVolumeID(volume.ID), nil
			}
		}
	}
	return "", refuse(host.KindNotFound, "no volume has the drive letter %c:", drive)
}
