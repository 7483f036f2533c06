package provisioner

import (
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// The usual request, for the claim "data", with changes.
func request(changes ...func(*csi.CreateVolumeRequest)) *csi.CreateVolumeRequest {
	r := &csi.CreateVolumeRequest{
		Name:          pvName,
		CapacityRange: &csi.CapacityRange{RequiredBytes: sidecartest.GiB},
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		}},
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

func modes(modes ...csi.VolumeCapability_AccessMode_Mode) func(*csi.CreateVolumeRequest) {
	return func(r *csi.CreateVolumeRequest) {
		usual := r.VolumeCapabilities[0]
		r.VolumeCapabilities = nil
		for _, mode := range modes {
			one := proto.CloneOf(usual)
			one.AccessMode.Mode = mode
			r.VolumeCapabilities = append(r.VolumeCapabilities, one)
		}
	}
}

func fsType(name string) func(*csi.CreateVolumeRequest) {
	return func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].GetMount().FsType = name }
}

func parameters(pairs ...string) func(*csi.CreateVolumeRequest) {
	return func(r *csi.CreateVolumeRequest) { r.Parameters = pairsOf(pairs) }
}

func pairsOf(pairs []string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

func TestRequestToTheDriver(t *testing.T) {
	t.Parallel()
	type change struct {
		config func(*Config)
		class  func(*storagev1.StorageClass)
		claim  func(*v1.PersistentVolumeClaim)
		info   []csi.ControllerServiceCapability_RPC_Type
	}
	with := func(pairs ...string) func(*storagev1.StorageClass) {
		return func(c *storagev1.StorageClass) { c.Parameters = pairsOf(pairs) }
	}
	access := func(modes ...v1.PersistentVolumeAccessMode) func(*v1.PersistentVolumeClaim) {
		return func(c *v1.PersistentVolumeClaim) { c.Spec.AccessModes = modes }
	}
	attributes := "gold"
	block := v1.PersistentVolumeBlock
	objects := []runtime.Object{
		sidecartest.Secret("login", "user", "me"),
		&storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, DriverName: sidecartest.DriverName, Parameters: map[string]string{"iops": "9"}},
		&storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "alien"}, DriverName: "another"},
	}
	for name, test := range map[string]struct {
		change
		want *csi.CreateVolumeRequest
		err  string // of the event, instead
	}{
		"usual": {change{}, request(), ""},
		"file system of the class": {change{class: with("csi.storage.k8s.io/fstype", "ntfs", "tier", "1")},
			request(fsType("ntfs"), parameters("tier", "1")), ""},
		"file system by the old name": {change{class: with("fsType", "ntfs")}, request(fsType("ntfs"), parameters("fsType", "ntfs")), ""},
		"file system twice":           {change{class: with("fsType", "ntfs", "csi.storage.k8s.io/fstype", "refs")}, nil, "twice"},
		"default file system":         {change{config: func(c *Config) { c.DefaultFSType = "refs" }}, request(fsType("refs")), ""},
		"mount options": {change{class: func(c *storagev1.StorageClass) { c.MountOptions = []string{"ro"} }},
			request(func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].GetMount().MountFlags = []string{"ro"} }), ""},
		"block": {change{claim: func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block }},
			request(func(r *csi.CreateVolumeRequest) {
				r.VolumeCapabilities[0].AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
			}), ""},
		"two access modes": {change{claim: access(v1.ReadWriteOnce, v1.ReadOnlyMany)},
			request(modes(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY)), ""},
		"many writers":     {change{claim: access(v1.ReadWriteMany)}, request(modes(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)), ""},
		"one pod, old CSI": {change{claim: access(v1.ReadWriteOncePod)}, request(), ""},
		"one pod": {change{claim: access(v1.ReadWriteOncePod), info: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER}},
			request(modes(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)), ""},
		"names for the driver": {change{config: func(c *Config) { c.ExtraCreateMetadata = true }},
			request(parameters("csi.storage.k8s.io/pvc/name", "data", "csi.storage.k8s.io/pvc/namespace", sidecartest.Namespace, "csi.storage.k8s.io/pv/name", pvName)), ""},
		"unknown reserved parameter": {change{class: with("csi.storage.k8s.io/fstyp", "ntfs")}, nil, "which nobody knows"},
		"secret": {change{class: with("csi.storage.k8s.io/provisioner-secret-name", "login", "csi.storage.k8s.io/provisioner-secret-namespace", "${pvc.namespace}")},
			request(parameters(), func(r *csi.CreateVolumeRequest) { r.Secrets = map[string]string{"user": "me"} }), ""},
		"secret by the old name": {change{class: with("csiProvisionerSecretName", "login", "csiProvisionerSecretNamespace", "default")},
			request(parameters("csiProvisionerSecretName", "login", "csiProvisionerSecretNamespace", "default"),
				func(r *csi.CreateVolumeRequest) { r.Secrets = map[string]string{"user": "me"} }), ""},
		"secret by an annotation": {change{claim: func(c *v1.PersistentVolumeClaim) { c.Annotations = map[string]string{"example.com/s": "login"} },
			class: with("csi.storage.k8s.io/provisioner-secret-name", "${pvc.annotations['example.com/s']}", "csi.storage.k8s.io/provisioner-secret-namespace", "default")},
			request(parameters(), func(r *csi.CreateVolumeRequest) { r.Secrets = map[string]string{"user": "me"} }), ""},
		"secret of later changes": {change{class: with("csi.storage.k8s.io/controller-modify-secret-name", "login", "csi.storage.k8s.io/controller-modify-secret-namespace", "default")},
			request(), ""},
		"secret missing": {change{class: with("csi.storage.k8s.io/secret-name", "none", "csi.storage.k8s.io/secret-namespace", "default")}, nil, "read secret default/none"},
		"attributes": {change{claim: func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &attributes },
			info: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_MODIFY_VOLUME}},
			request(func(r *csi.CreateVolumeRequest) { r.MutableParameters = map[string]string{"iops": "9"} }), ""},
		"attributes, driver cannot": {change{claim: func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &attributes }}, nil, "MODIFY_VOLUME"},
		"attributes of another driver": {change{claim: func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = ptr("alien") },
			info: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_MODIFY_VOLUME}}, nil, "is for driver another"},
		"selector": {change{claim: func(c *v1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} }}, nil, "selector"},
		"own name": {change{config: func(c *Config) { c.VolumeNamePrefix, c.VolumeNameUUIDLength = "vol", 4 }},
			request(func(r *csi.CreateVolumeRequest) { r.Name = "vol-pvcd" }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, class := claim("data"), sidecartest.StorageClass(sidecartest.ClassName)
			if test.claim != nil {
				test.claim(c)
				metav1.SetMetaDataAnnotation(&c.ObjectMeta, annProvisioner, sidecartest.DriverName)
			}
			if test.class != nil {
				test.class(class)
			}
			b := newBed(t, able(test.info...), append(objects, c, class)...)
			if test.config != nil {
				test.config(&b.config)
			}
			b.start()
			if test.err != "" {
				b.wait("refused", func() bool { return b.saw("Warning ProvisioningFailed") })
				if event := b.Events()[0]; !strings.Contains(event, test.err) || len(b.Driver.Calls()) > 0 {
					t.Errorf("event %q, want one with %q, and calls %q", event, test.err, b.Driver.CallNames())
				}
				return
			}
			b.wait("asked", func() bool { return len(b.Driver.Calls("CreateVolume")) > 0 })
			if diff := cmp.Diff(test.want, b.Driver.Calls("CreateVolume")[0].Request, protocmp.Transform(), protocmp.IgnoreEmptyMessages()); diff != "" {
				t.Errorf("request, want - got +:\n%s", diff)
			}
			if test.want.Secrets != nil {
				for _, what := range b.entries() {
					if text, _ := what.encode(); what.Request.Secrets != nil || what.Secret == nil || text == "" {
						t.Error("the journal must have the secret's name, and not its content")
					}
				}
			}
			if strings.Contains(b.Log(), `"me"`) || strings.Contains(b.Log(), "=me") {
				t.Error("the log has a secret")
			}
		})
	}
}

func ptr[T any](value T) *T { return &value }

func TestClaimIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*v1.PersistentVolumeClaim{
		"of another driver": claim("data", func(c *v1.PersistentVolumeClaim) { c.Name = "data" }),
		"of a populator": claim("data", func(c *v1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &v1.TypedObjectReference{APIGroup: ptr("example.com"), Kind: "Fill", Name: "x"}
		}),
		"late binding without a node": claim("data", func(c *v1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr("late") }),
		"being deleted": claim("data", func(c *v1.PersistentVolumeClaim) {
			sidecartest.Deleting(c)
			c.Finalizers = []string{"kubernetes.io/pvc-protection"}
		}),
		"bound": claim("data", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "x" }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "of another driver" {
				c.Annotations[annProvisioner] = "another"
			}
			late := sidecartest.StorageClass("late", func(c *storagev1.StorageClass) {
				c.VolumeBindingMode = ptr(storagev1.VolumeBindingWaitForFirstConsumer)
			})
			b := newBed(t, able(), c, late, sidecartest.StorageClass(sidecartest.ClassName))
			stop := b.start()
			b.others()
			stop()
			if got := len(b.Driver.Calls()); got != 1 || len(b.Events()) > 0 {
				t.Errorf("calls %q, events %q", b.Driver.CallNames(), b.Events())
			}
		})
	}
}

func TestDriverThatCannotProvision(t *testing.T) {
	t.Parallel()
	b := newBed(t, csiclient.Info{}, claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
	b.start()
	b.wait("told", func() bool {
		return b.saw("Warning ProvisioningFailed driver driver.example.com does not support dynamic provisioning")
	})
}

// TestUnfitVolumeIsDeletedAgain: what is not what was asked for serves nobody.
func TestUnfitVolumeIsDeletedAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		made    *csi.Volume
		err     string
		deleted int
	}{
		"too small":  {&csi.Volume{VolumeId: "v", CapacityBytes: 1}, "less than", 1},
		"without id": {&csi.Volume{CapacityBytes: sidecartest.GiB}, "without an id", 0},
		"long id":    {&csi.Volume{VolumeId: strings.Repeat("v", volumeIDMaxBytes+1)}, "bytes, more than", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
			b.Driver.Once("CreateVolume", sidecartest.Reply(&csi.CreateVolumeResponse{Volume: test.made}))
			b.start()
			b.writes("create persistentvolumes " + pvName)
			if got := b.deletions(); len(got) != test.deleted {
				t.Errorf("deleted %q", got)
			}
			// The library's events are sent beside its work, and may come late.
			b.wait("told why", func() bool {
				return slices.ContainsFunc(b.Events(), func(event string) bool {
					return strings.HasPrefix(event, "Warning ProvisioningFailed ") && strings.Contains(event, test.err)
				})
			})
		})
	}
}

func TestVolumeOfUnknownSizeHasTheSizeAskedFor(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
	b.Driver.On("CreateVolume", sidecartest.Reply(&csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: "v"}}))
	b.start()
	b.writes("create persistentvolumes " + pvName)
	if got := b.pv(pvName).Spec.Capacity[v1.ResourceStorage]; got.Value() != sidecartest.GiB {
		t.Errorf("size %s", got.String())
	}
}

func TestReadOnlyVolume(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		option bool
		modes  []v1.PersistentVolumeAccessMode
		want   bool
	}{
		"as told":            {true, []v1.PersistentVolumeAccessMode{v1.ReadOnlyMany}, true},
		"not told":           {false, []v1.PersistentVolumeAccessMode{v1.ReadOnlyMany}, false},
		"not the only mode":  {true, []v1.PersistentVolumeAccessMode{v1.ReadOnlyMany, v1.ReadWriteMany}, false},
		"not read-only mode": {true, []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, able(), claim("data", func(c *v1.PersistentVolumeClaim) { c.Spec.AccessModes = test.modes }), sidecartest.StorageClass(sidecartest.ClassName))
			b.config.ControllerPublishReadOnly = test.option
			b.start()
			b.writes("create persistentvolumes " + pvName)
			if got := b.pv(pvName).Spec.CSI.ReadOnly; got != test.want {
				t.Errorf("read-only is %v", got)
			}
		})
	}
}
