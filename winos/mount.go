package winos

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/win32"
)

var (
	errRoot       = errors.New("the root folder of a volume stays what it is")
	errReplaced   = errors.New("another object has taken its place")
	errForeign    = errors.New("the object was not opened by this system")
	errNotMounted = errors.New("nothing is mounted here")
	errStillThere = errors.New("the mount point is still there")
)

// Mount mounts the volume at an open, empty folder. The mount manager takes a
// path; that the folder behind it is the one that is held is proven afterwards by
// reading the mount back through the handle. Source: SetVolumeMountPointW.
func (o *OS) Mount(ctx context.Context, id string, folder agent.File) error {
	held, ok := folder.(*file)
	if !ok {
		return failAs(host.KindInternal, "Mount", id, errForeign)
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	if err := held.mount(ctx, id); err != nil {
		return fail("Mount", id+" at "+held.name, err)
	}
	return nil
}

func (n *node) mount(ctx context.Context, id string) error {
	path, err := n.onMountManager(ctx, func(path string) error { return n.os.api.SetVolumeMountPoint(ctx, path, id) })
	if err != nil {
		return err
	}
	info, err := n.os.fileInfo(ctx, n.handle)
	if err == nil && info.Kind == agent.FileMountPoint && strings.EqualFold(info.Target, id) {
		return nil
	}
	if err == nil {
		err = failAs(host.KindPrecondition, "Mount", id, fmt.Errorf("%s is not the folder that was opened", path))
	}
	return errors.Join(err, n.os.api.DeleteVolumeMountPoint(ctx, path))
}

// Unmount removes the mount point that is open; the folder stays. Source:
// DeleteVolumeMountPointW.
func (o *OS) Unmount(ctx context.Context, mountPoint agent.File) error {
	held, ok := mountPoint.(*file)
	if !ok {
		return failAs(host.KindInternal, "Unmount", "", errForeign)
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	info, err := o.fileInfo(ctx, held.handle)
	if err == nil && info.Kind != agent.FileMountPoint {
		err = failAs(host.KindPrecondition, "Unmount", held.name, errNotMounted)
	}
	if err == nil {
		err = held.deleteMountPoint(ctx)
	}
	if err != nil {
		return fail("Unmount", held.name, err)
	}
	return nil
}

// deleteMountPoint makes an open mount point a plain folder again, and proves it
// through the handle: the mount manager was given a path, and says success for a
// path at which nothing is mounted.
func (n *node) deleteMountPoint(ctx context.Context) error {
	path, err := n.onMountManager(ctx, func(path string) error { return n.os.api.DeleteVolumeMountPoint(ctx, path) })
	if err != nil {
		return err
	}
	after, err := n.os.api.Info(ctx, n.handle)
	if err != nil {
		return err
	}
	if after.Attributes&win32.AttrReparse != 0 {
		return failAs(host.KindBusy, "Unmount", path, errStillThere)
	}
	return nil
}

// onMountManager calls a function of the mount manager on the path of the held
// object. The functions open the path themselves, with rights and sharing that
// are not documented; when those do not go together with our hold it is let go
// for the time of the call. The caller holds n.mu.
func (n *node) onMountManager(ctx context.Context, call func(path string) error) (path string, err error) {
	path, err = n.os.api.FinalPath(ctx, n.handle)
	if err != nil {
		return "", err
	}
	path = withBackslash(path)
	err = call(path)
	if n.parent != nil && isWin32(err, win32.ErrSharingViolation) {
		err = n.reopen(ctx, holdAccess, func() error { return call(path) })
	}
	return path, err
}
