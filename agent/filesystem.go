package agent

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// look carries out a question about the object at a path.
func look[T any](ctx context.Context, a *Agent, op, text string, ask func(context.Context, *spot) (T, error)) (T, error) {
	c := a.query(op, host.PrintableText(text))
	p, err := parsePath("path", text, a.systemDrive)
	if err != nil {
		var none T
		return none, c.refused(err)
	}
	wants := []want{shared(lockPath, 0, p.key())}
	return run(ctx, c, wants, func(ctx context.Context) (T, error) {
		s, err := a.reach(ctx, p)
		if err != nil {
			var none T
			return none, err
		}
		defer s.Close()
		return ask(ctx, s)
	})
}

// change carries out a change at a path.
func (a *Agent) change(ctx context.Context, op, text string, do func(context.Context, *spot) error) error {
	c := a.mutation(ctx, op, host.PrintableText(text))
	p, err := parsePath("path", text, a.systemDrive)
	if err != nil {
		return c.refused(err)
	}
	wants := []want{exclusive(lockPath, 0, p.key())}
	return exec(ctx, c, wants, func(ctx context.Context) error {
		return retryBusy(ctx, func() error {
			spots, err := c.settle(ctx, p)
			if err != nil {
				return err
			}
			defer spots[0].Close()
			return do(ctx, spots[0])
		})
	})
}

// PathExists implements host.Filesystem. A path through a link to a file server
// is asked of the server, if the node has a mapping of the share.
func (a *Agent) PathExists(ctx context.Context, path string) (bool, error) {
	return look(ctx, a, "PathExists", path, func(ctx context.Context, s *spot) (bool, error) {
		if s.remote != "" {
			return a.remoteExists(ctx, s.remote)
		}
		return s.node != nil, nil
	})
}

// IsSymlink implements host.Filesystem.
func (a *Agent) IsSymlink(ctx context.Context, path string) (bool, error) {
	return look(ctx, a, "IsSymlink", path, func(_ context.Context, s *spot) (bool, error) {
		link, err := s.link()
		return link.Kind == host.LinkSymlink || link.Kind == host.LinkJunction || link.Kind == host.LinkMountPoint, err
	})
}

// GetLink implements host.Filesystem.
func (a *Agent) GetLink(ctx context.Context, path string) (host.LinkInfo, error) {
	return look(ctx, a, "GetLink", path, func(_ context.Context, s *spot) (host.LinkInfo, error) {
		return s.link()
	})
}

// link says what the object at the spot says of itself.
func (s *spot) link() (host.LinkInfo, error) {
	if err := s.mustExist(); err != nil {
		return host.LinkInfo{}, err
	}
	info := s.node.info
	switch info.Kind {
	case FileSymlink:
		return host.LinkInfo{Kind: host.LinkSymlink, Target: info.Target}, nil
	case FileJunction:
		return host.LinkInfo{Kind: host.LinkJunction, Target: info.Target}, nil
	case FileMountPoint:
		return host.LinkInfo{Kind: host.LinkMountPoint, Target: canonicalVolumeID(info.Target)}, nil
	case FileReparse:
		return host.LinkInfo{Kind: host.LinkOther, Target: info.Target}, nil
	default:
		return host.LinkInfo{}, nil
	}
}

// mustExist fails unless an object is at the spot.
func (s *spot) mustExist() error {
	if err := s.refuseRemote(); err != nil {
		return err
	}
	if s.node == nil {
		return refuse(host.KindNotFound, "no such file or folder")
	}
	return nil
}

// Mkdir implements host.Filesystem.
func (a *Agent) Mkdir(ctx context.Context, path string) error {
	return a.change(ctx, "Mkdir", path, func(ctx context.Context, s *spot) error {
		if s.node != nil {
			return s.mustBeFolder(ctx)
		}
		return s.makeFolders(ctx)
	})
}

// mustBeFolder succeeds when the object at the spot is a folder, or a live link
// or mount point that stands for one.
func (s *spot) mustBeFolder(ctx context.Context) error {
	switch s.node.info.Kind {
	case FileFolder:
		return nil
	case FileRegular:
		return refuse(host.KindExists, "a file is in the way")
	case FileReparse:
		return refuse(host.KindExists, "a reparse point of a foreign kind is in the way")
	}
	live, err := s.leadsToFolder(ctx)
	if err == nil && !live {
		err = refuse(host.KindExists, "a link that leads to no folder is in the way: %s", host.PrintableText(s.node.info.Target))
	}
	return err
}

// leadsToFolder follows the link or mount point at the spot, wherever it goes.
func (s *spot) leadsToFolder(ctx context.Context) (bool, error) {
	w, err := s.agent.newWalk(ctx, s.text(), walkMode{followLast: true, anyVolume: true})
	if err != nil {
		return false, err
	}
	defer w.Close()
	switch {
	case w.remote != "":
		return s.agent.remoteExists(ctx, w.remote)
	case w.node == nil:
		return false, nil
	case w.node.info.Kind == FileMountPoint:
		err := w.enterVolume(ctx, w.node.info.Target)
		return err == nil && !w.missing, err
	default:
		return w.node.info.Kind == FileFolder, nil
	}
}

// makeFolders makes what is missing of the path, each folder inside the open
// one before it.
func (s *spot) makeFolders(ctx context.Context) error {
	switch {
	case s.blocked:
		return refuse(host.KindExists, "a file is in the way: %s", host.PrintableText(s.last().name))
	case s.dangling:
		return refuse(host.KindPrecondition, "a link on the way leads nowhere")
	case s.last() == nil:
		return refuse(host.KindNotFound, "there is no drive %c:", s.start.drive)
	}
	for len(s.todo) > 0 {
		if err := s.makeFolder(ctx); err != nil {
			return err
		}
	}
	s.missing, s.node = false, s.last()
	return nil
}

func (s *spot) makeFolder(ctx context.Context) error {
	name := s.todo[0]
	folder, err := s.last().file.Mkdir(ctx, name)
	if host.IsKind(err, host.KindExists) {
		// Somebody else was first; a folder of theirs is as good as ours.
		if folder, err = s.last().file.Open(ctx, name); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	s.todo = s.todo[1:]
	if err := s.enter(ctx, step{name: name, file: folder}); err != nil {
		return err
	}
	if s.last().info.Kind != FileFolder {
		return refuse(host.KindPrecondition, "%s was replaced while its folder was made", host.PrintableText(name))
	}
	return nil
}

// remoteExists asks a file server whether a path is there.
func (a *Agent) remoteExists(ctx context.Context, path string) (bool, error) {
	remote, err := a.mappedRemote(ctx, path)
	if err != nil {
		return false, err
	}
	err = a.probe(ctx, remote)
	if host.IsKind(err, host.KindNotFound) {
		return false, nil
	}
	return err == nil, err
}

// CreateSymlink implements host.Filesystem. Both paths are checked and held as
// folders of the node, so neither can be swapped for another place meanwhile.
func (a *Agent) CreateSymlink(ctx context.Context, sourcePath, targetPath string) error {
	c := a.mutation(ctx, "CreateSymlink", host.PrintableText(targetPath))
	source, sourceErr := parsePath("sourcePath", sourcePath, a.systemDrive)
	target, targetErr := parsePath("targetPath", targetPath, a.systemDrive)
	if err := firstError(sourceErr, targetErr); err != nil {
		return c.refused(err)
	}
	return exec(ctx, c, pathLocks(source, target), func(ctx context.Context) error {
		spots, err := c.settle(ctx, source, target)
		if err != nil {
			return err
		}
		defer closeAll(spots)
		if err := spots[0].mustExist(); err != nil {
			return err
		}
		leadsTo, err := spots[0].linkText(ctx)
		if err != nil {
			return err
		}
		return spots[1].makeLink(ctx, leadsTo, spots[0].isFolderLike())
	})
}
