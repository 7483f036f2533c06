package sim

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/winos/cim"
)

// ClassDescription is a class as a schema declares it.
type ClassDescription struct {
	Name       string
	Methods    []MethodDescription
	Properties []TypedName
}

// MethodDescription is a method with its in-parameters, in declared order. A
// method without any has an empty In.
type MethodDescription struct {
	Name string
	In   []TypedName
}

// TypedName is a property or parameter.
type TypedName struct {
	Name string
	Type cim.Type
}

// Property finds a property by name, compared without case.
func (d *ClassDescription) Property(name string) (TypedName, bool) {
	i := slices.IndexFunc(d.Properties, func(p TypedName) bool { return strings.EqualFold(p.Name, name) })
	if i < 0 {
		return TypedName{}, false
	}
	return d.Properties[i], true
}

// DescribeClass describes a class of a namespace. Failures: cim.InvalidNamespace
// and cim.InvalidClass.
func (n *Node) DescribeClass(namespace, name string) (ClassDescription, error) {
	if err := n.CheckNamespace(namespace); err != nil {
		return ClassDescription{}, err
	}
	c := n.schema.class(namespace, name)
	if c == nil {
		return ClassDescription{}, &cim.Error{Op: "Class", Object: name, HRESULT: cim.InvalidClass}
	}
	d := ClassDescription{Name: c.name}
	for _, name := range c.order {
		d.Properties = append(d.Properties, TypedName{name, n.propertyType(c, name)})
	}
	for _, m := range c.methods {
		d.Methods = append(d.Methods, MethodDescription{Name: m.name, In: m.signature()})
	}
	slices.SortFunc(d.Methods, func(a, b MethodDescription) int { return strings.Compare(a.Name, b.Name) })
	return d, nil
}

// CheckNamespace fails with cim.InvalidNamespace for a namespace the node lacks.
func (n *Node) CheckNamespace(namespace string) error {
	if n.schema.knowsNamespace(namespace) {
		return nil
	}
	return &cim.Error{Op: "Namespace", Object: namespace, HRESULT: cim.InvalidNamespace}
}

// signature reads the types of the in-parameters; see params.
func (m *method) signature() []TypedName {
	types := map[string]cim.Type{
		"s": cim.TypeString, "b": cim.TypeBoolean, "c16": cim.TypeChar16, "u16": cim.TypeUint16, "u32": cim.TypeUint32, "u64": cim.TypeUint64, "ss": cim.TypeString | cim.TypeArray,
	}
	var out []TypedName
	for _, word := range strings.Fields(m.words) {
		name, t, _ := strings.Cut(word, ":")
		out = append(out, TypedName{name, types[t]})
	}
	return out
}

// propertyType is the declared type of a property. Most are strings, and flags
// by their names; declaredTypes has the rest.
func (n *Node) propertyType(c *class, name string) cim.Type {
	if n.schema.assocs[strings.ToLower(c.name)] != nil {
		return cim.TypeReference
	}
	declared := n.schema.types
	for _, key := range []string{c.name + "." + name, name} {
		if t, ok := declared[key]; ok {
			return t
		}
	}
	if len(name) > 2 && name[:2] == "Is" && name[2] >= 'A' && name[2] <= 'Z' {
		return cim.TypeBoolean
	}
	return cim.TypeString
}

// declaredTypes are the types of properties that are no strings, by name or by
// class and name where classes differ. Source: the classes' schemas.
func declaredTypes() map[string]cim.Type {
	out := map[string]cim.Type{
		"DriveLetter": cim.TypeChar16,
		"AccessPaths": cim.TypeString | cim.TypeArray, "CannotPoolReason": cim.TypeUint16 | cim.TypeArray, "OperationalStatus": cim.TypeUint16 | cim.TypeArray,
		"MSFT_Partition.OperationalStatus":     cim.TypeUint16,
		"MSFT_PhysicalDisk.LogicalSectorSize":  cim.TypeUint64,
		"MSFT_PhysicalDisk.PhysicalSectorSize": cim.TypeUint64,
	}
	for t, names := range map[cim.Type]string{
		cim.TypeBoolean: "BootFromDisk CanPool NoDefaultDriveLetter RequireIntegrity RequirePrivacy UseWriteThrough",
		cim.TypeUint16: "BusType ConnectionType FileSystemType HealthStatus MbrType MediaType NewDiskPolicy OfflineReason PartitionStyle" +
			" ProvisioningType TargetPortalPortNumber TransitionState UniqueIdFormat Usage",
		cim.TypeUint32: "AllocationUnitSize DedupMode DiskNumber DriveType InitiatorPortNumber LogicalSectorSize Number NumberOfConnections" +
			" NumberOfPartitions PartitionNumber PhysicalSectorSize ScrubPolicy Signature Status TargetPortNumber",
		cim.TypeUint64: "AllocatedSize LargestFreeExtent Offset Size SizeRemaining",
	} {
		for _, name := range strings.Fields(names) {
			out[name] = t
		}
	}
	return out
}

// DeviceNames are the names under which the object manager knows the disks and
// volumes that have arrived: `PhysicalDrive0`, `Volume{guid}`. Asking lets no
// time pass for devices on their way. Source: CreateFileW, "Physical Disks and
// Volumes".
func (n *Node) DeviceNames() []string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.off.Load() {
		return nil
	}
	var names []string
	for _, d := range n.arrivedDisksLocked() {
		names = append(names, "PhysicalDrive"+strconv.FormatUint(uint64(d.Number), 10))
	}
	for _, v := range n.volumesLocked() {
		names = append(names, strings.Trim(strings.TrimPrefix(v.name, `\\?\`), `\`))
	}
	return names
}

// ReportService takes over the state of a service that somebody outside the
// node has started or stopped. It takes effect at once and passes no faults.
// An unknown service is ErrServiceNotExist.
func (n *Node) ReportService(_ context.Context, name string, running bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, err := n.openServiceLocked("ReportService", name)
	if err != nil {
		return err
	}
	state, pending := uint32(serviceStopped), uint32(serviceStopPending)
	if running {
		state, pending = serviceRunning, serviceStartPending
	}
	if s.State == state {
		return nil
	}
	s.State, s.ExitCode, s.Pending = pending, 0, 1
	n.pollLocked(s)
	return n.saveLocked()
}
