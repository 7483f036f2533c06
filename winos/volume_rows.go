package winos

import (
	"strings"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// volumeRow is what is read of MSFT_Volume.
type volumeRow struct {
	ID           string   `cim:"Path"`
	FileSystem   string   `cim:"FileSystem"`
	Label        string   `cim:"FileSystemLabel"`
	SizeBytes    uint64   `cim:"Size"`
	FreeBytes    uint64   `cim:"SizeRemaining"`
	ClusterBytes uint32   `cim:"AllocationUnitSize"`
	Health       *uint16  `cim:"HealthStatus"`
	Status       []uint16 `cim:"OperationalStatus"`
}

// partitionRow is what is read of MSFT_Partition.
type partitionRow struct {
	Path        string   `cim:"__RELPATH"`
	Disk        uint32   `cim:"DiskNumber"`
	Number      uint32   `cim:"PartitionNumber"`
	SizeBytes   uint64   `cim:"Size"`
	AccessPaths []string `cim:"AccessPaths"`
}

// objectRow is an object of which only the path is wanted.
type objectRow struct {
	Path string `cim:"__RELPATH"`
}

var (
	volumeTable       = cim.NewTable[volumeRow](cim.NamespaceStorage, "MSFT_Volume", "ObjectId")
	volumeObjectTable = cim.NewTable[objectRow](cim.NamespaceStorage, "MSFT_Volume", "ObjectId")
	partitionTable    = cim.NewTable[partitionRow](cim.NamespaceStorage, "MSFT_Partition", "ObjectId")
)

// Numbers of MSFT_Volume.HealthStatus.
const (
	healthHealthy   = 0
	healthWarning   = 1
	healthUnhealthy = 2
)

// statusWords are the words for MSFT_Volume.OperationalStatus. Unknown and OK say
// nothing about a fault.
var statusWords = map[uint16]string{
	3: "Degraded", 4: "Stressed", 5: "Predictive Failure", 6: "Error", 7: "Non-Recoverable Error",
	12: "No Contact", 13: "Lost Communication", 14: "Aborted",
	0xD00D: "Scan Needed", 0xD00E: "Spot Fix Needed", 0xD00F: "Full Repair Needed",
}

// health reads both states: either may be the one that knows of a fault.
func (r volumeRow) health() (host.VolumeHealth, string) {
	var details []string
	for _, status := range r.Status {
		if word, ok := statusWords[status]; ok {
			details = append(details, word)
		}
	}
	detail := strings.Join(details, ", ")
	switch {
	case r.Health == nil:
		return host.HealthUnknown, detail
	case *r.Health == healthHealthy && detail == "":
		return host.HealthOK, ""
	case *r.Health <= healthWarning:
		return host.HealthWarning, detail
	case *r.Health == healthUnhealthy:
		return host.HealthBad, detail
	}
	return host.HealthUnknown, detail
}

func (r volumeRow) volume() agent.OSVolume {
	v := agent.OSVolume{
		ID:           withBackslash(r.ID),
		FileSystem:   r.FileSystem,
		Label:        r.Label,
		SizeBytes:    int64(r.SizeBytes),
		FreeBytes:    int64(r.FreeBytes),
		ClusterBytes: r.ClusterBytes,
	}
	v.Health, v.HealthDetail = r.health()
	return v
}

// volumeID returns the volume name among the access paths of a partition; it is
// empty for a partition without volume.
func (r partitionRow) volumeID() string {
	for _, path := range r.AccessPaths {
		if len(path) >= len(volumePrefix) && strings.EqualFold(path[:len(volumePrefix)], volumePrefix) {
			return withBackslash(path)
		}
	}
	return ""
}

const volumePrefix = `\\?\Volume{`

func withBackslash(path string) string {
	if strings.HasSuffix(path, `\`) {
		return path
	}
	return path + `\`
}
