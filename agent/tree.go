package agent

import (
	"context"
	"slices"

	"github.com/csi-windows/csi-windows/host"
)

// removalRoundsMax bounds how often a folder is emptied while somebody keeps
// putting things into it.
const removalRoundsMax = 3

// Rmdir implements host.Filesystem.
func (a *Agent) Rmdir(ctx context.Context, path string, force bool) error {
	return a.change(ctx, "Rmdir", path, func(ctx context.Context, s *spot) error {
		if s.node == nil {
			return nil
		}
		r, err := s.removal(ctx)
		if err != nil {
			return err
		}
		if force && s.node.info.Kind == FileFolder {
			return r.removeTree(ctx, s.node.file)
		}
		return r.removeOne(ctx, s.node.file, s.node.info)
	})
}

// RmdirContents implements host.Filesystem. A link or mount point is refused:
// its contents are those of another place. So is a whole working folder.
func (a *Agent) RmdirContents(ctx context.Context, path string) error {
	return a.change(ctx, "RmdirContents", path, func(ctx context.Context, s *spot) error {
		if err := s.mustExist(); err != nil {
			return err
		}
		if s.node.info.Kind != FileFolder {
			return refuse(host.KindPrecondition, "not a plain folder")
		}
		r, err := s.removal(ctx)
		if err != nil {
			return err
		}
		return r.empty(ctx, s.node.file)
	})
}

// removal deletes objects by handle. It never goes through a link or a mount
// point, and never removes a working folder.
type removal struct {
	agent *Agent
	roots []rootRef
}

// removal prepares the removal of the object at the spot.
func (s *spot) removal(ctx context.Context) (*removal, error) {
	text := s.text()
	for _, root := range s.agent.roots {
		if root.isUnder(text) {
			return nil, refuse(host.KindPrecondition, "a working folder is never removed")
		}
	}
	roots, err := s.agent.rootRefs(ctx)
	if err != nil {
		return nil, err
	}
	r := &removal{agent: s.agent, roots: roots}
	return r, r.spare(s.node.info)
}

// spare refuses an object that is a working folder under whatever name, or the
// folder in which one is still to be made.
func (r *removal) spare(info FileInfo) error {
	if slices.ContainsFunc(r.roots, func(ref rootRef) bool { return ref.identity == info.Identity }) {
		return refuse(host.KindPrecondition, "a working folder is never removed")
	}
	return nil
}

// removeOne removes one object and nothing below or behind it.
func (r *removal) removeOne(ctx context.Context, f File, info FileInfo) error {
	if info.Kind == FileMountPoint {
		// Windows does not write the cache back when a mount point goes.
		if err := r.agent.flushIfThere(ctx, info.Target); err != nil {
			return err
		}
	}
	return f.Remove(ctx)
}

// removeTree empties a folder and removes it.
func (r *removal) removeTree(ctx context.Context, folder File) error {
	for round := 1; ; round++ {
		if err := r.empty(ctx, folder); err != nil {
			return err
		}
		err := folder.Remove(ctx)
		if !host.IsKind(err, host.KindPrecondition) || round == removalRoundsMax {
			return err
		}
	}
}

// empty removes everything in a folder.
func (r *removal) empty(ctx context.Context, folder File) error {
	names, err := folder.Names(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.removeChild(ctx, folder, name); err != nil {
			return err
		}
	}
	return nil
}

func (r *removal) removeChild(ctx context.Context, folder File, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	child, err := folder.Open(ctx, name)
	if host.IsKind(err, host.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeFile(child)
	info, err := child.Info(ctx)
	if err != nil {
		return err
	}
	if err := r.spare(info); err != nil {
		return err
	}
	if info.Kind == FileFolder {
		return r.removeTree(ctx, child)
	}
	return r.removeOne(ctx, child, info)
}

// flushIfThere writes back what is cached for a volume. One that is gone has
// nothing left to write.
func (a *Agent) flushIfThere(ctx context.Context, volumeID string) error {
	err := a.os.FlushVolume(ctx, canonicalVolumeID(volumeID))
	if host.IsKind(err, host.KindNotFound) {
		return nil
	}
	return err
}
