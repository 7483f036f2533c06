package csikit

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// controller is the Controller service over a Backend. It does what is the same for
// every backend: it turns down what can never work before the backend is asked,
// compares what is there with what is asked for, and holds the backend's answers to
// the rules of CSI. It deletes nothing on its own: a volume that does not fit a
// request is somebody's.
type controller struct {
	DefaultController
	driver  *Driver
	backend Backend
	// check says whether the backend can do a capability.
	check func(Capability) error
}

func newController(d *Driver) *controller {
	c := &controller{
		DefaultController: DefaultController{Capabilities: d.controllerCapabilities()},
		driver:            d, backend: d.backend, check: singleNodeOnly,
	}
	if checker, ok := d.backend.(CapabilityChecker); ok {
		c.check = checker.CheckCapability
	}
	return c
}

// part returns the backend as one of its further interfaces.
func part[I any](c *controller, call string) (I, error) {
	p, ok := c.backend.(I)
	if !ok {
		return p, refuse(ErrUnsupported, call, "the backend of this driver cannot do it")
	}
	return p, nil
}

// gone makes success of ErrNotFound: what is to be gone is.
func gone(err error) error {
	if says(err, codes.NotFound) {
		return nil
	}
	return err
}

// says reports whether an error, of whatever form, has a code.
func says(err error, code codes.Code) bool { return err != nil && codeOf(err) == code }

// CreateVolume makes a volume, from nothing, a snapshot or another volume.
func (c *controller) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	request, err := c.createRequest(r)
	if err != nil {
		return nil, err
	}
	create, err := c.creator(request.Source)
	if err != nil {
		return nil, err
	}
	volume, err := create(ctx, request)
	if err != nil {
		return nil, err
	}
	answer, err := c.driver.volumeAnswer(volume)
	if err != nil {
		return nil, err
	}
	if err := fits(volume, request); err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: answer}, nil
}

// createRequest checks all of a request that can be checked without the backend.
func (c *controller) createRequest(r *csi.CreateVolumeRequest) (CreateVolumeRequest, error) {
	request := CreateVolumeRequest{
		Name: r.GetName(), Parameters: r.GetParameters(), MutableParameters: r.GetMutableParameters(), Secrets: r.GetSecrets(),
		Requisite: topologiesOf(r.GetAccessibilityRequirements().GetRequisite()),
		Preferred: topologiesOf(r.GetAccessibilityRequirements().GetPreferred()),
	}
	var err error
	if len(r.GetVolumeCapabilities()) == 0 {
		return request, refuse(ErrInvalid, "volume_capabilities", "is missing")
	}
	if request.Capabilities, err = capabilitiesOf(r.GetVolumeCapabilities(), c.check); err != nil {
		return request, err
	}
	for _, capability := range request.Capabilities {
		if _, err := formatOf(capability, "parameters", request.Parameters); err != nil {
			return request, err
		}
	}
	if request.Capacity, err = capacityOf(r.GetCapacityRange()); err != nil {
		return request, err
	}
	if request.Source, err = sourceOf(r.GetVolumeContentSource()); err != nil {
		return request, err
	}
	return request, first(c.checkParameters(request.Parameters), c.checkMutable(request.MutableParameters))
}

func (c *controller) checkParameters(parameters map[string]string) error {
	if checker, ok := c.backend.(ParameterChecker); ok {
		return checker.CheckParameters(parameters)
	}
	return nil
}

func (c *controller) checkMutable(parameters map[string]string) error {
	if len(parameters) == 0 {
		return nil
	}
	modifier, ok := c.backend.(Modifier)
	if !ok {
		return refuse(ErrInvalid, "mutable_parameters", "volumes of this driver have none")
	}
	return modifier.CheckMutableParameters(parameters)
}

// creator is the backend's way to make a volume from a source.
func (c *controller) creator(source *ContentSource) (func(context.Context, CreateVolumeRequest) (Volume, error), error) {
	switch {
	case source == nil:
		return c.backend.CreateVolume, nil
	case source.SnapshotID != "":
		if restorer, ok := c.backend.(SnapshotRestorer); ok {
			return restorer.RestoreSnapshot, nil
		}
		return nil, refuse(ErrInvalid, "volume_content_source.snapshot", "this driver makes no volumes from snapshots")
	default:
		if cloner, ok := c.backend.(Cloner); ok {
			return cloner.CloneVolume, nil
		}
		return nil, refuse(ErrInvalid, "volume_content_source.volume", "this driver makes no volumes from volumes")
	}
}

// fits compares a volume with the request for it. The volume may be an old one of
// the same name, made for another request.
func fits(v Volume, request CreateVolumeRequest) error {
	const field = "name"
	switch {
	case !request.Capacity.holds(v.CapacityBytes):
		return refuse(ErrExists, field, "volume %s has this name and %d bytes, asked for are %d to %d (0 is no limit)",
			v.ID, v.CapacityBytes, request.Capacity.RequiredBytes, request.Capacity.LimitBytes)
	case (v.Source == nil) != (request.Source == nil), v.Source != nil && *v.Source != *request.Source:
		return refuse(ErrExists, field, "volume %s has this name and was made from another source", v.ID)
	case !reaches(v.Topology, request.Requisite):
		return refuse(ErrExists, field, "volume %s has this name and cannot be reached from where it is asked for", v.ID)
	}
	return nil
}

// DeleteVolume deletes a volume. One that is gone is success.
func (c *controller) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	err := c.backend.DeleteVolume(ctx, VolumeRequest{VolumeID: r.GetVolumeId(), Secrets: r.GetSecrets()})
	if gone(err) != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// volume asks for one volume and holds the answer to the question.
func (c *controller) volume(ctx context.Context, request VolumeRequest) (Volume, error) {
	volume, err := c.backend.GetVolume(ctx, request)
	if err == nil && volume.ID != request.VolumeID {
		err = wrong("volume %.128q, asked was for %q", volume.ID, request.VolumeID)
	}
	return volume, err
}

// ControllerGetVolume says what a volume is and where it is attached.
func (c *controller) ControllerGetVolume(ctx context.Context, r *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	volume, err := c.volume(ctx, VolumeRequest{VolumeID: r.GetVolumeId()})
	if err != nil {
		return nil, err
	}
	answer, err := c.driver.volumeAnswer(volume)
	if err != nil {
		return nil, err
	}
	status := &csi.ControllerGetVolumeResponse_VolumeStatus{}
	if is[Attacher](c.backend) {
		status.PublishedNodeIds = volume.NodeIDs
	}
	return &csi.ControllerGetVolumeResponse{Volume: answer, Status: status}, nil
}

// ValidateVolumeCapabilities confirms what fits. What does not is an answer as well,
// with the reason as its message.
func (c *controller) ValidateVolumeCapabilities(
	ctx context.Context, r *csi.ValidateVolumeCapabilitiesRequest,
) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	volume, err := c.volume(ctx, VolumeRequest{VolumeID: r.GetVolumeId(), Secrets: r.GetSecrets()})
	if err != nil {
		return nil, err
	}
	_, err = capabilitiesOf(r.GetVolumeCapabilities(), c.check)
	err = first(err, c.checkParameters(r.GetParameters()), c.checkMutable(r.GetMutableParameters()))
	if err == nil && len(r.GetVolumeContext()) > 0 && !contextFits(r.GetVolumeContext(), volume.Context) {
		err = refuse(ErrInvalid, "volume_context", "is not that of the volume")
	}
	if err != nil {
		if !says(err, codes.InvalidArgument) {
			return nil, err
		}
		return &csi.ValidateVolumeCapabilitiesResponse{Message: messageAnswer(err.Error(), secretsOf(r))}, nil
	}
	confirmed := &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeCapabilities: r.GetVolumeCapabilities(), VolumeContext: r.GetVolumeContext(), MutableParameters: r.GetMutableParameters(),
	}
	if is[ParameterChecker](c.backend) {
		confirmed.Parameters = r.GetParameters()
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: confirmed}, nil
}

// GetCapacity says how much can be made.
func (c *controller) GetCapacity(ctx context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	reporter, err := part[CapacityReporter](c, "GetCapacity")
	if err != nil {
		return nil, err
	}
	capabilities, err := capabilitiesOf(r.GetVolumeCapabilities(), c.check)
	if err = first(err, c.checkParameters(r.GetParameters())); err != nil {
		return nil, err
	}
	capacity, err := reporter.GetCapacity(ctx, CapacityRequest{
		Capabilities: capabilities, Parameters: r.GetParameters(), Topology: r.GetAccessibleTopology().GetSegments()})
	if err != nil {
		return nil, err
	}
	if slices.Min([]int64{capacity.AvailableBytes, capacity.MaximumBytes, capacity.MinimumBytes}) < 0 {
		return nil, wrong("a capacity is negative: available %d, maximum %d, minimum %d",
			capacity.AvailableBytes, capacity.MaximumBytes, capacity.MinimumBytes)
	}
	return &csi.GetCapacityResponse{
		AvailableCapacity: capacity.AvailableBytes,
		MaximumVolumeSize: known(capacity.MaximumBytes), MinimumVolumeSize: known(capacity.MinimumBytes),
	}, nil
}
