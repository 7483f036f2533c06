package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// hand does what a sidecar does, for a test that needs none.
type hand struct {
	registerapi.UnimplementedRegistrationServer
	t          *testing.T
	c          *cluster.Cluster
	controller csi.ControllerClient
}

// GetInfo implements the registration API.
func (h *hand) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type: registerapi.CSIPlugin, Name: cluster.DriverName, Endpoint: filepath.Join(cluster.KubeletDir, "plugins", cluster.DriverName, "csi.sock"),
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus implements the registration API.
func (h *hand) NotifyRegistrationStatus(_ context.Context, status *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if !status.GetPluginRegistered() {
		h.t.Errorf("not registered: %s", status.GetError())
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// register serves the registration API where a kubelet looks for it.
func (h *hand) register(k *cluster.Kubelet) {
	h.t.Helper()
	listener, err := net.Listen("unix", k.Path(filepath.Join(cluster.KubeletDir, "plugins_registry", cluster.DriverName+"-reg.sock")))
	if err != nil {
		h.t.Fatal(err)
	}
	server := grpc.NewServer()
	registerapi.RegisterRegistrationServer(server, h)
	go func() { _ = server.Serve(listener) }()
	h.t.Cleanup(server.Stop)
}

// provision makes a volume, and the objects of a claim that is bound to it.
func (h *hand) provision(name string, sizeBytes int64) (volumeID string) {
	h.t.Helper()
	answer, err := h.controller.CreateVolume(h.t.Context(), &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: sizeBytes}, VolumeCapabilities: []*csi.VolumeCapability{capability()},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	volume, none := answer.GetVolume(), ""
	spec := corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(sizeBytes, resource.BinarySI)},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: name},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: cluster.DriverName, VolumeHandle: volume.GetVolumeId(), VolumeAttributes: volume.GetVolumeContext(),
		}},
	}
	if _, err := h.c.Client.CoreV1().PersistentVolumes().Create(h.t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.c.Client.CoreV1().PersistentVolumeClaims("default").Create(h.t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: spec.AccessModes, StorageClassName: &none, VolumeName: name, Resources: corev1.VolumeResourceRequirements{Requests: spec.Capacity},
		},
	}, metav1.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
	return volume.GetVolumeId()
}

// capability is a volume for one node, with a file system.
func capability() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

// attach attaches what the cluster wants attached, and fails while that is nothing.
func (h *hand) attach(ctx context.Context) error {
	attachments, err := h.c.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(attachments.Items) == 0 {
		return errors.New("nothing is to be attached")
	}
	for i := range attachments.Items {
		if err := h.attachOne(ctx, &attachments.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (h *hand) attachOne(ctx context.Context, a *storagev1.VolumeAttachment) error {
	if a.Status.Attached {
		return nil
	}
	volume, err := h.c.Client.CoreV1().PersistentVolumes().Get(ctx, *a.Spec.Source.PersistentVolumeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	source := volume.Spec.CSI
	answer, err := h.controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{
		VolumeId: source.VolumeHandle, NodeId: a.Spec.NodeName, VolumeCapability: capability(), VolumeContext: source.VolumeAttributes,
	})
	if err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	a.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: answer.GetPublishContext()}
	_, err = h.c.Client.StorageV1().VolumeAttachments().UpdateStatus(ctx, a, metav1.UpdateOptions{})
	return err
}
