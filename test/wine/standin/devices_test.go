package standin

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// driver follows the devices as the kernel driver does.
type driver struct {
	client *Client
	lists  chan []string // what it has made, before it says so
	ended  chan struct{}
}

func (l *link) driver() *driver {
	l.Helper()
	d := &driver{client: l.dial(), lists: make(chan []string, 100), ended: make(chan struct{})}
	go func() {
		defer close(d.ended)
		generation := uint32(0)
		for {
			now, names, err := d.client.Devices(context.Background(), generation, time.Minute)
			if err != nil {
				return
			}
			d.lists <- names
			generation = now
			if d.client.DevicesReady(context.Background(), generation) != nil {
				return
			}
		}
	}()
	l.Cleanup(func() {
		_ = d.client.Close()
		<-d.ended
	})
	return d
}

// An answer that tells of a device comes when the driver has it.
func TestAnswersWaitForTheDriver(t *testing.T) {
	t.Parallel()
	l := open(t)
	d := l.driver()
	if first := <-d.lists; !slices.Contains(first, "PhysicalDrive0") {
		t.Fatalf("devices %q", first)
	}
	number := l.attach(sim.DiskSpec{Bus: "NVMe"})
	select {
	case names := <-d.lists:
		if number != 1 || !slices.Contains(names, "PhysicalDrive1") {
			t.Errorf("devices %q", names)
		}
	default:
		t.Error("the disk was plugged in before the driver had it")
	}
	c := l.dial()
	disk := l.one(c, "SELECT * FROM MSFT_Disk WHERE Number=1")
	l.exec(c, disk.Path, "Initialize", nil)
	before := l.server.Stats().Generation
	l.exec(c, disk.Path, "CreatePartition", cim.Values{"UseMaximumSize": true})
	select {
	case names := <-d.lists:
		if len(names) != 4 || len(names[3]) != len("Volume{}")+36 {
			t.Errorf("devices %q", names)
		}
	default:
		t.Error("the method was answered before the driver had the volume")
	}
	if s := l.server.Stats(); s.Generation != before+1 || s.Ready != s.Generation || s.Drivers != 1 || len(s.Devices) != 4 {
		t.Errorf("stats %+v", s)
	}
}

// A driver that is not ready in time is not waited for again; one that is gone, not at all.
func TestLateDriver(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.server.devices.wait = 20 * time.Millisecond
	d := l.dial()
	generation, _, err := d.Devices(t.Context(), 0, 0)
	l.ok(err)
	l.ok(d.DevicesReady(t.Context(), generation))
	l.code(d.DevicesReady(t.Context(), generation+1), win32.ErrInvalidParameter)
	number := l.attach(sim.DiskSpec{})
	if s := l.server.Stats(); s.Ready == s.Generation {
		t.Errorf("stats %+v", s)
	}
	l.server.devices.wait = time.Hour
	c := l.dial()
	l.one(c, "SELECT * FROM MSFT_Disk WHERE Number=1") // waits no more
	now, names, err := d.Devices(t.Context(), generation, time.Hour)
	l.ok(err)
	if now != generation+1 || !slices.Contains(names, "PhysicalDrive1") {
		t.Errorf("generation %d: %q", now, names)
	}
	l.ok(d.DevicesReady(t.Context(), now))
	l.ok(l.node.DetachDisk(t.Context(), number))
	gone := make(chan error, 1)
	go func() { gone <- d.Close() }()
	l.one(c, everyDisk) // waits until the driver is gone
	l.ok(<-gone)
}

func TestDevicesWithoutNews(t *testing.T) {
	t.Parallel()
	l := open(t)
	c := l.dial()
	generation, names, err := c.Devices(t.Context(), 0, time.Hour)
	l.ok(err)
	again, same, err := c.Devices(t.Context(), generation, 5*time.Millisecond)
	l.ok(err)
	if again != generation || !slices.Equal(names, same) {
		t.Errorf("%d %q became %d %q", generation, names, again, same)
	}
}

func TestServicesReported(t *testing.T) {
	t.Parallel()
	l := open(t)
	c := l.dial()
	_, err := c.Query(t.Context(), cim.NamespaceStorage, "SELECT * FROM MSFT_iSCSITarget")
	l.hresult(err, 0xEFFF003E)
	l.ok(c.ServiceStarted(t.Context(), "MSiSCSI"))
	_, err = c.Query(t.Context(), cim.NamespaceStorage, "SELECT * FROM MSFT_iSCSITarget")
	l.ok(err)
	l.ok(c.ServiceStopped(t.Context(), "msiscsi"))
	_, err = c.Query(t.Context(), cim.NamespaceStorage, "SELECT * FROM MSFT_iSCSITarget")
	l.hresult(err, 0xEFFF003E)
	l.code(c.ServiceStarted(t.Context(), "none"), win32.ErrServiceNotExist)
}

func TestVirtualDisks(t *testing.T) {
	t.Parallel()
	l := open(t)
	c := l.dial()
	ctx := t.Context()
	const path = `C:\scratch.vhdx`
	_, err := c.OpenDisk(ctx, path)
	l.code(err, win32.ErrFileNotFound)
	_, err = c.CreateDisk(ctx, 1000, path)
	l.code(err, win32.ErrInvalidParameter)
	id, err := c.CreateDisk(ctx, 1<<30, path)
	l.ok(err)
	_, err = c.OpenDisk(ctx, `c:\SCRATCH.vhdx`)
	l.code(err, win32.ErrSharingViolation)
	_, err = c.PhysicalPath(ctx, id)
	l.code(err, win32.ErrNotReady)
	l.code(c.DetachDisk(ctx, id), win32.ErrNotReady)
	number, err := c.AttachDisk(ctx, id)
	l.ok(err)
	_, err = c.AttachDisk(ctx, id)
	l.code(err, win32.ErrSharingViolation)
	device, err := c.PhysicalPath(ctx, id)
	l.ok(err)
	disk := l.one(c, "SELECT * FROM MSFT_Disk WHERE Number=1")
	if number != 1 || device != `\\.\PhysicalDrive1` || disk.Props["BusType"] != uint16(15) || disk.Props["Size"] != uint64(1<<30) ||
		disk.Props["IsOffline"] != false {
		t.Errorf("disk %d at %s: %v", number, device, disk.Props)
	}
	l.exec(c, disk.Path, "Initialize", nil)
	l.ok(c.DetachDisk(ctx, id))
	l.ok(c.CloseDisk(ctx, id))
	l.code(c.CloseDisk(ctx, id), win32.ErrInvalidHandle)
	_, err = c.CreateDisk(ctx, 1<<30, path)
	l.code(err, win32.ErrFileExists)
	id, err = c.OpenDisk(ctx, path)
	l.ok(err)
	_, err = c.AttachDisk(ctx, id)
	l.ok(err)
	if again := l.one(c, "SELECT * FROM MSFT_Disk WHERE Number=1"); again.Props["PartitionStyle"] != uint16(2) ||
		again.Props["UniqueId"] != disk.Props["UniqueId"] {
		t.Errorf("opened again: %v", again.Props)
	}
	l.ok(c.CloseDisk(ctx, id)) // takes the disk with it
	if disks, err := l.node.Disks(ctx); err != nil || len(disks) != 1 {
		t.Errorf("disks %v, %v", disks, err)
	}
	l.ok(l.node.RemoveFile(ctx, path))
	_, err = c.CreateDisk(ctx, 2<<30, path)
	l.ok(err)
}
