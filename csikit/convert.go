package csikit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
)

// Keys of a volume's context (a backend takes them from the parameters of
// CreateVolume; the author of a static volume writes them by hand) that say how a
// node formats an empty disk.
const (
	// ContextFileSystem is "NTFS" or "ReFS", "exFAT", "FAT32"; the file system
	// of a request goes before it.
	ContextFileSystem = "csi-windows/file-system"
	// ContextClusterBytes is the cluster size in bytes, a power of two.
	ContextClusterBytes = "csi-windows/cluster-size-bytes"
	// ContextLabel is the label of the volume, at most 32 characters.
	ContextLabel = "csi-windows/label"
)

// refuse makes the error of a request: its kind, the field, and what is wrong.
func refuse(kind error, field, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", kind, field, fmt.Sprintf(format, args...))
}

// capabilityOf is one capability of a request. No value of a mount flag gets into
// an error: some people put passwords there.
func capabilityOf(c *csi.VolumeCapability) (Capability, error) {
	if c.GetBlock() != nil {
		return Capability{}, refuse(ErrInvalid, "volume_capability.block",
			"Windows cannot hand a raw block device to a container, ask for a volume with a file system")
	}
	if c.GetMount() == nil {
		return Capability{}, refuse(ErrInvalid, "volume_capability.access_type", "is missing")
	}
	mode := AccessMode(c.GetAccessMode().GetMode())
	if mode < SingleNodeWriter || mode > SingleNodeMultiWriter {
		return Capability{}, refuse(ErrInvalid, "volume_capability.access_mode", "is missing or unknown")
	}
	if err := checkFileSystem("volume_capability.mount.fs_type", c.GetMount().GetFsType()); err != nil {
		return Capability{}, err
	}
	for i, flag := range c.GetMount().GetMountFlags() {
		if flag != flagReadOnly && flag != "rw" {
			return Capability{}, refuse(ErrInvalid, fmt.Sprintf("volume_capability.mount.mount_flags[%d]", i),
				`Windows knows no such mount flag, only "ro" and "rw"`)
		}
	}
	return Capability{
		AccessMode: mode, FileSystem: c.GetMount().GetFsType(),
		MountFlags: c.GetMount().GetMountFlags(), VolumeMountGroup: c.GetMount().GetVolumeMountGroup(),
	}, nil
}

const flagReadOnly = "ro"

// checkFileSystem refuses what Windows cannot make.
func checkFileSystem(field, name string) error {
	if _, ok := host.FileSystemName(name); !ok {
		return refuse(ErrInvalid, field, "%.32q is no file system of Windows, which are NTFS, ReFS, exFAT and FAT32", name)
	}
	return nil
}

// capabilitiesOf are the capabilities of a request, each accepted by check.
func capabilitiesOf(asked []*csi.VolumeCapability, check func(Capability) error) ([]Capability, error) {
	capabilities := make([]Capability, 0, len(asked))
	for _, c := range asked {
		capability, err := capabilityOf(c)
		if err == nil {
			err = check(capability)
		}
		if err != nil {
			return nil, err
		}
		capabilities = append(capabilities, capability)
	}
	return capabilities, nil
}

// singleNodeOnly takes every mode for one node: the rule of a backend without a
// CapabilityChecker.
func singleNodeOnly(c Capability) error {
	switch c.AccessMode {
	case SingleNodeWriter, SingleNodeReaderOnly, SingleNodeSingleWriter, SingleNodeMultiWriter:
		return nil
	default:
		return refuse(ErrInvalid, "volume_capability.access_mode", "%s: volumes of this driver are used by one node at a time",
			csi.VolumeCapability_AccessMode_Mode(c.AccessMode))
	}
}

// accessOf is what a capability comes to on a node.
func accessOf(c Capability) node.Access {
	return node.Access{
		ReadOnly: c.AccessMode == SingleNodeReaderOnly || c.AccessMode == MultiNodeReaderOnly ||
			slices.Contains(c.MountFlags, flagReadOnly),
		SingleWriter: c.AccessMode == SingleNodeSingleWriter,
	}
}

// formatOf is how an empty disk is formatted: as the capability asks, else as the
// context (or the parameters it is made from) says.
func formatOf(c Capability, field string, context map[string]string) (host.FormatOptions, error) {
	options := host.FormatOptions{FileSystem: c.FileSystem, Label: context[ContextLabel]}
	if options.FileSystem == "" {
		options.FileSystem = context[ContextFileSystem]
		if err := checkFileSystem(field+"["+ContextFileSystem+"]", options.FileSystem); err != nil {
			return options, err
		}
	}
	options.FileSystem, _ = host.FileSystemName(options.FileSystem)
	if text := context[ContextClusterBytes]; text != "" {
		clusterBytes, err := strconv.ParseUint(text, 10, 32)
		if err != nil || clusterBytes&(clusterBytes-1) != 0 {
			return options, refuse(ErrInvalid, field+"["+ContextClusterBytes+"]", "is no power of two")
		}
		options.ClusterBytes = uint32(clusterBytes)
	}
	return options, nil
}

// capacityOf is the range of a request. Nil is no limit. CSI wants one of the two set
// in a range that is there, and yet one with neither is taken for none where the range
// may be left out: it asks for nothing that could be got wrong. A limit below what is
// required is no size at all, so a bad field, and not OutOfRange.
//
// Source: CSI spec.md, message CapacityRange, and Error Scheme.
func capacityOf(r *csi.CapacityRange) (CapacityRange, error) {
	capacity := CapacityRange{RequiredBytes: r.GetRequiredBytes(), LimitBytes: r.GetLimitBytes()}
	if capacity.RequiredBytes < 0 || capacity.LimitBytes < 0 {
		return capacity, refuse(ErrInvalid, "capacity_range", "a size is negative")
	}
	if capacity.LimitBytes > 0 && capacity.LimitBytes < capacity.RequiredBytes {
		return capacity, refuse(ErrInvalid, "capacity_range", "limit_bytes %d is less than required_bytes %d",
			capacity.LimitBytes, capacity.RequiredBytes)
	}
	return capacity, nil
}

// holds reports whether a size lies in the range. A size that nobody knows does.
func (r CapacityRange) holds(sizeBytes int64) bool {
	return sizeBytes == 0 || sizeBytes >= r.RequiredBytes && (r.LimitBytes == 0 || sizeBytes <= r.LimitBytes)
}

// sourceOf is what a new volume is made from, nil when from nothing.
func sourceOf(s *csi.VolumeContentSource) (*ContentSource, error) {
	if s == nil {
		return nil, nil
	}
	source := &ContentSource{VolumeID: s.GetVolume().GetVolumeId(), SnapshotID: s.GetSnapshot().GetSnapshotId()}
	if *source == (ContentSource{}) {
		return nil, refuse(ErrInvalid, "volume_content_source", "names neither a volume nor a snapshot")
	}
	return source, nil
}

func topologiesOf(asked []*csi.Topology) []Topology {
	topologies := make([]Topology, 0, len(asked))
	for _, t := range asked {
		topologies = append(topologies, t.GetSegments())
	}
	return topologies
}

// reaches reports whether a volume at the places at can be used from one of those
// that are asked for. No places at all are everywhere.
func reaches(at, asked []Topology) bool {
	if len(at) == 0 || len(asked) == 0 {
		return true
	}
	return slices.ContainsFunc(at, func(place Topology) bool {
		return slices.ContainsFunc(asked, func(other Topology) bool { return place.within(other) || other.within(place) })
	})
}

// within reports whether a place has every segment of a wider one.
func (t Topology) within(wider Topology) bool {
	for key, value := range wider {
		if t[key] != value {
			return false
		}
	}
	return true
}

// contextFits reports whether the context of a request is that of the volume.
// Kubernetes puts keys of its own beside those of a driver.
func contextFits(asked, have map[string]string) bool {
	theirs := maps.Clone(asked)
	maps.DeleteFunc(theirs, func(key, _ string) bool {
		prefix, _, found := strings.Cut(key, "/")
		return found && (strings.HasSuffix(prefix, "kubernetes.io") || strings.HasSuffix(prefix, "k8s.io"))
	})
	return maps.Equal(theirs, have)
}
