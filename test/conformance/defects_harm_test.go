package conformance_test

import (
	"context"
	"strings"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// harms are hosts that do what must never be done.
func harms() []defect {
	on := func(wrap func(harmful) host.Host) func(*stack.Stack, host.Host) host.Host {
		return func(s *stack.Stack, good host.Host) host.Host { return wrap(harmful{good, s}) }
	}
	return []defect{
		{"formats again", on(func(h harmful) host.Host { return formatsAgain{h} }), "volume/format"},
		{"formats what it does not know", on(func(h harmful) host.Host { return formatsAgain{h} }), "volume/format-refuses-data"},
		{"partitions over data", on(func(h harmful) host.Host { return partitionsAnything{h} }), "disk/partition-refuses-data"},
		{"mounts over another volume", on(func(h harmful) host.Host { return mountsOver{h} }), "volume/mount-refuses"},
		{"unmounts another volume", on(func(h harmful) host.Host { return unmountsAnything{h} }), "volume/mount-refuses"},
		{"deletes through links", on(func(h harmful) host.Host { return deletesThroughLinks{h} }), "filesystem/rmdir-follows-no-link"},
		{"deletes through mount points", on(func(h harmful) host.Host { return deletesThroughMounts{h} }), "filesystem/rmdir-follows-no-mount"},
		{"makes folders outside", on(func(h harmful) host.Host { return makesAnywhere{h} }), "filesystem/outside"},
		{"makes folders outside by a link", on(func(h harmful) host.Host { return makesAnywhere{h} }), "filesystem/outside-by-link"},
		{"leaves a link to a share that is not there", on(func(h harmful) host.Host { return linksFirst{h} }), "smb/absent-server"},
	}
}

// harmful is a host with a way around its rules.
type harmful struct {
	host.Host
	s *stack.Stack
}

type formatsAgain struct{ harmful }

func (h formatsAgain) FormatVolume(ctx context.Context, id string) error {
	return h.s.OS.FormatVolume(ctx, id, host.FormatOptions{FileSystem: "NTFS"})
}

type partitionsAnything struct{ harmful }

func (h partitionsAnything) PartitionDisk(ctx context.Context, n uint32) error {
	if err := h.Host.PartitionDisk(ctx, n); !host.IsKind(err, host.KindPrecondition) {
		return err
	}
	for _, step := range []func() error{
		func() error { return h.s.OS.SetDiskOnline(ctx, n, true) },
		func() error { return h.s.OS.SetDiskReadOnly(ctx, n, false) },
		func() error { return h.s.OS.InitializeDisk(ctx, n) },
		func() error { return h.s.OS.CreateDataPartition(ctx, n) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

type mountsOver struct{ harmful }

func (h mountsOver) MountVolume(ctx context.Context, id, path string) error {
	err := h.Host.MountVolume(ctx, id, path)
	if host.IsKind(err, host.KindPrecondition) && h.s.Node.DeleteVolumeMountPoint(ctx, path+`\`) == nil {
		return h.s.Node.SetVolumeMountPoint(ctx, path+`\`, id)
	}
	return err
}

type unmountsAnything struct{ harmful }

func (h unmountsAnything) UnmountVolume(ctx context.Context, id, path string) error {
	err := h.Host.UnmountVolume(ctx, id, path)
	if host.IsKind(err, host.KindPrecondition) {
		_ = h.s.Node.DeleteVolumeMountPoint(ctx, path+`\`)
	}
	return err
}

type deletesThroughLinks struct{ harmful }

func (h deletesThroughLinks) Rmdir(ctx context.Context, path string, force bool) error {
	if strings.HasSuffix(path, `\tree`) {
		_ = h.s.Node.RemoveFile(ctx, path+`\sub\outside\file`)
	}
	return h.Host.Rmdir(ctx, path, force)
}

type deletesThroughMounts struct{ harmful }

func (h deletesThroughMounts) Rmdir(ctx context.Context, path string, force bool) error {
	_ = h.s.Node.RemoveFile(ctx, path+`\m\file`)
	return h.Host.Rmdir(ctx, path, force)
}

type makesAnywhere struct{ harmful }

func (h makesAnywhere) Mkdir(ctx context.Context, path string) error {
	err := h.Host.Mkdir(ctx, path)
	if host.IsKind(err, host.KindInvalid) {
		_ = h.s.Node.MakeDir(ctx, path)
	}
	return err
}

type linksFirst struct{ harmful }

func (h linksFirst) NewSmbGlobalMapping(ctx context.Context, remote, local, user, password string) error {
	if local != "" {
		_ = h.s.Node.MakeLink(ctx, local, remote)
	}
	return h.Host.NewSmbGlobalMapping(ctx, remote, local, user, password)
}
