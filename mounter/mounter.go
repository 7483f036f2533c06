package mounter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	mount "k8s.io/mount-utils"

	"github.com/csi-windows/csi-windows/host"
)

// DefaultCallTimeout is the longest time of one call of the mounter.
const DefaultCallTimeout = 2 * time.Minute

// Options are the choices of New. The zero value has the defaults.
type Options struct {
	// CallTimeout bounds each call: mount-utils has no contexts. 0 means
	// DefaultCallTimeout.
	CallTimeout time.Duration
}

// Mounter mounts on one node. Its methods may be called by many goroutines; calls
// on one object are kept apart by the agent.
type Mounter struct {
	host        host.Host
	callTimeout time.Duration

	mu sync.Mutex
	// seen are the mount points that were looked at or made, by path. Windows tells
	// the paths of a volume only while the volume is there; with these, List has those
	// of volumes that are gone.
	seen map[string]string // path in upper case: path
}

var _ mount.Interface = (*Mounter)(nil)

// New makes a mounter. A nil host is KindInvalid.
func New(h host.Host, options Options) (*Mounter, error) {
	if h == nil {
		return nil, &host.Error{Op: "New", Kind: host.KindInvalid, Cause: errors.New("a mounter needs a host")}
	}
	if options.CallTimeout <= 0 {
		options.CallTimeout = DefaultCallTimeout
	}
	return &Mounter{host: h, callTimeout: options.CallTimeout, seen: map[string]string{}}, nil
}

// call is the context of one call.
func (m *Mounter) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), m.callTimeout)
}

// Mount implements mount.Interface. The source is one of
//   - a volume, `\\?\Volume{guid}\`: mounted at the target;
//   - a share, `\\server\share\folder` or with slashes: mapped for the whole node,
//     user and password being the first two of options and sensitiveOptions, and
//     linked at the target;
//   - a path of the node, with or without the option "bind": linked at the target.
//
// Folders above the target are made; an empty folder at the target gives way to a
// link. What is mounted there already is success.
func (m *Mounter) Mount(source, target, fstype string, options []string) error {
	return m.MountSensitive(source, target, fstype, options, nil)
}

// MountSensitiveWithoutSystemd implements mount.Interface; it is MountSensitive.
func (m *Mounter) MountSensitiveWithoutSystemd(source, target, fstype string, options, sensitiveOptions []string) error {
	return m.MountSensitive(source, target, fstype, options, sensitiveOptions)
}

// MountSensitiveWithoutSystemdWithMountFlags implements mount.Interface; it is
// MountSensitive. Windows has no flags for mounting: any is KindInvalid.
func (m *Mounter) MountSensitiveWithoutSystemdWithMountFlags(source, target, fstype string, options, sensitiveOptions, mountFlags []string) error {
	if len(mountFlags) > 0 {
		return invalid("Mount", target, "Windows has no mount flags")
	}
	return m.MountSensitive(source, target, fstype, options, sensitiveOptions)
}

// MountSensitive implements mount.Interface, see Mount.
func (m *Mounter) MountSensitive(source, target, fstype string, options, sensitiveOptions []string) error {
	ctx, cancel := m.call()
	defer cancel()
	target = windowsPath(target)
	bind, _, _, _ := mount.MakeBindOptsSensitive(options, sensitiveOptions)
	switch {
	case isVolumeID(source):
		return m.mountVolume(ctx, source, target)
	case isShare(source) && !bind:
		credentials := append(append([]string{}, options...), sensitiveOptions...)
		return m.mountShare(ctx, source, target, credentials)
	case isLocal(source):
		return m.link(ctx, windowsPath(source), target)
	default:
		return invalid("Mount", target, "%s is neither a volume, a share nor an absolute path (file system %q)", source, fstype)
	}
}

func (m *Mounter) mountVolume(ctx context.Context, volumeID, target string) error {
	if err := m.host.MountVolume(ctx, volumeID, target); err != nil {
		return err
	}
	m.remember(target)
	return nil
}

// mountShare follows the convention of mount-utils on Windows: user and password
// are the first two options.
func (m *Mounter) mountShare(ctx context.Context, source, target string, credentials []string) error {
	if len(credentials) < 2 || credentials[0] == "" || credentials[1] == "" {
		return invalid("Mount", target, "a share needs user and password as the first two options")
	}
	if err := m.makeRoom(ctx, target); err != nil {
		return err
	}
	return m.host.NewSmbGlobalMapping(ctx, windowsPath(source), target, credentials[0], credentials[1])
}

// link makes a link at the target that leads to the source.
func (m *Mounter) link(ctx context.Context, source, target string) error {
	if err := m.makeRoom(ctx, target); err != nil {
		return err
	}
	return m.host.CreateSymlink(ctx, source, target)
}

// makeRoom makes the folders above a link, and removes an empty folder in its place,
// which drivers make since mounts elsewhere need one.
func (m *Mounter) makeRoom(ctx context.Context, target string) error {
	if parent := parentOf(target); parent != "" {
		if err := m.host.Mkdir(ctx, parent); err != nil {
			return err
		}
	}
	kind, err := m.kindOf(ctx, target)
	if err != nil || kind.mode != modePlain {
		return err
	}
	return m.host.Rmdir(ctx, target, false) // refuses a file or folder with content
}

// Unmount implements mount.Interface. A volume is flushed before its mount point
// goes, and an empty folder stays; of a link nothing stays. Nothing mounted there,
// and nothing there at all, is success.
func (m *Mounter) Unmount(target string) error {
	ctx, cancel := m.call()
	defer cancel()
	target = windowsPath(target)
	kind, err := m.kindOf(ctx, target)
	if err != nil {
		return err
	}
	switch {
	case kind.mode == modeMissing || kind.mode == modePlain:
	case kind.mode == modeMountPoint && kind.sure:
		err = m.host.UnmountVolume(ctx, kind.volumeID, target)
	default:
		// A csi-proxy that cannot tell a mount point from a link to one: removing the
		// one or the other is one call there, once the volume is flushed.
		if kind.volumeID != "" {
			if err := m.host.WriteVolumeCache(ctx, kind.volumeID); err != nil && !host.IsKind(err, host.KindNotFound) {
				return err
			}
		}
		err = m.host.Rmdir(ctx, target, false)
	}
	if err == nil {
		m.forget(target)
	}
	return err
}

// CanSafelySkipMountPointCheck implements mount.Interface: Unmount of what is no
// mount point is success.
func (m *Mounter) CanSafelySkipMountPointCheck() bool { return true }

// IsLikelyNotMountPoint implements mount.Interface. A folder is true; a link or mount
// point is false, with an error that mount.IsCorruptedMnt recognises when the volume,
// share or folder behind it is gone. A file is an error.
func (m *Mounter) IsLikelyNotMountPoint(file string) (bool, error) {
	const op = "IsLikelyNotMountPoint"
	ctx, cancel := m.call()
	defer cancel()
	file = windowsPath(file)
	kind, err := m.kindOf(ctx, file)
	if err != nil {
		return true, err
	}
	switch kind.mode {
	case modeMissing:
		return true, missing(op, file)
	case modeMountPoint:
		m.remember(file)
	}
	leads, err := m.leadsToFolder(ctx, file)
	switch {
	case err != nil:
		return true, err
	case kind.mode == modePlain && !leads:
		return true, notFolder(op, file)
	case !leads:
		return false, corrupted(op, file)
	default:
		return kind.mode == modePlain, nil
	}
}

// IsMountPoint implements mount.Interface; it is the opposite of
// IsLikelyNotMountPoint.
func (m *Mounter) IsMountPoint(file string) (bool, error) {
	not, err := m.IsLikelyNotMountPoint(file)
	return !not && err == nil, err
}

// List implements mount.Interface: the mount points of volumes, drive roots among
// them, and no links. Mount points whose volume is gone are listed if this mounter
// has made or seen them. A csi-proxy without our additions is KindUnsupported.
func (m *Mounter) List() ([]mount.MountPoint, error) {
	ctx, cancel := m.call()
	defer cancel()
	mounts, err := m.host.ListMounts(ctx)
	if err != nil {
		return nil, err
	}
	points := make([]mount.MountPoint, 0, len(mounts))
	listed := map[string]bool{}
	for _, one := range mounts {
		points = append(points, mount.MountPoint{Device: one.VolumeID, Path: one.Path})
		listed[keyOf(one.Path)] = true
	}
	for _, path := range m.remembered() {
		if listed[keyOf(path)] {
			continue
		}
		kind, err := m.kindOf(ctx, path)
		switch {
		case err != nil:
			return nil, err
		case kind.mode == modeMountPoint:
			points = append(points, mount.MountPoint{Device: kind.volumeID, Path: path})
		default:
			m.forget(path)
		}
	}
	return points, nil
}

// GetMountRefs implements mount.Interface: the path itself, as mount-utils has it on
// Windows, and the other paths at which its volume is mounted. Nothing there, or
// nothing behind it, is an empty list.
func (m *Mounter) GetMountRefs(pathname string) ([]string, error) {
	ctx, cancel := m.call()
	defer cancel()
	path := windowsPath(pathname)
	kind, err := m.kindOf(ctx, path)
	if err != nil || kind.mode == modeMissing {
		return nil, err
	}
	if leads, err := m.leadsToFolder(ctx, path); err != nil || !leads {
		return nil, err
	}
	refs := []string{pathname}
	if kind.mode != modeMountPoint {
		return refs, nil
	}
	mounts, err := m.host.ListMounts(ctx)
	if host.IsKind(err, host.KindUnsupported) {
		return refs, nil
	}
	for _, one := range mounts {
		if sameVolume(one.VolumeID, kind.volumeID) && keyOf(one.Path) != keyOf(path) {
			refs = append(refs, one.Path)
		}
	}
	return refs, err
}

func (m *Mounter) remember(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[keyOf(path)] = path
}

func (m *Mounter) forget(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, keyOf(path))
}

func (m *Mounter) remembered() (paths []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, path := range m.seen {
		paths = append(paths, path)
	}
	return paths
}

// invalid is the error of a call that can never succeed.
func invalid(op, object, format string, args ...any) error {
	return &host.Error{Op: op, Object: object, Kind: host.KindInvalid, Cause: fmt.Errorf(format, args...)}
}
