package sim

import (
	"errors"
	"slices"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// storageSetting is the row type of MSFT_StorageSetting.
type storageSetting struct{}

// storageSettingClass is MSFT_StorageSetting; its methods are static.
func storageSettingClass() *class {
	return newClass(cim.NamespaceStorage, "MSFT_StorageSetting", func(*Node) []storageSetting { return []storageSetting{{}} },
		func(storageSetting) string { return "MSFT_StorageSetting=@" }).
		nodeProp("NewDiskPolicy", func(n *Node, _ storageSetting) any { return n.state.SANPolicy }).
		prop("ScrubPolicy", func(storageSetting) any { return uint32(1) }).
		static("Get", "", func(n *Node, _ args) (cim.Result, error) {
			setting := n.schema.class(cim.NamespaceStorage, "MSFT_StorageSetting").instance(n, storageSetting{}, nil)
			return cim.Result{Out: cim.Values{"StorageSetting": setting}}, nil
		}).
		static("Set", "NewDiskPolicy:u16 ScrubPolicy:u32", setStorageSetting).
		static("UpdateHostStorageCache", "", updateHostStorageCache).class
}

// setStorageSetting is MSFT_StorageSetting.Set. Source: Set-StorageSetting.
func setStorageSetting(n *Node, in args) (cim.Result, error) {
	policies := []uint16{policyOnlineAll, policyOfflineShared, policyOfflineAll, policyOfflineInternal}
	if in.has("NewDiskPolicy") {
		if !slices.Contains(policies, in.u16("NewDiskPolicy")) {
			return returns(codeInvalidParameter)
		}
		n.state.SANPolicy = in.u16("NewDiskPolicy")
	}
	return returns(0)
}

// updateHostStorageCache is MSFT_StorageSetting.UpdateHostStorageCache: it looks
// for new, gone and grown disks. Source: Update-HostStorageCache.
func updateHostStorageCache(n *Node, _ args) (cim.Result, error) {
	n.tickLocked()
	for _, d := range n.disks {
		if err := n.refreshDiskLocked(d); err != nil {
			n.log.Warn("disk not refreshed", "disk", d.Number, "error", err)
		}
	}
	return returns(0)
}

// bios is the row type of Win32_BIOS.
type bios struct{}

// biosClass is Win32_BIOS.
func biosClass() *class {
	return newClass(cim.NamespaceCIMV2, "Win32_BIOS", func(*Node) []bios { return []bios{{}} },
		func(bios) string {
			return `Win32_BIOS.Name="SIMBIOS",SoftwareElementID="SIMBIOS",SoftwareElementState=3,TargetOperatingSystem=0`
		}).
		key("Name", func(bios) any { return "SIMBIOS" }).
		prop("Manufacturer", func(bios) any { return "csi-windows" }).
		prop("Version", func(bios) any { return "SIM - 1" }).
		nodeProp("SerialNumber", func(n *Node, _ bios) any { return textOrNull(n.state.BIOSSerial) }).class
}

// storageAssocs are the associations of disks, partitions and volumes. There is
// none from disk to volume.
func storageAssocs() []*assoc {
	return []*assoc{
		{
			name: "MSFT_DiskToPartition", leftRole: "Disk", rightRole: "Partition",
			leftClass: "MSFT_Disk", rightClass: "MSFT_Partition",
			links: func(n *Node) []pair {
				var out []pair
				for _, p := range n.partitionsLocked() {
					out = append(out, pair{p.disk, p})
				}
				return out
			},
		},
		{
			name: "MSFT_PartitionToVolume", leftRole: "Partition", rightRole: "Volume",
			leftClass: "MSFT_Partition", rightClass: "MSFT_Volume",
			links: func(n *Node) []pair {
				var out []pair
				for _, v := range n.volumesLocked() {
					out = append(out, pair{v.part, v})
				}
				return out
			},
		},
	}
}

// win32Code is the system error number of a failed call of the name space.
func win32Code(err error) uint32 {
	var e *win32.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Code
	}
	return win32.ErrInvalidFunction
}
