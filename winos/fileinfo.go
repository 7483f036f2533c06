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
	errRoot     = errors.New("the root folder of a volume cannot be removed")
	errReplaced = errors.New("another object has taken its place")
)

// nameSurrogate marks reparse tags that stand for another place. Tags without it
// (deduplicated, compressed or cloud content) are the file itself as far as
// naming goes. Source: IsReparseTagNameSurrogate, winnt.h.
const nameSurrogate = 0x20000000

// fileInfo describes an open object.
func (o *OS) fileInfo(ctx context.Context, h win32.Handle) (agent.FileInfo, error) {
	raw, err := o.api.Info(ctx, h)
	if err != nil {
		return agent.FileInfo{}, err
	}
	info := agent.FileInfo{Kind: agent.FileRegular, Identity: identityOf(raw)}
	if raw.Attributes&win32.AttrDirectory != 0 {
		info.Kind = agent.FileFolder
	}
	if raw.Attributes&win32.AttrReparse == 0 || raw.ReparseTag&nameSurrogate == 0 {
		return info, nil
	}
	if raw.ReparseTag != win32.TagSymlink && raw.ReparseTag != win32.TagMountPoint {
		info.Kind = agent.FileReparse
		return info, nil
	}
	reparse, err := o.readReparse(ctx, h)
	if err != nil {
		return agent.FileInfo{}, err
	}
	describeLink(&info, reparse)
	info.FolderLink = info.Kind == agent.FileSymlink && raw.Attributes&win32.AttrDirectory != 0
	return info, nil
}

// describeLink sets kind and target of a link. Symbolic links never count as
// mount points, even one that leads to a volume.
func describeLink(info *agent.FileInfo, reparse win32.Reparse) {
	info.Kind, info.Target = agent.FileJunction, reparse.Target
	if reparse.Tag == win32.TagSymlink {
		info.Kind = agent.FileSymlink
	} else if id, ok := reparse.VolumeID(); ok {
		info.Kind, info.Target = agent.FileMountPoint, id
	}
}

// readReparse reads the link data. Source: FSCTL_GET_REPARSE_POINT.
func (o *OS) readReparse(ctx context.Context, h win32.Handle) (win32.Reparse, error) {
	answer, err := o.control(ctx, h, win32.FsctlGetReparsePoint, nil, win32.ReparseBufferMaxBytes)
	if err != nil {
		return win32.Reparse{}, err
	}
	return win32.DecodeReparse(answer)
}

func identityOf(info win32.FileInfo) agent.FileIdentity {
	return agent.FileIdentity{VolumeSerial: info.VolumeSerial, FileID: info.FileID}
}

// Mount mounts the volume at an open, empty folder. The mount manager takes a
// path; that the folder behind it is the one that is held is proven afterwards by
// reading the mount back through the handle. Source: SetVolumeMountPointW.
func (o *OS) Mount(ctx context.Context, id string, folder agent.File) error {
	held, ok := folder.(*file)
	if !ok {
		return failAs(host.KindInternal, "Mount", id, errors.New("the folder is not one of this system"))
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	if err := o.mount(ctx, id, held.handle); err != nil {
		return fail("Mount", id+" at "+held.name, err)
	}
	return nil
}

func (o *OS) mount(ctx context.Context, id string, folder win32.Handle) error {
	path, err := o.api.FinalPath(ctx, folder)
	if err != nil {
		return err
	}
	if err := o.api.SetVolumeMountPoint(ctx, withBackslash(path), id); err != nil {
		return err
	}
	info, err := o.fileInfo(ctx, folder)
	if err == nil && info.Kind == agent.FileMountPoint && strings.EqualFold(info.Target, id) {
		return nil
	}
	if err == nil {
		err = failAs(host.KindPrecondition, "Mount", id, fmt.Errorf("%s is not the folder that was opened", path))
	}
	return errors.Join(err, o.api.DeleteVolumeMountPoint(ctx, withBackslash(path)))
}

// Unmount removes the mount point that is open; the folder stays. Source:
// DeleteVolumeMountPointW.
func (o *OS) Unmount(ctx context.Context, mountPoint agent.File) error {
	held, ok := mountPoint.(*file)
	if !ok {
		return failAs(host.KindInternal, "Unmount", "", errors.New("the mount point is not one of this system"))
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	info, err := o.fileInfo(ctx, held.handle)
	if err == nil && info.Kind != agent.FileMountPoint {
		err = failAs(host.KindPrecondition, "Unmount", held.name, errors.New("nothing is mounted here"))
	}
	if err == nil {
		err = o.deleteMountPoint(ctx, held.handle)
	}
	if err != nil {
		return fail("Unmount", held.name, err)
	}
	return nil
}

// deleteMountPoint makes an open mount point a plain folder again, and proves it
// through the handle: the mount manager was given a path, and says success for a
// path at which nothing is mounted.
func (o *OS) deleteMountPoint(ctx context.Context, h win32.Handle) error {
	path, err := o.api.FinalPath(ctx, h)
	if err != nil {
		return err
	}
	if err := o.api.DeleteVolumeMountPoint(ctx, withBackslash(path)); err != nil {
		return err
	}
	after, err := o.api.Info(ctx, h)
	if err != nil {
		return err
	}
	if after.Attributes&win32.AttrReparse != 0 {
		return failAs(host.KindBusy, "Unmount", path, errors.New("the mount point is still there"))
	}
	return nil
}
