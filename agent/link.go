package agent

import (
	"context"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// pathLocks are the locks of a change at several paths.
func pathLocks(paths ...localPath) []want {
	wants := make([]want, 0, len(paths))
	for _, p := range paths {
		w := exclusive(lockPath, 0, p.key())
		if len(wants) == 0 || wants[0] != w {
			wants = append(wants, w)
		}
	}
	return wants
}

// linkText is the path to store in a link that leads to the spot: the one asked
// for, unless the operating system resolves it to another (short names, links
// on the way), which could be changed behind the link's back.
func (s *spot) linkText(ctx context.Context) (string, error) {
	asked := s.text()
	path, err := s.node.file.Path(ctx)
	if err != nil {
		return "", err
	}
	// Below a mount point the system may know only a volume path, which is none.
	known, parseErr := parsePath("source", path, s.start.drive)
	if parseErr == nil && known.key() != asked.key() {
		return known.String(), nil
	}
	return asked.String(), nil
}

// isFolderLike reports whether a link to the spot has to be one to a folder.
func (s *spot) isFolderLike() bool {
	switch s.node.info.Kind {
	case FileFolder, FileJunction, FileMountPoint:
		return true
	default:
		return s.node.info.FolderLink
	}
}

// makeLink makes a symbolic link at the spot. The same link there already is
// success, anything else is KindExists.
func (s *spot) makeLink(ctx context.Context, leadsTo string, folder bool) error {
	if s.node != nil {
		return s.mustLeadTo(leadsTo)
	}
	if err := s.mustHaveParent(); err != nil {
		return err
	}
	err := s.last().file.Symlink(ctx, s.todo[0], leadsTo, folder)
	if !host.IsKind(err, host.KindExists) {
		return err
	}
	// Somebody outside this agent was first.
	s.missing = false
	if err := s.descend(ctx, s.last().file); err != nil {
		return err
	}
	if s.missing {
		return refuse(host.KindBusy, "the path keeps changing")
	}
	s.node = s.last()
	return s.mustLeadTo(leadsTo)
}

// mustHaveParent fails unless only the last component of the path is missing.
func (s *spot) mustHaveParent() error {
	switch {
	case s.blocked:
		return refuse(host.KindExists, "a file is in the way: %s", host.PrintableText(s.last().name))
	case len(s.todo) != 1 || s.dangling || s.last() == nil:
		return refuse(host.KindNotFound, "the folder the link is to be made in does not exist")
	default:
		return nil
	}
}

// mustLeadTo succeeds when the object at the spot is a symbolic link to the path.
func (s *spot) mustLeadTo(path string) error {
	info := s.node.info
	if info.Kind != FileSymlink {
		return refuse(host.KindExists, "something that is no symbolic link is there")
	}
	if !sameName(strings.TrimRight(info.Target, `\`), path) {
		return refuse(host.KindExists, "a link to another place is there: %s", host.PrintableText(info.Target))
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
