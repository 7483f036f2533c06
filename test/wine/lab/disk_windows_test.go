package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// A disk is seen by WMI, by its device and in the list of volumes, as soon as it
// is plugged in, and is gone from all when it is pulled.
func TestDiskIsSeenEveryWay(t *testing.T) {
	n := bed.Connect(t)
	n.Fresh()
	ctx := t.Context()
	number := n.Attach(sim.DiskSpec{Bus: "NVMe", Serial: "LAB-1"})
	session := bed.Session(t)
	query := fmt.Sprintf("SELECT * FROM MSFT_Disk WHERE Number=%d", number)
	rows, err := session.Query(ctx, cim.NamespaceStorage, query)
	n.OK(err)
	if len(rows) != 1 || rows[0].Props["SerialNumber"] != "LAB-1" || rows[0].Props["Size"] != uint64(5*bed.GiB) {
		t.Fatalf("WMI sees %v", rows)
	}
	api := win32.System()
	path := fmt.Sprintf(`\\.\PhysicalDrive%d`, number)
	h, err := api.CreateFile(ctx, path, win32.Open{Access: win32.GenericRead, Share: win32.ShareRead | win32.ShareWrite})
	n.OK(err)
	length := make([]byte, 8)
	_, err = api.DeviceIoControl(ctx, h, win32.IoctlDiskGetLengthInfo, nil, length)
	n.OK(errors.Join(err, api.CloseHandle(h)))
	if got := int64(binary.LittleEndian.Uint64(length)); got != 5*bed.GiB {
		t.Errorf("the device has %d bytes", got)
	}
	for _, call := range []string{"Initialize", "CreatePartition"} {
		in := cim.Values{}
		if call == "CreatePartition" {
			in["UseMaximumSize"] = true
		}
		result, err := session.Exec(ctx, cim.NamespaceStorage, rows[0].Path, call, in)
		n.OK(err)
		if result.ReturnValue != 0 {
			t.Fatalf("%s returned %d", call, result.ReturnValue)
		}
	}
	disks, err := n.Control.Disks(ctx)
	n.OK(err)
	volume := disks[number].Volumes[0]
	volumes, err := api.FindVolumes(ctx)
	n.OK(err)
	if !slices.ContainsFunc(volumes, func(v string) bool { return strings.EqualFold(v, volume) }) {
		t.Errorf("no %s among the volumes %q", volume, volumes)
	}
	n.OK(n.Control.DetachDisk(ctx, number))
	rows, err = session.Query(ctx, cim.NamespaceStorage, query)
	n.OK(err)
	if _, err := api.CreateFile(ctx, path, win32.Open{}); err == nil || len(rows) != 0 {
		t.Errorf("the disk is still there: %v, rows %v", err, rows)
	}
}
