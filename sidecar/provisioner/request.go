package provisioner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"github.com/kubernetes-csi/csi-lib-utils/accessmodes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/util"
)

const (
	fsTypeKey        = parameterPrefix + "fstype"
	oldFSTypeKey     = "fstype"
	claimNameKey     = parameterPrefix + "pvc/name"
	claimNamespaceKy = parameterPrefix + "pvc/namespace"
	volumeNameKey    = parameterPrefix + "pv/name"
)

// wanted is what a claim wants, read off its objects.
type wanted struct {
	// request is what the driver is asked, without its secrets.
	request *csi.CreateVolumeRequest
	// secret is what the driver needs to make and to delete the volume.
	secret *v1.SecretReference
	// source has the references to secrets that the volume object keeps.
	source v1.CSIPersistentVolumeSource
	// modifySecret is what the driver needs to change the volume's attributes.
	modifySecret *v1.SecretReference
	// attributes is the class of attributes that the volume is made with; nil for
	// none, and where only the journal knows the request.
	attributes *string
	fsType     string
	class      *storagev1.StorageClass
	// migrated: the class is of an old plugin, and the volume object must be.
	migrated bool
}

// volumeName is the name of a claim's volume, at the driver and in the API.
func (r *run) volumeName(claim *v1.PersistentVolumeClaim) string {
	uid := string(claim.UID)
	if length := r.config.VolumeNameUUIDLength; length > 0 {
		uid = strings.ReplaceAll(uid, "-", "")
		uid = uid[:min(length, len(uid))]
	}
	return r.config.VolumeNamePrefix + "-" + uid
}

// canProvision reports why the driver can make and delete no volumes.
func (r *run) canProvision() error {
	return errors.Join(
		r.needs(r.info.Plugin[csi.PluginCapability_Service_CONTROLLER_SERVICE], "CONTROLLER_SERVICE", "dynamic provisioning"),
		r.needs(r.info.Controller[csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME], "CREATE_DELETE_VOLUME", "dynamic provisioning"))
}

func (r *run) needs(has bool, capability, what string) error {
	if has {
		return nil
	}
	return fmt.Errorf("driver %s does not support %s: it does not report the capability %s", r.driver, what, capability)
}

// want works out what to ask for. Nothing is changed by it but, for a clone,
// the finalizer of the source.
func (r *run) want(ctx context.Context, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass, node string) (*wanted, error) {
	w, err := r.outline(ctx, claim, class)
	if err != nil {
		return nil, err
	}
	return w, r.complete(ctx, w, claim, node)
}

// outline is the part of what to ask for that claim and class alone decide.
func (r *run) outline(ctx context.Context, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass) (*wanted, error) {
	if err := r.canProvision(); err != nil {
		return nil, err
	}
	if claim.Spec.Selector != nil {
		return nil, errors.New("a claim with a selector cannot have a volume made for it")
	}
	w := &wanted{class: class}
	if r.inTree != "" && class.Provisioner == r.inTree {
		translated, err := r.translator.TranslateInTreeStorageClassToCSI(logr.FromContextOrDiscard(ctx), r.inTree, class)
		if err != nil {
			return nil, fmt.Errorf("class %s of the old plugin %s: %w", class.Name, r.inTree, err)
		}
		w.class, w.migrated = translated, true
	}
	var err error
	if w.fsType, err = r.fsType(w.class); err != nil {
		return nil, err
	}
	size := claim.Spec.Resources.Requests[v1.ResourceStorage]
	w.request = &csi.CreateVolumeRequest{
		Name:          r.volumeName(claim),
		CapacityRange: &csi.CapacityRange{RequiredBytes: size.Value()},
	}
	if w.request.VolumeCapabilities, err = r.capabilities(claim, w.class, w.fsType); err != nil {
		return nil, err
	}
	if err := r.wantParameters(w, claim); err != nil {
		return nil, err
	}
	return w, r.wantSecrets(w, claim)
}

// complete adds what the cluster decides: nodes, classes of attributes, sources.
func (r *run) complete(ctx context.Context, w *wanted, claim *v1.PersistentVolumeClaim, node string) (err error) {
	if r.topology != nil {
		w.request.AccessibilityRequirements, err = r.topology.requirement(ctx, topologyInput{PVC: claim, StorageClass: w.class,
			SelectedNode: node, StrictTopology: r.config.StrictTopology, ImmediateTopology: !r.config.NoImmediateTopology})
		if err != nil {
			return fmt.Errorf("topology of the volume: %w", err)
		}
	}
	if err := r.wantAttributes(ctx, w, claim); err != nil {
		return err
	}
	w.request.VolumeContentSource, err = r.contentSource(ctx, claim)
	return err
}

// fsType is the file system that the class, or else the settings, ask for.
func (r *run) fsType(class *storagev1.StorageClass) (string, error) {
	var found []string
	fsType := r.config.DefaultFSType
	for key, value := range class.Parameters {
		if strings.EqualFold(key, oldFSTypeKey) || key == fsTypeKey {
			found = append(found, key)
			if value != "" {
				fsType = value
			}
		}
	}
	if len(found) > 1 {
		return "", fmt.Errorf("class %s gives the file system twice: as %s and as %s", class.Name, oldFSTypeKey, fsTypeKey)
	}
	return fsType, nil
}

func (r *run) capabilities(claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass, fsType string) ([]*csi.VolumeCapability, error) {
	var capabilities []*csi.VolumeCapability
	several := r.info.Controller[csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER]
	for _, mode := range claim.Spec.AccessModes {
		access, err := accessmodes.ToCSIAccessMode([]v1.PersistentVolumeAccessMode{mode}, several)
		if err != nil {
			return nil, fmt.Errorf("access mode %s: %w", mode, err)
		}
		capability := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: access}}
		if util.CheckPersistentVolumeClaimModeBlock(claim) {
			capability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		} else {
			capability.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{
				FsType: fsType, MountFlags: class.MountOptions}}
		}
		capabilities = append(capabilities, capability)
	}
	return capabilities, nil
}

// wantParameters gives the driver the class' parameters but those that are
// meant for the sidecar. An unknown one of those is a mistake to be told of.
func (r *run) wantParameters(w *wanted, claim *v1.PersistentVolumeClaim) error {
	known := map[string]bool{fsTypeKey: true}
	for _, use := range []secretUse{secretDefault, secretProvisioner, secretControllerPublish, secretNodeStage,
		secretNodePublish, secretControllerExpand, secretNodeExpand, secretControllerModify} {
		names, namespaces := use.keys()
		known[names[0]], known[namespaces[0]] = true, true
	}
	parameters := maps.Clone(w.class.Parameters)
	for key := range w.class.Parameters {
		switch {
		case !strings.HasPrefix(key, parameterPrefix):
		case known[key]:
			delete(parameters, key)
		default:
			return fmt.Errorf("class %s has the parameter %s, which nobody knows", w.class.Name, key)
		}
	}
	if r.config.ExtraCreateMetadata {
		if parameters == nil {
			parameters = map[string]string{}
		}
		parameters[claimNameKey] = claim.Name
		parameters[claimNamespaceKy] = claim.Namespace
		parameters[volumeNameKey] = w.request.Name
	}
	w.request.Parameters = parameters
	return nil
}

func (r *run) wantSecrets(w *wanted, claim *v1.PersistentVolumeClaim) error {
	w.source.Driver = r.driver
	for _, one := range []struct {
		use secretUse
		ref **v1.SecretReference
	}{
		{secretProvisioner, &w.secret},
		{secretControllerPublish, &w.source.ControllerPublishSecretRef},
		{secretNodeStage, &w.source.NodeStageSecretRef},
		{secretNodePublish, &w.source.NodePublishSecretRef},
		{secretControllerExpand, &w.source.ControllerExpandSecretRef},
		{secretNodeExpand, &w.source.NodeExpandSecretRef},
		{secretControllerModify, &w.modifySecret},
	} {
		ref, err := one.use.reference(w.class.Parameters, w.request.Name, claim)
		if err != nil {
			return fmt.Errorf("class %s: %w", w.class.Name, err)
		}
		*one.ref = ref
	}
	return nil
}

// wantAttributes adds the parameters that may be changed later.
func (r *run) wantAttributes(ctx context.Context, w *wanted, claim *v1.PersistentVolumeClaim) error {
	name := claim.Spec.VolumeAttributesClassName
	if r.config.NoVolumeAttributesClass || name == nil || *name == "" {
		return nil
	}
	if err := r.needs(r.info.Controller[csi.ControllerServiceCapability_RPC_MODIFY_VOLUME], "MODIFY_VOLUME", "classes of volume attributes"); err != nil {
		return err
	}
	class, err := r.env.Kube.StorageV1().VolumeAttributesClasses().Get(ctx, *name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("class of volume attributes %s: %w", *name, err)
	}
	if class.DriverName != r.driver {
		return fmt.Errorf("class of volume attributes %s is for driver %s, not for %s", *name, class.DriverName, r.driver)
	}
	w.request.MutableParameters, w.attributes = class.Parameters, name
	return nil
}
