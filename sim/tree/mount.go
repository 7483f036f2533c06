package tree

import (
	"context"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// SetVolumeMountPoint is win32.API.SetVolumeMountPoint, for folders and for
// drive roots. Failures: ErrInvalidName without final backslash,
// ErrInvalidParameter for a volume name that is none or a volume that has a
// letter already, ErrFileNotFound for an unknown volume or folder,
// ErrDirNotEmpty for a folder with content, one that is a reparse point, or a
// letter in use, ErrDirectory for a file, ErrInvalidFunction where the file
// system hosts no mount points. Source: SetVolumeMountPointW.
func (t *Tree) SetVolumeMountPoint(ctx context.Context, path, volume string) error {
	const call = "SetVolumeMountPoint"
	loc, code := parseMountPoint(path)
	if code == 0 && !isVolumeID(volume) {
		code = win32.ErrInvalidParameter
	}
	if code != 0 {
		return fail(call, path, code)
	}
	if len(loc.names) == 0 {
		return fail(call, path, t.assignLetter(loc, volume))
	}
	at, code := t.walk(ctx, loc, false)
	if code != 0 {
		return fail(call, path, code)
	}
	defer t.leave(at)
	t.mu.Lock()
	defer t.unlock()
	return fail(call, path, t.mount(at.node, volume))
}

// parseMountPoint parses a path that must end in a backslash.
func parseMountPoint(path string) (location, uint32) {
	if !strings.HasSuffix(path, `\`) {
		return location{}, win32.ErrInvalidName
	}
	loc, code := parsePath(path)
	if code == 0 && len(loc.names) == 0 && loc.kind != rootDrive {
		code = win32.ErrInvalidParameter
	}
	return loc, code
}

func (t *Tree) assignLetter(loc location, volume string) uint32 {
	t.mu.Lock()
	defer t.unlock()
	switch {
	case t.volumes[volumeKey(volume)] == nil:
		return win32.ErrFileNotFound
	case t.drives[loc.letter] != "":
		return win32.ErrDirNotEmpty
	case t.letterOf(volume) != 0:
		return win32.ErrInvalidParameter
	}
	t.setDrive(loc.letter, t.volumes[volumeKey(volume)].ID)
	t.repointAll(nil)
	return 0
}

// mount makes a mount point of an open, empty folder.
func (t *Tree) mount(n *node, volume string) uint32 {
	switch {
	case n == nil || t.volumes[volumeKey(volume)] == nil:
		return win32.ErrFileNotFound
	case n.vol.gone:
		return win32.ErrDevNotConnected
	case n.parent == nil:
		return win32.ErrInvalidParameter
	case n.link != nil:
		return win32.ErrDirNotEmpty
	case n.stat.kind != hostFolder:
		return win32.ErrDirectory
	case n.vol.ReadOnly:
		return win32.ErrWriteProtect
	}
	if code := n.changeable(); code != 0 {
		return code
	}
	name := strings.TrimPrefix(t.volumes[volumeKey(volume)].ID, `\\?\`)
	return t.setReparse(n, &Link{
		Tag: win32.TagMountPoint, Substitute: ntPrefix + name, Print: `\\?\` + name,
	}, "")
}

// changeable checks that a mount point may be set or removed, for which Windows
// opens the folder with GENERIC_READ and GENERIC_WRITE and every share mode.
func (n *node) changeable() uint32 {
	if code := n.checkShare(win32.FileListDir|win32.FileAddFile, shareAll); code != 0 {
		return code
	}
	return n.hasName()
}

// DeleteVolumeMountPoint is win32.API.DeleteVolumeMountPoint. The folder stays
// and the volume is not dismounted. On a folder that is no mount point it does
// nothing and succeeds. Source: DeleteVolumeMountPointW.
func (t *Tree) DeleteVolumeMountPoint(ctx context.Context, path string) error {
	const call = "DeleteVolumeMountPoint"
	loc, code := parseMountPoint(path)
	if code != 0 {
		return fail(call, path, code)
	}
	if len(loc.names) == 0 {
		return fail(call, path, t.removeLetter(loc.letter))
	}
	at, code := t.walk(ctx, loc, false)
	if code != 0 {
		return fail(call, path, code)
	}
	defer t.leave(at)
	t.mu.Lock()
	defer t.unlock()
	switch n := at.node; {
	case n == nil:
		code = win32.ErrFileNotFound
	case n.vol.gone:
		code = win32.ErrDevNotConnected
	case n.link == nil || n.link.mountedVolume() == "":
	case n.vol.ReadOnly:
		code = win32.ErrWriteProtect
	default:
		if code = n.changeable(); code == 0 {
			code = t.becomePlain(n)
		}
	}
	return fail(call, path, code)
}

func (t *Tree) removeLetter(letter byte) uint32 {
	t.mu.Lock()
	defer t.unlock()
	if t.drives[letter] == "" {
		return win32.ErrFileNotFound
	}
	t.setDrive(letter, "")
	t.repointAll(nil)
	return 0
}

// VolumePathNames is win32.API.VolumePathNames: drive roots first, then mount
// points, each with a final backslash. Failures: ErrInvalidName for a name that
// is none, ErrFileNotFound for an unknown volume. Source:
// GetVolumePathNamesForVolumeNameW.
func (t *Tree) VolumePathNames(_ context.Context, volume string) ([]string, error) {
	const call = "GetVolumePathNamesForVolumeName"
	if !isVolumeID(volume) {
		return nil, fail(call, volume, win32.ErrInvalidName)
	}
	t.mu.Lock()
	defer t.unlock()
	v := t.volumes[volumeKey(volume)]
	if v == nil {
		return nil, fail(call, volume, win32.ErrFileNotFound)
	}
	return t.volumePaths(v, nil), nil
}

// MountPaths is VolumePathNames without failures: nil for an unknown volume.
func (t *Tree) MountPaths(volumeID string) []string {
	paths, err := t.VolumePathNames(context.Background(), volumeID)
	if err != nil {
		return nil
	}
	return paths
}

// volumePaths returns the DOS paths of a volume's root. A mount point counts
// when the volume that holds it has a DOS path itself. The volumes in outer
// are those whose paths are being made.
func (t *Tree) volumePaths(v *volume, outer []*volume) []string {
	var paths []string
	for letter, id := range t.drives {
		if strings.EqualFold(id, v.ID) {
			paths = append(paths, string(letter)+`:\`)
		}
	}
	slices.Sort(paths)
	outer = append(outer, v)
	var folders []string
	for _, row := range t.links {
		holder := t.volumes[volumeKey(row.Volume)]
		if holder == nil || slices.Contains(outer, holder) || !strings.EqualFold(row.mountedVolume(), v.ID) {
			continue
		}
		base := t.volumePaths(holder, outer)
		n, code := t.nodeOf(row)
		if code == 0 && len(base) > 0 {
			folders = append(folders, base[0]+n.names()+`\`)
		}
		if code == 0 {
			t.unref(n)
		}
	}
	slices.Sort(folders)
	return append(paths, folders...)
}

// names are the Windows names from the volume's root.
func (n *node) names() string { return nodeNames(n.hostPath()) }

// dosPath is the DOS path of an object, or the volume form where its volume has none.
func (t *Tree) dosPath(n *node) string {
	if n.vol.unc != "" {
		return n.vol.unc + `\` + n.names()
	}
	if letter := t.letterOf(n.vol.ID); letter != 0 {
		return string(letter) + `:\` + n.names()
	}
	if paths := t.volumePaths(n.vol, nil); len(paths) > 0 {
		return paths[0] + n.names()
	}
	return n.vol.ID + n.names()
}
