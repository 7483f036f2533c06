package winos

import (
	"strings"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// diskRow is what is read of MSFT_Disk.
type diskRow struct {
	Path          string `cim:"__RELPATH"`
	Number        uint32 `cim:"Number"`
	Location      string `cim:"Location"`
	FriendlyName  string `cim:"FriendlyName"`
	BusType       uint16 `cim:"BusType"`
	Style         uint16 `cim:"PartitionStyle"`
	SizeBytes     uint64 `cim:"Size"`
	Offline       bool   `cim:"IsOffline"`
	OfflineReason uint16 `cim:"OfflineReason"`
	ReadOnly      bool   `cim:"IsReadOnly"`
	System        bool   `cim:"IsSystem"`
	Boot          bool   `cim:"IsBoot"`
}

// diskHandle is the part of MSFT_Disk that a change of a disk starts from.
type diskHandle struct {
	Path  string `cim:"__RELPATH"`
	Style uint16 `cim:"PartitionStyle"`
}

// diskNumberRow is the part of MSFT_Disk that names the disk.
type diskNumberRow struct {
	Number uint32 `cim:"Number"`
}

var (
	diskTable       = cim.NewTable[diskRow](cim.NamespaceStorage, "MSFT_Disk", "ObjectId")
	diskHandleTable = cim.NewTable[diskHandle](cim.NamespaceStorage, "MSFT_Disk", "ObjectId")
	diskNumberTable = cim.NewTable[diskNumberRow](cim.NamespaceStorage, "MSFT_Disk", "ObjectId")
	storageSettings = cim.NewTable[struct{}](cim.NamespaceStorage, "MSFT_StorageSetting", "NewDiskPolicy")
)

// Numbers of MSFT_Disk.PartitionStyle. Those of Win32 differ.
const (
	wmiStyleMBR = 1
	wmiStyleGPT = 2
)

// busNames are the words for MSFT_Disk.BusType, by number.
var busNames = []string{
	"Unknown", "SCSI", "ATAPI", "ATA", "1394", "SSA", "Fibre Channel", "USB", "RAID", "iSCSI", "SAS", "SATA",
	"SD", "MMC", "Virtual", "File Backed Virtual", "Storage Spaces", "NVMe",
}

// offlineReasons are the words for MSFT_Disk.OfflineReason, by number.
var offlineReasons = []string{
	"", "Policy", "Redundant Path", "Snapshot", "Collision", "Resource Exhaustion",
	"Critical Write Failures", "Data Integrity Scan Required",
}

// wordFor returns the word of a number, or other for a number without one.
func wordFor(words []string, number uint16, other string) string {
	if int(number) < len(words) {
		return words[number]
	}
	return other
}

func styleOf(number uint16) host.PartitionStyle {
	switch number {
	case wmiStyleMBR:
		return host.StyleMBR
	case wmiStyleGPT:
		return host.StyleGPT
	}
	return host.StyleRaw
}

func (r diskRow) disk() agent.OSDisk {
	location, ok := parseLocation(r.Location)
	disk := agent.OSDisk{
		Number:       r.Number,
		HasLocation:  ok,
		Location:     location,
		FriendlyName: strings.TrimSpace(r.FriendlyName),
		BusType:      wordFor(busNames, r.BusType, busNames[0]),
		Style:        styleOf(r.Style),
		SizeBytes:    int64(r.SizeBytes),
		Offline:      r.Offline,
		ReadOnly:     r.ReadOnly,
		System:       r.System || r.Boot,
	}
	if r.Offline {
		disk.OfflineReason = wordFor(offlineReasons, r.OfflineReason, "")
	}
	return disk
}

// parseLocation reads MSFT_Disk.Location, a list of "name number" tokens, by
// name: their set and order differ between kinds of adapters. Port and Channel
// are the adapter's bus; a Bus and Device before the Adapter are the adapter's
// own place on the PCI bus. ok is false for texts without a unit, such as the
// path of a backing file. Examples:
//
//	Integrated : Adapter 3 : Port 0 : Target 0 : LUN 1
//	Integrated : Bus 0 : Device 23 : Function 0 : Adapter 0 : Port 0 : Target 0 : LUN 0
//	PCI Slot 0 : Adapter 0 : Channel 0 : Device 0
func parseLocation(text string) (location host.DiskLocation, ok bool) {
	for token := range strings.SplitSeq(text, ":") {
		name, number, found := cutLastBlank(strings.TrimSpace(token))
		if !found {
			continue
		}
		switch strings.ToLower(name) {
		case "adapter":
			location = host.DiskLocation{Adapter: number}
		case "port", "channel":
			location.Bus = number
		case "target", "device":
			location.Target = number
		case "lun":
			location.LUNID = number
		}
	}
	return location, location.Target != "" || location.LUNID != ""
}

// cutLastBlank splits "PCI Slot 0" into name and decimal number.
func cutLastBlank(token string) (name, number string, ok bool) {
	i := strings.LastIndexByte(token, ' ')
	if i < 0 || i == len(token)-1 {
		return "", "", false
	}
	for _, c := range token[i+1:] {
		if c < '0' || c > '9' {
			return "", "", false
		}
	}
	return strings.TrimSpace(token[:i]), token[i+1:], true
}
