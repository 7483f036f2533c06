package mounter

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// mode is what a path is, without following it.
type mode int

const (
	modeMissing mode = iota
	modePlain        // a file or folder
	modeLink
	modeMountPoint
)

// kind is a mode with what is known of a mount point.
type kind struct {
	mode     mode
	volumeID string
	sure     bool // the host tells mount points from links
}

// kindOf looks at a path.
func (m *Mounter) kindOf(ctx context.Context, path string) (kind, error) {
	exists, err := m.host.PathExists(ctx, path)
	// Of a link to a share that is not mapped or does not answer, the host cannot
	// tell whether anything is behind it; the link is there.
	if err == nil && !exists && !m.isLink(ctx, path) {
		return kind{}, nil
	}
	link, linkErr := m.host.GetLink(ctx, path)
	switch {
	case host.IsKind(linkErr, host.KindUnsupported):
		if err != nil {
			return kind{}, err
		}
		return m.guessKind(ctx, path)
	case host.IsKind(linkErr, host.KindNotFound):
		return kind{}, nil
	case linkErr != nil:
		return kind{}, linkErr
	case link.Kind == host.NotALink:
		return kind{mode: modePlain, sure: true}, nil
	case link.Kind == host.LinkMountPoint:
		return kind{mode: modeMountPoint, volumeID: link.Target, sure: true}, nil
	default:
		return kind{mode: modeLink, sure: true}, nil
	}
}

// isLink is IsSymlink without failures.
func (m *Mounter) isLink(ctx context.Context, path string) bool {
	is, err := m.host.IsSymlink(ctx, path)
	return err == nil && is
}

// guessKind does with the primitives of any csi-proxy. Depending on its version,
// IsSymlink is true or false for mount points, and a volume is found through a
// link to its mount point as well.
func (m *Mounter) guessKind(ctx context.Context, path string) (kind, error) {
	isLink, err := m.host.IsSymlink(ctx, path)
	if err != nil {
		return kind{}, err
	}
	if id, err := m.host.GetVolumeIDFromTargetPath(ctx, path); err == nil && id != "" {
		return kind{mode: modeMountPoint, volumeID: id}, nil
	}
	if isLink {
		return kind{mode: modeLink}, nil
	}
	return kind{mode: modePlain}, nil
}

// leadsToFolder reports whether what is at the path is a folder, or stands for one
// that can be reached. Making the folder tells: the host leaves a folder, also one
// behind a link or mount point, as it is, and refuses everything else. Should the
// path vanish meanwhile, an empty folder is there, which is what callers make
// next.
func (m *Mounter) leadsToFolder(ctx context.Context, path string) (bool, error) {
	err := m.host.Mkdir(ctx, path)
	if err == nil {
		return true, nil
	}
	switch host.KindOf(err) {
	case host.KindTimeout, host.KindUnavailable, host.KindBusy, host.KindInvalid, host.KindUnsupported:
		return false, err // says nothing of what is at the path
	default:
		return false, nil
	}
}

// errNotFolder is the cause when a file is where a folder should be.
var errNotFolder = errors.New("not a folder")

// Why EvalHostSymlinks gives up.
var (
	errRelativeLink = errors.New("the link leads to a relative path")
	errManyLinks    = errors.New("more than 63 links")
)

func notFolder(op, path string) error { return &fs.PathError{Op: op, Path: path, Err: errNotFolder} }
func missing(op, path string) error   { return &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist} }

// corrupted is an error that mount.IsCorruptedMnt recognises. It takes certain
// numbers of the operating system only, which say little here.
func corrupted(op, path string) error {
	return &fs.PathError{Op: op + ": what it leads to is gone:", Path: path, Err: errnoCorrupted}
}

// windowsPath is a path as mount-utils normalises it on Windows, except that shares
// stay shares.
func windowsPath(path string) string {
	path = strings.ReplaceAll(path, "/", `\`)
	if strings.HasPrefix(path, `\`) && !strings.HasPrefix(path, `\\`) {
		return "C:" + path
	}
	return path
}

// parentOf is the folder above a path, empty for a drive.
func parentOf(path string) string {
	path = strings.TrimRight(path, `\`)
	at := strings.LastIndexByte(path, '\\')
	if at <= len(`C:`) {
		return ""
	}
	return path[:at]
}

// keyOf is equal for spellings of a path that differ in case or a final separator.
func keyOf(path string) string { return strings.ToUpper(strings.TrimRight(windowsPath(path), `\`)) }

func isVolumeID(source string) bool {
	return len(source) > len(`\\?\Volume{`) && strings.EqualFold(source[:len(`\\?\Volume{`)], `\\?\Volume{`)
}

func sameVolume(a, b string) bool {
	return strings.EqualFold(strings.TrimRight(a, `\`), strings.TrimRight(b, `\`))
}

// isShare reports whether the source is on a file server.
func isShare(source string) bool {
	path := strings.ReplaceAll(source, "/", `\`)
	return strings.HasPrefix(path, `\\`) && !strings.HasPrefix(path, `\\?\`) && !strings.HasPrefix(path, `\\.\`)
}

// isLocal reports whether the source is an absolute path on a drive.
func isLocal(source string) bool {
	path := windowsPath(source)
	return len(path) >= len(`C:\`) && path[1] == ':' && path[2] == '\\'
}
