package resizer_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/resizer"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// TestRequestToExpandHasAllOfTheVolume: its identity, capability and secrets.
func TestRequestToExpandHasAllOfTheVolume(t *testing.T) {
	secret := sidecartest.Secret("key", "password", "very-secret")
	reference := &v1.SecretReference{Namespace: sidecartest.Namespace, Name: "key"}
	multi := func(info *csiclient.Info) {
		info.Controller[csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER] = true
	}
	b := newBed(t, able(multi), bound(request(2*gib), secret, func(v *v1.PersistentVolume) {
		v.Spec.CSI.ControllerExpandSecretRef = reference
		v.Spec.MountOptions = []string{"noatime"}
	}))
	b.Driver.Once(expand, sidecartest.Fail(codes.Internal, "broken"))
	newBackend(b)
	start(b, quick)
	comesTo(b, grownState)
	want := &csi.ControllerExpandVolumeRequest{
		VolumeId: "handle-v", CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib}, Secrets: map[string]string{"password": "very-secret"},
		VolumeCapability: &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ntfs", MountFlags: []string{"noatime"}}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
		},
	}
	if got := b.Driver.Calls(expand)[0].Request; !proto.Equal(got, want) {
		t.Errorf("request:\n got %v\nwant %v", got, want)
	}
	if text := b.Log() + strings.Join(b.Events(), ""); strings.Contains(text, "very-secret") {
		t.Error("a secret is in the log or in an event")
	}
}

// TestMissingSecretBeginsNothing: a claim may ask for less again.
func TestMissingSecretBeginsNothing(t *testing.T) {
	b := newBed(t, able(), bound(request(2*gib), asks("gold"), attributes("gold"), func(v *v1.PersistentVolume) {
		v.Spec.CSI.ControllerExpandSecretRef = &v1.SecretReference{Namespace: sidecartest.Namespace, Name: "key"}
		v.Annotations["volume.kubernetes.io/controller-modify-secret-name"] = "other"
		v.Annotations["volume.kubernetes.io/controller-modify-secret-namespace"] = sidecartest.Namespace
	}, sidecartest.Secret("other", "password", "modify")))
	newBackend(b)
	start(b, quick)
	comesTo(b, "claim 1Gi class gold | volume 1Gi class gold")
	if got := b.Driver.Calls(alter)[0].Request.(*csi.ControllerModifyVolumeRequest).Secrets["password"]; got != "modify" {
		t.Errorf("the password is %q", got)
	}
	if _, err := b.Kube.CoreV1().Secrets(sidecartest.Namespace).Create(b.Ctx, sidecartest.Secret("key"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	comesTo(b, "claim 2Gi allocated 2Gi class gold no-node-expansion | volume 2Gi class gold")
}

// TestBlockVolume is expanded as one.
func TestBlockVolume(t *testing.T) {
	block := v1.PersistentVolumeBlock
	b := newBed(t, able(), bound(request(2*gib), func(v *v1.PersistentVolume) { v.Spec.VolumeMode = &block }))
	newBackend(b)
	start(b, quick)
	comesTo(b, grownState)
	if got := b.Driver.Calls(expand)[0].Request.(*csi.ControllerExpandVolumeRequest).VolumeCapability; got.GetBlock() == nil {
		t.Errorf("capability: %v", got)
	}
}

// TestLostRaces: writes that begin something are not made over a change that
// was not seen; failures of the API server are tried again.
func TestLostRaces(t *testing.T) {
	for _, write := range []string{patchClaim, patchVolume} {
		t.Run(write, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, able(), bound(request(2*gib), asks("gold"), attributes("gold")))
			newBackend(b)
			b.Refuse(write, 1, conflict(write))
			start(b, quick)
			comesTo(b, "claim 2Gi allocated 2Gi class gold no-node-expansion | volume 2Gi class gold")
			hasEvents(b, "Normal VolumeResizeSuccessful", "Normal VolumeModifySuccessful")
		})
	}
}

// TestRequestThatShrinksBeforeACall: what is begun is what the claim asks for
// at that moment, whatever was read before.
func TestRequestThatShrinksBeforeACall(t *testing.T) {
	b := newBed(t, able(), bound(request(9*gib), sidecartest.Secret("key"), func(v *v1.PersistentVolume) {
		v.Spec.CSI.ControllerExpandSecretRef = &v1.SecretReference{Namespace: sidecartest.Namespace, Name: "key"}
	}))
	newBackend(b)
	claims := v1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	var once sync.Once
	b.Kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		once.Do(func() {
			object, err := b.Kube.Tracker().Get(claims, sidecartest.Namespace, "c")
			if err == nil {
				claim := object.(*v1.PersistentVolumeClaim)
				request(2 * gib)(claim)
				claim.ResourceVersion = "900"
				err = b.Kube.Tracker().Update(claims, claim, sidecartest.Namespace)
			}
			if err != nil {
				t.Error(err)
			}
		})
		return false, nil, nil
	})
	start(b, quick)
	comesTo(b, grownState)
	if err := differs("calls", calls(b), []string{"expand 2Gi"}); err != nil {
		t.Error(err)
	}
}

// TestMigratedVolume: the volume of an in-tree plugin is expanded by the driver
// that took its place, once the claim says so.
func TestMigratedVolume(t *testing.T) {
	const driver = "pd.csi.storage.gke.io"
	objects := bound(request(2*gib), func(v *v1.PersistentVolume) {
		v.Labels = map[string]string{v1.LabelTopologyZone: "europe-west1-b", v1.LabelTopologyRegion: "europe-west1"}
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk", FSType: "ntfs"}}
	})
	b := newBed(t, able(), objects)
	newBackend(b)
	info := able()
	info.Name = driver
	b.Env.Driver = csiclient.New(b.Env.Driver.Conn(), info)
	config := quick
	config.Workers = 1
	start(b, config)
	b.Eventually(func() error { return started(b) })
	if got := b.Driver.CallNames(); len(got) != 0 {
		t.Errorf("calls for a volume that was not migrated: %q", got)
	}
	update(b, func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{"volume.kubernetes.io/storage-resizer": driver}
	})
	comesTo(b, grownState)
	if got := b.Driver.Calls(expand)[0].Request.(*csi.ControllerExpandVolumeRequest).VolumeId; !strings.HasSuffix(got, "europe-west1-b/disks/disk") {
		t.Errorf("volume id %q", got)
	}
}

// TestRunAgain: a run leaves nothing behind that the next one meets.
func TestRunAgain(t *testing.T) {
	b := newBed(t, able(offline), bound(request(2*gib), pod(v1.PodRunning, "node")))
	newBackend(b)
	component, err := resizer.New(b.Env, quick)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		stop := b.Run(component)
		hasEvents(b, slices.Repeat([]string{"Warning VolumeResizeFailed"}, i+1)...)
		stop()
	}
	b.Run(component)
	if err := b.Kube.CoreV1().Pods(sidecartest.Namespace).Delete(b.Ctx, "pod", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	comesTo(b, grownState)
}

func TestDriversThatCannotBeServed(t *testing.T) {
	for want, change := range map[string]func(*csiclient.Info){
		"no controller service":     func(info *csiclient.Info) { info.Plugin = nil },
		"neither expand nor modify": func(info *csiclient.Info) { info.Controller = nil },
	} {
		b := newBed(t, able(change), nil)
		b.Driver.On("NodeGetCapabilities", sidecartest.Fail(codes.Unimplemented, "no"))
		component, err := resizer.New(b.Env, resizer.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := component.Run(b.Ctx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, config := range map[string]resizer.Config{
		"Workers":  {Workers: -1},
		"RetryMin": {RetryMin: -1},
		"RetryMax": {RetryMin: time.Hour, RetryMax: time.Second},
		"Timeout":  {Timeout: -1},
	} {
		if _, err := resizer.New(nil, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
