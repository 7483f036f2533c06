package sim

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/sim/wql"
)

// busTypes are MSFT_Disk.BusType and STORAGE_BUS_TYPE by name. Source:
// MSFT_Disk.BusType, ntddstor.h.
var busTypes = map[string]uint16{
	"scsi": 1, "atapi": 2, "ata": 3, "1394": 4, "ssa": 5, "fibrechannel": 6, "usb": 7, "raid": 8, "iscsi": 9,
	"sas": 10, "sata": 11, "sd": 12, "mmc": 13, "virtual": 14, "filebackedvirtual": 15, "storagespaces": 16, "nvme": 17,
}

// busNumber reads a bus name without regard to case and blanks.
func busNumber(name string) (uint16, error) {
	if name == "" {
		name = "SCSI"
	}
	folded := strings.ToLower(strings.NewReplacer(" ", "", "-", "", "_", "").Replace(name))
	number, ok := busTypes[folded]
	if !ok {
		return 0, fmt.Errorf("unknown bus type %q", name)
	}
	return number, nil
}

// sharedBus tells the buses on which the SAN policy OfflineShared keeps new
// disks offline. Source: VDS_SAN_POLICY; Set-StorageSetting -NewDiskPolicy.
func sharedBus(bus uint16) bool {
	return slices.Contains([]uint16{1, 6, 9, 10}, bus)
}

// buildPage83 lays out a STORAGE_DEVICE_ID_DESCRIPTOR: Version, Size,
// NumberOfIdentifiers, then one STORAGE_IDENTIFIER after the other. Source: ntddstor.h.
func buildPage83(ids []DeviceID) []byte {
	if len(ids) == 0 {
		return nil
	}
	le := binary.LittleEndian
	var header [12]byte
	out := append([]byte(nil), header[:]...)
	for i, id := range ids {
		entry := make([]byte, (16+len(id.ID)+3)/4*4)
		le.PutUint32(entry, id.CodeSet)
		le.PutUint32(entry[4:], id.Type)
		le.PutUint16(entry[8:], uint16(len(id.ID)))
		if i+1 < len(ids) {
			le.PutUint16(entry[10:], uint16(len(entry)))
		}
		le.PutUint32(entry[12:], id.Association)
		copy(entry[16:], id.ID)
		out = append(out, entry...)
	}
	le.PutUint32(out, 16) // version: size of the declared structure
	le.PutUint32(out[4:], uint32(len(out)))
	le.PutUint32(out[8:], uint32(len(ids)))
	return out
}

// parsePage83 reads the identifiers of a raw descriptor; a damaged one gives
// those before the damage.
func parsePage83(raw []byte) []DeviceID {
	if len(raw) < 12 {
		return nil
	}
	le := binary.LittleEndian
	var out []DeviceID
	at := 12
	for range le.Uint32(raw[8:]) {
		if at+16 > len(raw) {
			break
		}
		size, next := int(le.Uint16(raw[at+8:])), int(le.Uint16(raw[at+10:]))
		if at+16+size > len(raw) {
			break
		}
		out = append(out, DeviceID{
			CodeSet: le.Uint32(raw[at:]), Type: le.Uint32(raw[at+4:]), Association: le.Uint32(raw[at+12:]),
			ID: slices.Clone(raw[at+16 : at+16+size]),
		})
		if next == 0 {
			break
		}
		at += next
	}
	return out
}

// uniqueID is MSFT_Disk.UniqueId and UniqueIdFormat: of the device's own
// identifiers the first format in the provider's order 8, 3, 2, 1, 0. A disk
// without any gets its device instance with the host name at the end. Source:
// MSFT_Disk.UniqueIdFormat.
func uniqueID(ids []DeviceID, instance, host string) (string, uint16) {
	for _, format := range []uint32{8, 3, 2, 1, 0} {
		for _, id := range ids {
			if id.Association != 0 || id.Type != format || len(id.ID) == 0 {
				continue
			}
			if format == 8 || format == 0 && id.CodeSet != 1 {
				return string(id.ID), uint16(format)
			}
			return strings.ToUpper(hex.EncodeToString(id.ID)), uint16(format)
		}
	}
	return instance + ":" + host, 0
}

// devicePath is MSFT_Disk.Path: the device interface of a disk.
func devicePath(spec *DiskSpec, bus uint16, place diskPlace) string {
	kind := "scsi"
	switch bus {
	case 7:
		kind = "usbstor"
	case 17:
		kind = "nvme"
	}
	clean := func(s string) string {
		return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), " ", "_"))
	}
	return fmt.Sprintf(`\\?\%s#disk&ven_%s&prod_%s#%x&%08x&%x&%02x%02x%02x#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}`,
		kind, clean(spec.Manufacturer), clean(spec.Model), 6, 0x2cdaf2aa, place.port, place.path, place.target, place.lun)
}

// diskPlace is a disk's SCSI address.
type diskPlace struct{ port, path, target, lun uint8 }

// location is MSFT_Disk.Location in the form servers print.
func (p diskPlace) location(bus uint16) string {
	if bus == 17 {
		return fmt.Sprintf("PCI Slot %d : Adapter %d : Channel %d : Device %d", p.lun, p.port, p.path, p.target)
	}
	return fmt.Sprintf("Integrated : Adapter %d : Port %d : Target %d : LUN %d", p.port, p.path, p.target, p.lun)
}

// objectPath is the path of a storage object.
func objectPath(class, objectID string) string {
	return wql.FormatPath(class, wql.Key{Name: "ObjectId", Value: objectID})
}

// offsetGUID is the prefix of a partition's UniqueId: the byte offset as the
// last eight bytes of a GUID, little-endian.
func offsetGUID(offsetBytes uint64) string {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], offsetBytes)
	return fmt.Sprintf("{00000000-0000-0000-%x-%x}", b[:2], b[2:])
}

// mbrVolumeGUID is the GUID of a volume on an MBR disk: disk signature and
// offset. Source: the mount manager's names for MBR partitions.
func mbrVolumeGUID(signature uint32, offsetBytes uint64) string {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], offsetBytes)
	return fmt.Sprintf("%08x-0000-0000-%x-%x", signature, b[:2], b[2:])
}
