package provisioner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// backend is what a driver has made.
type backend struct {
	mu      sync.Mutex
	byName  map[string]*csi.Volume
	deleted []string
}

func (b *backend) create(_ context.Context, request proto.Message) (proto.Message, error) {
	r := request.(*csi.CreateVolumeRequest)
	b.mu.Lock()
	defer b.mu.Unlock()
	volume := b.byName[r.GetName()]
	if volume == nil {
		volume = &csi.Volume{VolumeId: "id-of-" + r.GetName(), CapacityBytes: r.GetCapacityRange().GetRequiredBytes(),
			VolumeContext: map[string]string{"made": "yes"}, ContentSource: r.GetVolumeContentSource()}
		if t := r.GetAccessibilityRequirements(); len(t.GetPreferred()) > 0 {
			volume.AccessibleTopology = t.GetPreferred()[:1]
		}
		b.byName[r.GetName()] = volume
	}
	return &csi.CreateVolumeResponse{Volume: volume}, nil
}

// createAndFail makes the volume and says otherwise.
func (b *backend) createAndFail(code codes.Code) sidecartest.Answer {
	return func(ctx context.Context, request proto.Message) (proto.Message, error) {
		if _, err := b.create(ctx, request); err != nil {
			return nil, err
		}
		return nil, status.Error(code, "made to fail")
	}
}

func (b *backend) delete(_ context.Context, request proto.Message) (proto.Message, error) {
	id := request.(*csi.DeleteVolumeRequest).GetVolumeId()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deleted = append(b.deleted, id)
	for name, volume := range b.byName {
		if volume.GetVolumeId() == id {
			delete(b.byName, name)
		}
	}
	return &csi.DeleteVolumeResponse{}, nil
}

func (b *backend) volumes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.byName)
}

func (b *backend) deletions() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.deleted)
}

// bed is a bed with a back-end.
type bed struct {
	*sidecartest.Bed
	*backend
	config Config
}

// able is a driver that makes, deletes and attaches volumes.
func able(more ...csi.ControllerServiceCapability_RPC_Type) csiclient.Info {
	info := csiclient.Info{
		Plugin: map[csi.PluginCapability_Service_Type]bool{csi.PluginCapability_Service_CONTROLLER_SERVICE: true},
		Controller: map[csi.ControllerServiceCapability_RPC_Type]bool{
			csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME:     true,
			csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME: true,
		},
	}
	for _, one := range more {
		info.Controller[one] = true
	}
	return info
}

func topological(info csiclient.Info) csiclient.Info {
	info.Plugin[csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS] = true
	return info
}

func newBed(t testing.TB, info csiclient.Info, objects ...runtime.Object) *bed {
	b := &bed{Bed: sidecartest.New(t, info, objects...), backend: &backend{byName: map[string]*csi.Volume{}},
		config: Config{WorkerThreads: 4, RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond, Timeout: time.Minute, removalDelay: 10 * time.Millisecond}}
	b.Driver.On("CreateVolume", b.create)
	b.Driver.On("DeleteVolume", b.delete)
	return b
}

func (b *bed) start() (stop func()) {
	b.Helper()
	p, err := New(b.Env, b.config)
	if err != nil {
		b.Fatal(err)
	}
	return b.Run(p)
}

// claim is one that the driver is asked to make a volume for.
func claim(name string, changes ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	c := sidecartest.PVC(name, changes...)
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[annProvisioner] = sidecartest.DriverName
	return c
}

// selected selects a node for a claim.
func selected(node string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{annSelectedNode: node}
	}
}

// released is a volume whose claim is gone.
func released(name string, changes ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	pv := sidecartest.PV(name)
	sidecartest.Bind(claim("gone"), pv)
	pv.Status.Phase = v1.VolumeReleased
	pv.Finalizers = []string{"kubernetes.io/pv-protection", finalizer, "external-attacher/driver-example-com"}
	for _, change := range changes {
		change(pv)
	}
	return pv
}

func (b *bed) pv(name string) *v1.PersistentVolume {
	b.Helper()
	pv, err := b.Kube.CoreV1().PersistentVolumes().Get(b.Ctx, name, metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return pv
}

// wait waits until a condition holds.
func (b *bed) wait(what string, holds func() bool) {
	b.Helper()
	b.Eventually(func() error {
		if holds() {
			return nil
		}
		return fmt.Errorf("not so: %s; writes %q", what, b.Writes())
	})
}

// writes waits until the writes are those given.
func (b *bed) writes(want ...string) {
	b.Helper()
	b.Eventually(func() error {
		if got := b.Writes(); !slices.Equal(got, want) {
			return fmt.Errorf("writes %q, want %q", got, want)
		}
		return nil
	})
}

// requests counts the requests of a verb for a resource.
func (b *bed) requests(verb, resource string) int {
	count := 0
	for _, action := range b.Kube.Actions() {
		if action.GetVerb() == verb && action.GetResource().Resource == resource {
			count++
		}
	}
	return count
}

// journalEmpty waits until the journal has nothing more. A test that stops its
// provisioner without it may cut an answer off, and then the entry rightly stays.
func (b *bed) journalEmpty() {
	b.Helper()
	b.wait("journal empty", func() bool { return len(b.entries()) == 0 })
}

// entries are the journal's, by claim.
func (b *bed) entries() map[string]*intent {
	b.Helper()
	leases, err := b.Kube.CoordinationV1().Leases(b.Env.Namespace).List(b.Ctx, metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	found := map[string]*intent{}
	for _, lease := range leases.Items {
		for key, entry := range lease.Annotations {
			if uid, ok := strings.CutPrefix(key, entryPrefix); ok {
				what, err := decodeIntent(entry)
				if err != nil {
					b.Fatal(err)
				}
				found[uid] = what
			}
		}
	}
	return found
}

// What tests do themselves is done behind the API server, so that its writes
// are those of the component.

func (b *bed) deleteClaim(name string) {
	b.Helper()
	claims := v1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	if err := b.Kube.Tracker().Delete(claims, sidecartest.Namespace, name); err != nil {
		b.Fatal(err)
	}
}

// addClaim makes a claim of a name that has another uid.
func (b *bed) addClaim(name, uid string, changes ...func(*v1.PersistentVolumeClaim)) {
	b.Helper()
	another := claim(name, changes...)
	another.UID = types.UID(uid)
	if err := b.Kube.Tracker().Add(another); err != nil {
		b.Fatal(err)
	}
}

// others adds a claim and waits until it has its volume, to give a component
// that is to leave something alone the time to touch it.
func (b *bed) others(writes ...string) {
	b.Helper()
	b.addClaim("then", "then", selected("n1"))
	b.wait("the other claim's volume", func() bool { return slices.Contains(b.Writes(), "create persistentvolumes pvc-then") })
	b.writes(append(slices.Clone(writes), "create persistentvolumes pvc-then")...)
}

// saw reports whether an event that begins so was sent.
func (b *bed) saw(begin string) bool {
	return slices.ContainsFunc(b.Events(), func(event string) bool { return strings.HasPrefix(event, begin) })
}

// logged reports whether the text is in the log or an event.
func (b *bed) logged(text string) bool { return strings.Contains(b.Log(), text) }

func hasText(err error, text string) bool { return strings.Contains(err.Error(), text) }
