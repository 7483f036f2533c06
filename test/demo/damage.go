package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
)

// damage tries to destroy data and to break out through the client.
type damage struct {
	*report
	client host.Host
	node   sim.Controller
	folder string // where the media lie on the machine of the demo
	// children counts the child processes of csi-proxy.
	children func() (int, error)
	// staged is the volume that the life left mounted at stagePath.
	staged string
}

// run makes every attempt.
func (d *damage) run(ctx context.Context) {
	d.head("Attempts to do damage")
	d.formatForeign(ctx)
	d.partitionForeign(ctx)
	d.removeThroughMount(ctx)
	d.escapeByDots(ctx)
	d.escapeByLink(ctx)
	d.injectCommand(ctx)
}

// formatForeign tries to format a partition with ext4 on it.
func (d *damage) formatForeign(ctx context.Context) {
	image := filepath.Join(d.folder, "ext4-partition.img")
	var volume string
	if !d.do(ctx, step{"Attach a disk with an ext4 partition", "", "(simulated cloud)"}, func(ctx context.Context) (string, error) {
		if err := makeExt4Disk(image, true); err != nil {
			return "", err
		}
		number, err := d.attach(ctx, image, "EXT4-PART")
		if err != nil {
			return "", err
		}
		ids, err := d.client.ListVolumesOnDisk(ctx, number, 0)
		if err := expect(err, len(ids) == 1, "%d volumes", len(ids)); err != nil {
			return "", err
		}
		volume = ids[0]
		return fmt.Sprintf("disk %d", number), nil
	}) {
		return
	}
	d.refuse(ctx, step{"Format the ext4 disk", "volume", "FormatVolume"},
		func(ctx context.Context) error { return d.client.FormatVolume(ctx, volume) },
		sameBytes(image), host.KindPrecondition)
}

// partitionForeign tries to partition a disk that is one ext4 file system as a
// whole, as Linux nodes make them.
func (d *damage) partitionForeign(ctx context.Context) {
	image := filepath.Join(d.folder, "ext4-whole.img")
	var number uint32
	if !d.do(ctx, step{"Attach a disk that is ext4 as a whole", "", "(simulated cloud)"}, func(ctx context.Context) (string, error) {
		if err := makeExt4Disk(image, false); err != nil {
			return "", err
		}
		var err error
		number, err = d.attach(ctx, image, "EXT4-WHOLE")
		return fmt.Sprintf("disk %d", number), err
	}) {
		return
	}
	d.refuse(ctx, step{"Partition the disk with data", "disk", "PartitionDisk"},
		func(ctx context.Context) error { return d.client.PartitionDisk(ctx, number) },
		sameBytes(image), host.KindPrecondition)
}

// attach plugs an image and brings the disk online and writable.
func (d *damage) attach(ctx context.Context, image, serial string) (uint32, error) {
	number, err := d.node.AttachDisk(ctx, sim.DiskSpec{Image: image, Bus: "SCSI", Serial: serial})
	if err != nil {
		return 0, err
	}
	if err := d.client.Rescan(ctx); err != nil {
		return 0, err
	}
	return number, d.client.SetDiskState(ctx, number, true)
}

// sameBytes returns a check that a file is still what it is now.
func sameBytes(path string) func(context.Context) error {
	before, err := sum(path)
	return func(context.Context) error {
		after, err2 := sum(path)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		return expect(nil, before == after, "the bytes of %s have changed", filepath.Base(path))
	}
}

// sum returns the digest of a file's content.
func sum(path string) (digest [sha256.Size]byte, err error) {
	data, err := os.ReadFile(path)
	return sha256.Sum256(data), err
}

// removeThroughMount removes the tree above a mount point by force; what is
// mounted must survive.
func (d *damage) removeThroughMount(ctx context.Context) {
	above := stagePath[:strings.LastIndexByte(stagePath, '\\')]
	d.refuse(ctx, step{"Remove through a mount point", "filesystem", "Rmdir"},
		func(ctx context.Context) error { return d.client.Rmdir(ctx, above, true) },
		func(ctx context.Context) error {
			if err := d.client.MountVolume(ctx, d.staged, stagePath); err != nil {
				return err
			}
			data, err := d.node.ReadFile(ctx, stagePath+`\letter.txt`)
			return expect(err, bytes.Equal(data, letter), "the file on the volume holds %q", data)
		})
}

// escapeByDots names a path that leaves kubelet's folder by dots.
func (d *damage) escapeByDots(ctx context.Context) {
	d.refuse(ctx, step{"Leave kubelet's folder by ..", "filesystem", "Mkdir"},
		func(ctx context.Context) error {
			return d.client.Mkdir(ctx, kubeletPath+`\pods\..\..\..\..\outside`)
		},
		d.absent(`C:\`, "outside"), host.KindInvalid, host.KindDenied)
}

// escapeByLink swaps a pod's folder for a link that leads out, and acts below it.
func (d *damage) escapeByLink(ctx context.Context) {
	const secrets, swapped = `C:\secrets`, kubeletPath + `\pods\swapped`
	if !d.do(ctx, step{"Swap a pod's folder for a link", "", "(program on the node)"}, func(ctx context.Context) (string, error) {
		if err := errors.Join(d.node.WriteFile(ctx, secrets+`\keys\k1`, letter), d.client.Mkdir(ctx, swapped)); err != nil {
			return "", err
		}
		_, err := d.node.SwapForLink(ctx, swapped, secrets)
		return swapped + " -> " + secrets, err
	}) {
		return
	}
	intact := func(ctx context.Context) error {
		names, err := d.node.ListDir(ctx, secrets)
		return expect(err, slices.Equal(names, []string{"keys"}), "%s holds %q", secrets, names)
	}
	refusals := []host.Kind{host.KindDenied, host.KindInvalid, host.KindPrecondition}
	d.refuse(ctx, step{"Make a folder behind the link", "filesystem", "Mkdir"},
		func(ctx context.Context) error { return d.client.Mkdir(ctx, swapped+`\mine`) }, intact, refusals...)
	d.refuse(ctx, step{"Remove a folder behind the link", "filesystem", "Rmdir"},
		func(ctx context.Context) error { return d.client.Rmdir(ctx, swapped+`\keys`, true) }, intact, refusals...)
}

// injectCommand hides a command in a file name.
func (d *damage) injectCommand(ctx context.Context) {
	const name = `x"; New-Item injected; "`
	d.refuse(ctx, step{"Inject a command by a file name", "filesystem", "Rmdir"},
		func(ctx context.Context) error { return d.client.Rmdir(ctx, kubeletPath+`\`+name, true) },
		func(ctx context.Context) error {
			running, err := d.children()
			if err := expect(err, running == 0, "csi-proxy has %d child processes", running); err != nil {
				return err
			}
			return d.absent(kubeletPath, "injected")(ctx)
		}, host.KindInvalid, host.KindDenied)
}

// absent returns a check that a folder of the node has no such name.
func (d *damage) absent(folder, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		names, err := d.node.ListDir(ctx, folder)
		return expect(err, !slices.Contains(names, name), "%s holds %q", folder, names)
	}
}
