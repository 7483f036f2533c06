package resizer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"github.com/kubernetes-csi/csi-lib-utils/accessmodes"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// Names of upstream's that others write or read.
const (
	// resizerAnnotation of a claim names the driver its in-tree volume was
	// migrated to.
	resizerAnnotation = "volume.kubernetes.io/storage-resizer"
	// noNodeExpansion of a claim tells the kubelet that nothing is left to do.
	noNodeExpansion = "volume.kubernetes.io/node-expansion-not-required"
	// sizeBefore of a volume is what its file system has while it is to grow.
	sizeBefore = "volume.alpha.kubernetes.io/pre-resize-capacity"
	// modifySecretName and modifySecretNamespace of a volume name the secret of
	// modifications, which has no field in the volume's source.
	modifySecretName      = "volume.kubernetes.io/controller-modify-secret-name"
	modifySecretNamespace = "volume.kubernetes.io/controller-modify-secret-namespace"
	// The parameters of --extra-modify-metadata.
	claimNameParameter      = "csi.storage.k8s.io/pvc/name"
	claimNamespaceParameter = "csi.storage.k8s.io/pvc/namespace"
	volumeNameParameter     = "csi.storage.k8s.io/pv/name"
)

// errAnswer is the kind of an answer that is no answer: the driver may have
// done anything.
var errAnswer = errors.New("the driver's answer is invalid")

// expansion is a driver's answer.
type expansion struct {
	size resource.Quantity
	// node says that the node has work to do on the volume.
	node bool
}

// expandRequest makes the request to expand a claim's volume; nil for a driver
// that is not to be asked.
func (c *controller) expandRequest(ctx context.Context, w *work, target resource.Quantity) (*csi.ControllerExpandVolumeRequest, error) {
	if c.nodeOnly {
		return nil, nil
	}
	spec, err := c.source(w.volume)
	if err != nil {
		return nil, err
	}
	capability, err := c.capability(spec)
	if err != nil {
		return nil, err
	}
	secrets, err := c.secrets(ctx, spec.CSI.ControllerExpandSecretRef)
	if err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeRequest{
		VolumeId:         spec.CSI.VolumeHandle,
		CapacityRange:    &csi.CapacityRange{RequiredBytes: target.Value()},
		Secrets:          secrets,
		VolumeCapability: capability,
	}, nil
}

// callExpand has the driver expand a volume. The answer's size is at least
// what was asked for.
func (c *controller) callExpand(ctx context.Context, request *csi.ControllerExpandVolumeRequest, target resource.Quantity) (expansion, error) {
	if request == nil {
		return expansion{target, true}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.ResizeTimeout)
	defer cancel()
	answer, err := c.driver.ControllerExpandVolume(ctx, request)
	if err != nil {
		return expansion{}, err
	}
	if required := request.GetCapacityRange().GetRequiredBytes(); answer.GetCapacityBytes() < required {
		return expansion{}, fmt.Errorf("%w: the volume has %d bytes, %d are required", errAnswer, answer.GetCapacityBytes(), required)
	}
	return expansion{*resource.NewQuantity(answer.GetCapacityBytes(), resource.BinarySI), answer.GetNodeExpansionRequired()}, nil
}

// modifyRequest makes the request to give a claim's volume the parameters of a
// class.
func (c *controller) modifyRequest(ctx context.Context, w *work, parameters map[string]string) (*csi.ControllerModifyVolumeRequest, error) {
	source := w.volume.Spec.CSI
	reference := source.ControllerExpandSecretRef
	if name, namespace := w.volume.Annotations[modifySecretName], w.volume.Annotations[modifySecretNamespace]; name != "" && namespace != "" {
		reference = &v1.SecretReference{Name: name, Namespace: namespace}
	}
	secrets, err := c.secrets(ctx, reference)
	if err != nil {
		return nil, err
	}
	if c.config.ExtraModifyMetadata {
		// The class is the cache's.
		parameters = maps.Clone(parameters)
		if parameters == nil {
			parameters = map[string]string{}
		}
		parameters[claimNameParameter] = w.claim.Name
		parameters[claimNamespaceParameter] = w.claim.Namespace
		parameters[volumeNameParameter] = w.volume.Name
	}
	return &csi.ControllerModifyVolumeRequest{VolumeId: source.VolumeHandle, Secrets: secrets, MutableParameters: parameters}, nil
}

func (c *controller) callModify(ctx context.Context, request *csi.ControllerModifyVolumeRequest) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.ModifyTimeout)
	defer cancel()
	_, err := c.driver.ControllerModifyVolume(ctx, request)
	return err
}

// ours reports whether a claim's volume is of the driver, be it by migration.
func (c *controller) ours(claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume) bool {
	bound := volume.Spec.ClaimRef
	if bound == nil || bound.UID != claim.UID || bound.Namespace != claim.Namespace {
		return false
	}
	if source := volume.Spec.CSI; source != nil {
		return source.Driver == c.name
	}
	return claim.Annotations[resizerAnnotation] == c.name && c.migration.IsMigratedCSIDriverByName(c.name)
}

// source is the specification of a volume as one of the driver.
func (c *controller) source(volume *v1.PersistentVolume) (*v1.PersistentVolumeSpec, error) {
	if volume.Spec.CSI == nil {
		translated, err := c.migration.TranslateInTreePVToCSI(logr.Discard(), volume)
		if err != nil {
			return nil, fmt.Errorf("translate volume %s to driver %s: %w", volume.Name, c.name, err)
		}
		volume = translated
	}
	if volume.Spec.CSI.VolumeHandle == "" {
		return nil, fmt.Errorf("volume %s has no handle", volume.Name)
	}
	return &volume.Spec, nil
}

func (c *controller) capability(spec *v1.PersistentVolumeSpec) (*csi.VolumeCapability, error) {
	mode, err := accessmodes.ToCSIAccessMode(spec.AccessModes,
		c.env.Driver.Info().Controller[csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER])
	if err != nil {
		return nil, err
	}
	capability := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode}}
	if spec.VolumeMode != nil && *spec.VolumeMode == v1.PersistentVolumeBlock {
		capability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		return capability, nil
	}
	capability.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{
		FsType: spec.CSI.FSType, MountFlags: spec.MountOptions,
	}}
	return capability, nil
}

// secrets are read for each call: they may change, and the role that upstream
// asks for need not allow to watch them.
func (c *controller) secrets(ctx context.Context, reference *v1.SecretReference) (map[string]string, error) {
	if reference == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	secret, err := c.env.Kube.CoreV1().Secrets(reference.Namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get secret %s/%s: %w", reference.Namespace, reference.Name, err)
	}
	values, err := csiclient.Secrets(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", reference.Namespace, reference.Name, err)
	}
	return values, nil
}

// expandsOnNode asks the driver whether its nodes expand volumes.
func expandsOnNode(ctx context.Context, node csi.NodeClient, timeout time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := node.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if isUnimplemented(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask the driver what its nodes can do: %w", err)
	}
	for _, capability := range answer.GetCapabilities() {
		if capability.GetRpc().GetType() == csi.NodeServiceCapability_RPC_EXPAND_VOLUME {
			return true, nil
		}
	}
	return false, nil
}
