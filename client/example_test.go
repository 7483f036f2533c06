package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// A node plugin stages a volume: it finds the disk by its lasting name, makes sure
// that there is a file system on it, and mounts it. Every step may be repeated.
func Example() {
	place, stop := serve()
	defer stop()

	// On a node the zero value of Options is right.
	c, err := client.New(client.Options{Place: place})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }()

	if err := stage(context.Background(), c, "naa.600", `C:\var\lib\kubelet\plugins\staging`); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("disk", c.Chosen()["disk"], "volume", c.Chosen()["volume"])
	// Output: disk v1 volume v2alpha1
}

// stage takes the contract, not the client: a test can pass any host.Host.
func stage(ctx context.Context, h host.Host, page83, path string) error {
	if err := h.Rescan(ctx); err != nil {
		return err
	}
	disks, err := h.ListDiskIDs(ctx)
	if err != nil {
		return err
	}
	for number, ids := range disks {
		if ids.Page83 != page83 {
			continue
		}
		if err := h.SetDiskState(ctx, number, true); err != nil {
			return err
		}
		if err := h.PartitionDisk(ctx, number); err != nil {
			return err
		}
		volumes, err := h.ListVolumesOnDisk(ctx, number, 0)
		if err != nil {
			return err
		}
		if len(volumes) != 1 {
			return fmt.Errorf("disk %d has %d volumes", number, len(volumes))
		}
		if err := h.FormatVolume(ctx, volumes[0]); err != nil {
			return err // KindPrecondition: it holds somebody's data
		}
		return h.MountVolume(ctx, volumes[0], path)
	}
	return fmt.Errorf("no disk %s", page83)
}

// What csi-proxy has not got is said by the kind of the error, and so is
// everything else a driver acts on.
func ExampleClient_kinds() {
	place, stop := serve("disk/v1")
	defer stop()

	c, err := client.New(client.Options{Place: place})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }()

	err = c.SetDiskReadOnly(context.Background(), 3, true)
	switch {
	case err == nil:
		fmt.Println("read-only")
	case host.IsKind(err, host.KindUnsupported):
		fmt.Println("this csi-proxy cannot: publish it read-only another way")
	case host.IsKind(err, host.KindUnavailable), host.IsKind(err, host.KindBusy):
		fmt.Println("try again later")
	default:
		fmt.Println(err)
	}
	// Output: this csi-proxy cannot: publish it read-only another way
}

// A driver leaves a whole CSI node call to csi-proxy when that has the node tasks,
// and makes the same tasks itself over the primitives of one that has not.
func ExampleClient_HasNode() {
	place, stop := serve()
	defer stop()

	c, err := client.New(client.Options{Place: place})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }()

	ctx := context.Background()
	var tasks node.Node = c
	has, err := c.HasNode(ctx)
	if err == nil && !has {
		tasks, err = node.New(c, node.Options{})
	}
	if err != nil {
		fmt.Println(err) // csi-proxy is away: ask again later
		return
	}
	err = tasks.Stage(ctx, node.StageRequest{
		VolumeID: "vol-1", StagingPath: `C:\var\lib\kubelet\plugins\staging`,
		Source: node.Source{Disk: &node.DiskSource{Page83: "naa.600"}},
	})
	fmt.Println("tasks of csi-proxy:", has, "error:", err)
	// Output: tasks of csi-proxy: true error: <nil>
}

// serve starts a csi-proxy that stands in for the node's, with some APIs or all.
func serve(names ...string) (place pipe.Place, stop func()) {
	var apis []wire.API
	for _, name := range names {
		parsed, err := wire.ParseAPIs(name)
		must(err)
		apis = append(apis, parsed...)
	}
	place.Dir = fmt.Sprintf("csi-windows-example-%d", os.Getpid())
	if runtime.GOOS != "windows" {
		dir, err := os.MkdirTemp("", "pipes")
		must(err)
		place.Dir = dir
	}
	server, err := wire.NewServer(wire.ServerConfig{Place: place, APIs: apis, Node: &wiretest.Node{}, Host: &wiretest.Host{
		IDs: map[uint32]host.DiskIDs{3: {Page83: "naa.600"}}, VolumeIDs: []string{`\\?\Volume{1}\`},
	}})
	must(err)
	must(server.Start(context.Background()))
	return place, func() {
		err := server.Shutdown(context.Background())
		if runtime.GOOS != "windows" {
			err = errors.Join(err, os.RemoveAll(place.Dir))
		}
		must(err)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
