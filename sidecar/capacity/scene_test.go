package capacity_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/csi-windows/csi-windows/sidecar/capacity"
	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
	"github.com/csi-windows/csi-windows/sidecar/topology"
)

const (
	namespace = "csi"
	interval  = time.Minute
)

// scene is a cluster, a driver with room in pools, and the component.
type scene struct {
	*sidecartest.Bed
	clock     *clocktesting.FakeClock
	component *capacity.Capacity
	stop      func()

	mu sync.Mutex
	// free is the room by "pool segment", and by "pool" where a segment has none
	// of its own. A pool that is not there fails the call.
	free map[string]*csi.GetCapacityResponse
	// asked are the calls so far, as "pool segment".
	asked []string
}

// newScene starts nothing yet. Room is given as "pool segment=bytes".
func newScene(t *testing.T, info csiclient.Info, objects ...runtime.Object) *scene {
	t.Helper()
	s := &scene{
		Bed:   sidecartest.New(t, info, objects...),
		clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		free:  map[string]*csi.GetCapacityResponse{},
	}
	s.Env.Clock = s.clock
	s.Driver.On("GetCapacity", func(_ context.Context, message proto.Message) (proto.Message, error) {
		request := message.(*csi.GetCapacityRequest)
		pool := request.GetParameters()["pool"]
		place := pool + " " + topology.NewSegment(request.GetAccessibleTopology().GetSegments()).String()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, place)
		for _, key := range []string{place, pool} {
			if answer := s.free[key]; answer != nil {
				return answer, nil
			}
		}
		return nil, fmt.Errorf("there is no pool %s", place)
	})
	return s
}

// has gives a pool, or a pool in a segment, its room; volumeMax below 0 for none.
func (s *scene) has(place string, sizeBytes, volumeMaxBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := &csi.GetCapacityResponse{AvailableCapacity: sizeBytes}
	if volumeMaxBytes >= 0 {
		answer.MaximumVolumeSize = wrapperspb.Int64(volumeMaxBytes)
	}
	s.free[place] = answer
}

// calls are how often the driver was asked, of one place or of all.
func (s *scene) calls(place string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, one := range s.asked {
		if place == "" || one == place {
			n++
		}
	}
	return n
}

func (s *scene) start(config capacity.Config) {
	s.Helper()
	component, err := capacity.New(s.Env, config)
	if err != nil {
		s.Fatal(err)
	}
	s.component = component
	s.stop = s.Run(component)
}

// polled lets poll intervals pass until every item was handled once after what
// happened before. There is one worker, and it begins with an item for the second
// time only when it has done with it for the first.
func (s *scene) polled(places ...string) {
	s.Helper()
	before := map[string]int{}
	for _, place := range places {
		before[place] = s.calls(place)
	}
	s.Eventually(func() error {
		s.clock.Step(interval)
		for _, place := range places {
			if s.calls(place) < before[place]+2 {
				return fmt.Errorf("the driver was not asked again of %s", place)
			}
		}
		return nil
	})
}

// object describes an object: "class [segment] bytes max=bytes owner=Kind/name".
func objectText(object *storagev1.CSIStorageCapacity) string {
	segment := "nowhere"
	if object.NodeTopology != nil {
		segment = topology.NewSegment(object.NodeTopology.MatchLabels).String()
	}
	text := fmt.Sprintf("%s [%s]", object.StorageClassName, segment)
	if object.Capacity != nil {
		text += fmt.Sprintf(" %d", object.Capacity.Value())
	}
	if object.MaximumVolumeSize != nil {
		text += fmt.Sprintf(" max=%d", object.MaximumVolumeSize.Value())
	}
	for _, owner := range object.OwnerReferences {
		text += " owner=" + owner.Kind + "/" + owner.Name
	}
	return text
}

func (s *scene) objects() (texts []string) {
	list, err := s.Kube.StorageV1().CSIStorageCapacities(namespace).List(s.Ctx, metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	for i := range list.Items {
		texts = append(texts, objectText(&list.Items[i]))
	}
	slices.Sort(texts)
	return texts
}

// want waits until the objects in the cluster are these.
func (s *scene) want(texts ...string) {
	s.Helper()
	slices.Sort(texts)
	s.Eventually(func() error {
		if got := s.objects(); !slices.Equal(got, texts) {
			return fmt.Errorf("objects %q, want %q", got, texts)
		}
		return nil
	})
}

// cached waits until the component's cache has every object it published.
func (s *scene) cached() {
	s.Helper()
	s.Eventually(func() error {
		gauges, err := s.gauges()
		if err == nil && (gauges["desired_goal"] == 0 || gauges["desired_current"] != gauges["desired_goal"] || gauges["obsolete"] != 0) {
			err = fmt.Errorf("metrics %v", gauges)
		}
		return err
	})
}

// gauges are the component's metrics without the beginning of their names.
func (s *scene) gauges() (map[string]float64, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.component.Collectors()...)
	families, err := registry.Gather()
	gauges := map[string]float64{}
	for _, family := range families {
		gauges[strings.TrimPrefix(family.GetName(), "csistoragecapacities_")] = family.GetMetric()[0].GetGauge().GetValue()
	}
	return gauges, err
}

// wrote expects the writes to capacity objects since the last time, as verbs
// with how often.
func (s *scene) wrote(want map[string]int) {
	s.Helper()
	got := map[string]int{}
	for _, write := range s.Writes() {
		if verb, rest, _ := strings.Cut(write, " "); strings.HasPrefix(rest, "csistoragecapacities") {
			got[verb]++
		}
	}
	if !maps.Equal(got, want) {
		s.Errorf("writes %v, want %v", got, want)
	}
	s.Kube.ClearActions()
}

func driver(plugin ...csi.PluginCapability_Service_Type) csiclient.Info {
	info := csiclient.Info{
		Plugin:     map[csi.PluginCapability_Service_Type]bool{},
		Controller: map[csi.ControllerServiceCapability_RPC_Type]bool{csi.ControllerServiceCapability_RPC_GET_CAPACITY: true},
	}
	for _, one := range plugin {
		info.Plugin[one] = true
	}
	return info
}

func zonal() csiclient.Info {
	return driver(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS)
}

// class is one of late binding whose pool has its name.
func class(name string, changes ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	return sidecartest.StorageClass(name, append([]func(*storagev1.StorageClass){func(class *storagev1.StorageClass) {
		late := storagev1.VolumeBindingWaitForFirstConsumer
		class.VolumeBindingMode = &late
		class.Parameters = map[string]string{"pool": name}
	}}, changes...)...)
}

// node is a node with the driver, in a zone.
func node(name, zone string) []runtime.Object {
	return []runtime.Object{
		sidecartest.Node(name, func(node *v1.Node) { node.Labels["zone"] = zone }),
		sidecartest.CSINode(name, "zone"),
	}
}

func controlledBy(kind, name string) []metav1.OwnerReference {
	isController := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: &isController}}
}

// deployment is a pod, the replica set above it, and the deployment above that,
// which nobody reads.
func deployment(pod, replicaSet, deployment string) []runtime.Object {
	return []runtime.Object{
		&v1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: pod, Namespace: namespace, UID: types.UID("uid-" + pod), OwnerReferences: controlledBy("ReplicaSet", replicaSet)}},
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Name: replicaSet, Namespace: namespace, UID: types.UID("uid-" + replicaSet), OwnerReferences: controlledBy("Deployment", deployment)}},
	}
}

// daemonPod is a pod of a DaemonSet.
func daemonPod(pod, daemonSet string) runtime.Object {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: pod, Namespace: namespace, UID: types.UID("uid-" + pod), OwnerReferences: controlledBy("DaemonSet", daemonSet)}}
}

// published is an object that upstream's provisioner made.
func published(name, class, segment string, sizeBytes int64, changes ...func(*storagev1.CSIStorageCapacity)) *storagev1.CSIStorageCapacity {
	size := sidecartest.Size(sizeBytes)
	labels := map[string]string{}
	if key, value, ok := strings.Cut(segment, "="); ok {
		labels[key] = value
	}
	object := &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID("uid-" + name), Labels: map[string]string{
			"csi.storage.k8s.io/drivername": sidecartest.DriverName, "csi.storage.k8s.io/managed-by": "external-provisioner",
		}},
		StorageClassName: class, NodeTopology: &metav1.LabelSelector{MatchLabels: labels}, Capacity: &size,
	}
	for _, change := range changes {
		change(object)
	}
	return object
}

func ownedBy(kind, name string) func(*storagev1.CSIStorageCapacity) {
	return func(object *storagev1.CSIStorageCapacity) {
		object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID("uid-" + name)}}
	}
}

func all(lists ...[]runtime.Object) []runtime.Object { return slices.Concat(lists...) }

func list(objects ...runtime.Object) []runtime.Object { return objects }
