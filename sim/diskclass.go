package sim

import (
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/sim/image"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// Operational states. Source: MSFT_Disk.OperationalStatus.
const (
	statusOnline  = 0xD010
	statusOffline = 0xD013
)

// arrivedDisksLocked lists the disks the operating system knows.
func (n *Node) arrivedDisksLocked() []*disk {
	out := make([]*disk, 0, len(n.disks))
	for _, d := range n.disks {
		if d.arrived() {
			out = append(out, d)
		}
	}
	return out
}

// diskClass is MSFT_Disk.
func diskClass() *class {
	c := newClass(cim.NamespaceStorage, "MSFT_Disk", (*Node).arrivedDisksLocked, func(d *disk) string { return d.objectPath }).
		key("ObjectId", func(d *disk) any { return d.objectID }).
		prop("UniqueId", func(d *disk) any { return d.uniqueID }).
		prop("UniqueIdFormat", func(d *disk) any { return d.idFormat }).
		prop("Number", func(d *disk) any { return d.Number }).
		prop("Path", func(d *disk) any { return d.path }).
		prop("Location", func(d *disk) any { return textOrNull(d.location) }).
		prop("FriendlyName", func(d *disk) any { return d.friendlyName() }).
		prop("Manufacturer", func(d *disk) any { return textOrNull(d.Spec.Manufacturer) }).
		prop("Model", func(d *disk) any { return textOrNull(d.Spec.Model) }).
		prop("SerialNumber", func(d *disk) any { return textOrNull(d.Spec.Serial) }).
		prop("FirmwareVersion", func(*disk) any { return "1.0" }).
		prop("AdapterSerialNumber", func(*disk) any { return nil }).
		prop("BusType", func(d *disk) any { return d.bus }).
		prop("Size", func(d *disk) any { return uint64(d.SizeBytes) }).
		prop("AllocatedSize", func(d *disk) any { return uint64(d.layout.AllocatedBytes) }).
		prop("LargestFreeExtent", func(d *disk) any { return uint64(d.layout.LargestFreeExtentBytes) }).
		prop("LogicalSectorSize", func(*disk) any { return uint32(image.SectorBytes) }).
		prop("PhysicalSectorSize", func(*disk) any { return uint32(4096) }).
		prop("NumberOfPartitions", func(d *disk) any { return uint32(len(d.layout.Entries)) }).
		prop("PartitionStyle", func(d *disk) any { return uint16(d.layout.Style) }).
		prop("ProvisioningType", func(*disk) any { return uint16(1) }).
		prop("Signature", func(d *disk) any { return ifStyle(d, image.StyleMBR, d.layout.Signature) }).
		prop("Guid", func(d *disk) any { return ifStyle(d, image.StyleGPT, d.layout.DiskGUID) }).
		prop("OperationalStatus", func(d *disk) any { return d.operationalStatus() }).
		prop("HealthStatus", func(*disk) any { return uint16(0) }).
		prop("IsOffline", func(d *disk) any { return d.Offline }).
		prop("IsReadOnly", func(d *disk) any { return d.readOnlyNow() }).
		prop("OfflineReason", func(d *disk) any { return d.offlineReason() })
	for _, name := range []string{"IsSystem", "IsBoot", "BootFromDisk"} {
		c.prop(name, func(d *disk) any { return d.System })
	}
	for _, name := range []string{"IsClustered", "IsHighlyAvailable", "IsScaleOut"} {
		c.prop(name, func(*disk) any { return false })
	}
	return diskMethods(c)
}

// ifStyle gives a property that only one partition style has, NULL otherwise.
func ifStyle(d *disk, style image.Style, value any) any {
	if d.layout.Style != style {
		return nil
	}
	return value
}

func (d *disk) friendlyName() string {
	if d.Spec.FriendlyName != "" {
		return d.Spec.FriendlyName
	}
	return trimWords(d.Spec.Manufacturer, d.Spec.Model)
}

func (d *disk) operationalStatus() []uint16 {
	if d.Offline {
		return []uint16{statusOffline}
	}
	return []uint16{statusOnline}
}

// offlineReason is NULL on an online disk, as in dumps of real servers.
func (d *disk) offlineReason() any {
	if !d.Offline || d.Reason == 0 {
		return nil
	}
	return d.Reason
}

// physicalDisk is the row type of MSFT_PhysicalDisk.
type physicalDisk struct{ *disk }

func (p physicalDisk) physicalID() string {
	return strings.NewReplacer("WSP_Disk", "WSP_PhysicalDisk", ":DI:", ":PD:").Replace(p.objectID)
}

// physicalDiskClass is MSFT_PhysicalDisk; sector sizes are 64 bits wide here.
func physicalDiskClass() *class {
	rows := func(n *Node) []physicalDisk {
		var out []physicalDisk
		for _, d := range n.arrivedDisksLocked() {
			out = append(out, physicalDisk{d})
		}
		return out
	}
	return newClass(cim.NamespaceStorage, "MSFT_PhysicalDisk", rows,
		func(p physicalDisk) string { return objectPath("MSFT_PhysicalDisk", p.physicalID()) }).
		key("ObjectId", func(p physicalDisk) any { return p.physicalID() }).
		prop("DeviceId", func(p physicalDisk) any { return strconv.Itoa(int(p.Number)) }).
		prop("UniqueId", func(p physicalDisk) any { return p.uniqueID }).
		prop("FriendlyName", func(p physicalDisk) any { return p.friendlyName() }).
		prop("BusType", func(p physicalDisk) any { return p.bus }).
		prop("MediaType", func(p physicalDisk) any { return p.mediaType() }).
		prop("Size", func(p physicalDisk) any { return uint64(p.SizeBytes) }).
		prop("AllocatedSize", func(p physicalDisk) any { return uint64(p.layout.AllocatedBytes) }).
		prop("LogicalSectorSize", func(physicalDisk) any { return uint64(image.SectorBytes) }).
		prop("PhysicalSectorSize", func(physicalDisk) any { return uint64(4096) }).
		prop("SerialNumber", func(p physicalDisk) any { return textOrNull(p.Spec.Serial) }).
		prop("PhysicalLocation", func(p physicalDisk) any { return textOrNull(p.location) }).
		prop("CanPool", func(physicalDisk) any { return false }).
		prop("CannotPoolReason", func(physicalDisk) any { return []uint16{2} }).
		prop("Usage", func(physicalDisk) any { return uint16(1) }).
		prop("HealthStatus", func(physicalDisk) any { return uint16(0) }).
		prop("OperationalStatus", func(physicalDisk) any { return []uint16{2} }).class
}

// mediaType is SSD on NVMe and unspecified elsewhere. Source: MSFT_PhysicalDisk.MediaType.
func (d *disk) mediaType() uint16 {
	if d.bus == 17 {
		return 4
	}
	return 0
}
