package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/cloud"
)

// Paths of the node as kubelet and a node plugin lay them out.
const (
	kubeletPath = `C:\var\lib\kubelet`
	stagePath   = kubeletPath + `\plugins\kubernetes.io\csi\demo.csi\b1f2\globalmount`
	podPath     = kubeletPath + `\pods\2f1c8e0a-3c55-4a4e-9d2c-0f2d0f6a7c11`
	publishPath = podPath + `\volumes\kubernetes.io~csi\pvc-demo\mount`
	volumesPath = podPath + `\volumes\kubernetes.io~csi\pvc-demo`
)

// The disk the cloud attaches for the claim.
const (
	claimBytes = 1 << 30
	grownBytes = 2 << 30
	nodeName   = "demo-node"
)

var letter = []byte("dear pod, this is your data\r\n")

// life is a node plugin's work for one claim on a block volume.
type life struct {
	*report
	client host.Host
	node   sim.Controller
	cloud  *cloud.Cloud

	claim  cloud.Disk
	disk   uint32
	volume string
}

// run walks the life from attach to unpublish. It stops at the first failure,
// since everything after it would fail as well.
func (l *life) run(ctx context.Context) {
	l.head("A claim's life on the node")
	for _, part := range []func(context.Context) bool{l.attach, l.stage, l.publish, l.grow, l.restage} {
		if !part(ctx) {
			return
		}
	}
}

// attach lets the cloud plug the disk, and finds it by its page 83 identifier.
func (l *life) attach(ctx context.Context) bool {
	return l.do(ctx, step{"The cloud makes and attaches a disk", "", "(simulated cloud)"}, func(ctx context.Context) (result string, err error) {
		if l.claim, err = l.cloud.CreateDisk(ctx, cloud.CreateRequest{Name: "pvc-demo", SizeBytes: claimBytes}); err != nil {
			return "", err
		}
		_, err = l.cloud.AttachDisk(ctx, l.claim.ID, nodeName, l.node)
		return "1 GiB, page 83 id " + l.claim.Page83(), err
	}) && l.do(ctx, step{"Look for new disks", "disk", "Rescan"}, func(ctx context.Context) (string, error) {
		return "", l.client.Rescan(ctx)
	}) && l.do(ctx, step{"Find the disk by its page 83 id", "disk", "ListDiskIDs"}, func(ctx context.Context) (string, error) {
		ids, err := l.client.ListDiskIDs(ctx)
		if err != nil {
			return "", err
		}
		for number, id := range ids {
			if id.Page83 == l.claim.Page83() {
				l.disk = number
				return fmt.Sprintf("disk %d of %d", number, len(ids)), nil
			}
		}
		return "", fmt.Errorf("no disk has that id: %v", ids)
	})
}

// stage makes the disk usable and mounts it at the staging path.
func (l *life) stage(ctx context.Context) bool {
	return l.do(ctx, step{"Bring it online", "disk", "SetDiskState"}, func(ctx context.Context) (string, error) {
		if err := l.client.SetDiskState(ctx, l.disk, true); err != nil {
			return "", err
		}
		online, err := l.client.GetDiskState(ctx, l.disk)
		return "online", expect(err, online, "the disk is offline")
	}) && l.do(ctx, step{"Partition it", "disk", "PartitionDisk"}, func(ctx context.Context) (string, error) {
		return "GPT, one data partition", l.client.PartitionDisk(ctx, l.disk)
	}) && l.do(ctx, step{"Partition it again", "disk", "PartitionDisk"}, func(ctx context.Context) (string, error) {
		return "left as it is", l.client.PartitionDisk(ctx, l.disk)
	}) && l.do(ctx, step{"Find its volume", "volume", "ListVolumesOnDisk"}, func(ctx context.Context) (string, error) {
		ids, err := l.client.ListVolumesOnDisk(ctx, l.disk, 0)
		if err := expect(err, len(ids) == 1, "%d volumes", len(ids)); err != nil {
			return "", err
		}
		l.volume = ids[0]
		return l.volume, nil
	}) && l.do(ctx, step{"Format it", "volume", "FormatVolume"}, func(ctx context.Context) (string, error) {
		if err := l.client.FormatVolume(ctx, l.volume); err != nil {
			return "", err
		}
		formatted, err := l.client.IsVolumeFormatted(ctx, l.volume)
		return "NTFS", expect(err, formatted, "the volume is not formatted")
	}) && l.mount(ctx, "Mount it at the staging path")
}

// mount mounts the volume at the staging path.
func (l *life) mount(ctx context.Context, what string) bool {
	return l.do(ctx, step{what, "volume", "MountVolume"}, func(ctx context.Context) (string, error) {
		if err := l.client.MountVolume(ctx, l.volume, stagePath); err != nil {
			return "", err
		}
		id, err := l.client.GetVolumeIDFromTargetPath(ctx, stagePath)
		return "mounted", expect(err, id == l.volume, "volume %s is mounted there", id)
	})
}

// publish links the staged volume into the pod and writes through the link, as
// the pod would.
func (l *life) publish(ctx context.Context) bool {
	return l.do(ctx, step{"Make the pod's folder", "filesystem", "Mkdir"}, func(ctx context.Context) (string, error) {
		return "", l.client.Mkdir(ctx, volumesPath)
	}) && l.do(ctx, step{"Publish it by a link", "filesystem", "CreateSymlink"}, func(ctx context.Context) (string, error) {
		if err := l.client.CreateSymlink(ctx, stagePath, publishPath); err != nil {
			return "", err
		}
		is, err := l.client.IsSymlink(ctx, publishPath)
		return "linked", expect(err, is, "the path is no link")
	}) && l.do(ctx, step{"The pod writes a file", "", "(program on the node)"}, func(ctx context.Context) (string, error) {
		return fmt.Sprintf("%d bytes", len(letter)), l.node.WriteFile(ctx, publishPath+`\letter.txt`, letter)
	}) && l.do(ctx, step{"Measure it", "volume", "GetVolumeStats"}, func(ctx context.Context) (string, error) {
		stats, err := l.client.GetVolumeStats(ctx, l.volume)
		return statsText(stats), expect(err, stats.TotalBytes > claimBytes*9/10 && stats.UsedBytes > 0, "sizes are wrong: %+v", stats)
	})
}

// grow lets the cloud enlarge the disk, and the volume follow.
func (l *life) grow(ctx context.Context) bool {
	return l.do(ctx, step{"The cloud enlarges the disk", "", "(simulated cloud)"}, func(ctx context.Context) (string, error) {
		_, err := l.cloud.GrowDisk(ctx, l.claim.ID, grownBytes)
		return "2 GiB", err
	}) && l.do(ctx, step{"Look again", "disk", "Rescan"}, func(ctx context.Context) (string, error) {
		return "", l.client.Rescan(ctx)
	}) && l.do(ctx, step{"Grow the volume", "volume", "ResizeVolume"}, func(ctx context.Context) (string, error) {
		if err := l.client.ResizeVolume(ctx, l.volume, 0); err != nil {
			return "", err
		}
		stats, err := l.client.GetVolumeStats(ctx, l.volume)
		return statsText(stats), expect(err, stats.TotalBytes > grownBytes*9/10, "still %s", statsText(stats))
	})
}

// restage takes everything down and up again, and looks for the file.
func (l *life) restage(ctx context.Context) bool {
	return l.do(ctx, step{"Flush it", "volume", "WriteVolumeCache"}, func(ctx context.Context) (string, error) {
		return "", l.client.WriteVolumeCache(ctx, l.volume)
	}) && l.do(ctx, step{"Unpublish it", "filesystem", "Rmdir"}, func(ctx context.Context) (string, error) {
		return "the link only", l.client.Rmdir(ctx, publishPath, false)
	}) && l.do(ctx, step{"Unmount it", "volume", "UnmountVolume"}, func(ctx context.Context) (string, error) {
		return "", l.client.UnmountVolume(ctx, l.volume, stagePath)
	}) && l.do(ctx, step{"The staging path is empty now", "", "(program on the node)"}, func(ctx context.Context) (string, error) {
		_, err := l.node.ReadFile(ctx, stagePath+`\letter.txt`)
		if err == nil {
			return "", errors.New("the file is still there")
		}
		return "no file", nil
	}) && l.mount(ctx, "Mount it again") && l.do(ctx, step{"The file is still there", "", "(program on the node)"}, func(ctx context.Context) (string, error) {
		data, err := l.node.ReadFile(ctx, stagePath+`\letter.txt`)
		return fmt.Sprintf("%d bytes, the same", len(data)), expect(err, bytes.Equal(data, letter), "the file holds %q", data)
	})
}

// expect is err, or the described failure when what should hold does not.
func expect(err error, holds bool, format string, args ...any) error {
	if err != nil || holds {
		return err
	}
	return fmt.Errorf(format, args...)
}

// statsText prints the sizes of a volume.
func statsText(s host.VolumeStats) string {
	return fmt.Sprintf("%d MiB, %d KiB used", s.TotalBytes>>20, s.UsedBytes>>10)
}
