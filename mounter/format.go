package mounter

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	mount "k8s.io/mount-utils"

	"github.com/csi-windows/csi-windows/host"
)

// FormatAndMount makes the disk with the number in source usable at the target: it
// is brought online and made writable, gets a partition and a file system when it is
// empty, and is mounted. A disk with data is mounted as it is. With the option "ro"
// nothing is changed on it: an empty disk is then a mount.MountError. fstype is as
// host.FormatOptions has it, "" is NTFS.
func (m *Mounter) FormatAndMount(source, target, fstype string, options []string) error {
	return m.FormatAndMountSensitive(source, target, fstype, options, nil)
}

// FormatAndMountSensitive is FormatAndMount; nothing on Windows takes other options
// of a disk than "ro", so that sensitiveOptions are ignored.
func (m *Mounter) FormatAndMountSensitive(source, target, fstype string, options, _ []string) error {
	const op = "FormatAndMount"
	disk, err := strconv.ParseUint(source, 10, 32)
	if err != nil {
		return invalid(op, source, "the source must be the number of a disk")
	}
	fileSystem, known := host.FileSystemName(fstype)
	if !known {
		return invalid(op, "disk "+source, "file system %q: Windows has NTFS, ReFS, exFAT and FAT32", fstype)
	}
	ctx, cancel := m.call()
	defer cancel()
	f := &formatting{mounter: m, disk: uint32(disk), fileSystem: fileSystem, readOnly: slices.Contains(options, "ro")}
	volumeID, err := f.volume(ctx)
	if err != nil {
		return err
	}
	return m.mountVolume(ctx, volumeID, windowsPath(target))
}

// formatting is one FormatAndMount.
type formatting struct {
	mounter    *Mounter
	disk       uint32
	fileSystem string
	readOnly   bool
}

// volume returns the volume of the disk, with a file system.
func (f *formatting) volume(ctx context.Context) (string, error) {
	h := f.mounter.host
	if err := f.online(ctx); err != nil {
		return "", err
	}
	if !f.readOnly {
		if err := h.PartitionDisk(ctx, f.disk); err != nil {
			return "", err
		}
	}
	ids, err := h.ListVolumesOnDisk(ctx, f.disk, 0)
	if err != nil {
		return "", err
	}
	switch len(ids) {
	case 1:
	case 0:
		if f.readOnly {
			return "", f.unformatted()
		}
		return "", f.refuse(host.KindUnavailable, "no volume has appeared on it")
	default:
		return "", f.refuse(host.KindPrecondition, fmt.Sprintf("it has %d volumes, which of them is not said", len(ids)))
	}
	formatted, err := h.IsVolumeFormatted(ctx, ids[0])
	switch {
	case err != nil:
		return "", err
	case formatted:
		return ids[0], nil
	case f.readOnly:
		return "", f.unformatted()
	default:
		return ids[0], f.format(ctx, ids[0])
	}
}

// online brings the disk online, writable if it is to be written to.
func (f *formatting) online(ctx context.Context) error {
	h := f.mounter.host
	if err := h.SetDiskState(ctx, f.disk, true); err != nil || f.readOnly {
		return err
	}
	err := h.SetDiskReadOnly(ctx, f.disk, false)
	if host.IsKind(err, host.KindUnsupported) {
		return nil // a flag that is raised shows when the disk is written to
	}
	return err
}

// format makes the file system. NTFS is what every csi-proxy can make.
func (f *formatting) format(ctx context.Context, volumeID string) error {
	if f.fileSystem == "NTFS" {
		return f.mounter.host.FormatVolume(ctx, volumeID)
	}
	return f.mounter.host.FormatVolumeWith(ctx, volumeID, host.FormatOptions{FileSystem: f.fileSystem})
}

func (f *formatting) object() string { return fmt.Sprintf("disk %d", f.disk) }

func (f *formatting) refuse(kind host.Kind, text string) error {
	return &host.Error{Op: "FormatAndMount", Object: f.object(), Kind: kind, Cause: fmt.Errorf("%s", text)}
}

func (f *formatting) unformatted() error {
	return mount.NewMountError(mount.UnformattedReadOnly, "%s has no file system and is to be mounted read-only", f.object())
}
