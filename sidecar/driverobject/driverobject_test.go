package driverobject

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scene is a cluster with the component.
type scene struct {
	*sidecartest.Bed
	clock     *clocktesting.FakeClock
	component *DriverObject
}

func newScene(t *testing.T, info csiclient.Info, config Config, objects ...runtime.Object) *scene {
	t.Helper()
	s := &scene{Bed: sidecartest.New(t, info, objects...), clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	s.Env.Clock = s.clock
	component, err := New(s.Env, config)
	if err != nil {
		t.Fatal(err)
	}
	s.component = component
	return s
}

// reported waits until the events are these, by reason and begin of text,
// while time passes.
func (s *scene) reported(want ...string) {
	s.Helper()
	s.Eventually(func() error {
		s.clock.Step(settleTime)
		events := s.Events()
		if len(events) != len(want) {
			return fmt.Errorf("events %q, want %q", events, want)
		}
		for i := range want {
			if !strings.HasPrefix(events[i], "Warning "+want[i]) {
				return fmt.Errorf("event %q, want %q", events[i], want[i])
			}
		}
		return nil
	})
}

// stored is the object in the cluster, once it is as wanted.
func (s *scene) stored(check func(*storagev1.CSIDriver) bool) *storagev1.CSIDriver {
	s.Helper()
	var object *storagev1.CSIDriver
	s.Eventually(func() (err error) {
		object, err = s.Kube.StorageV1().CSIDrivers().Get(s.Ctx, sidecartest.DriverName, metav1.GetOptions{})
		if err == nil && !check(object) {
			err = fmt.Errorf("object %v", object.Spec)
		}
		return err
	})
	return object
}

func (s *scene) wrote(want ...string) {
	s.Helper()
	if got := s.Writes(); !slices.Equal(got, want) {
		s.Errorf("writes %q, want %q", got, want)
	}
	s.Kube.ClearActions()
}

// found is how much is wrong now, by reason.
func (s *scene) found() map[string]float64 {
	s.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.component.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		s.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			found[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
		}
	}
	return found
}

// looked registers the driver wrongly on one more node, and waits until that
// is reported: what there was to do to the CSIDriver is done by then.
func (s *scene) looked() {
	s.Helper()
	before := len(s.Events())
	nodes := s.Kube.StorageV1().CSINodes()
	other := sidecartest.CSINode(fmt.Sprintf("twin-%d", before))
	other.Spec.Drivers[0].NodeID = ""
	known := s.found()[reasonNodeIDEmpty]
	if _, err := nodes.Create(s.Ctx, other, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	stored, err := s.Kube.StorageV1().CSIDrivers().List(s.Ctx, metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	// No time passes before the component has seen both: what it misses a little
	// while would be reported.
	s.Eventually(func() error {
		found := s.found()
		if found[reasonNodeIDEmpty] <= known || (found[reasonMissing] > 0) == (len(stored.Items) > 0) {
			return fmt.Errorf("found %v", found)
		}
		return nil
	})
	s.Eventually(func() error {
		s.clock.Step(settleTime)
		if len(s.Events()) == before {
			return errors.New("not looked at")
		}
		return nil
	})
}

func TestObjectIsMadeOfConfigAndCapabilities(t *testing.T) {
	yes, seconds, policy := true, int64(60), storagev1.NoneFSGroupPolicy
	config := Config{Create: true, PodInfoOnMount: &yes, FSGroupPolicy: &policy, StorageCapacity: &yes, NodeAllocatableUpdatePeriodSeconds: &seconds,
		VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{"Persistent", "Ephemeral"}, RequiresRepublish: &yes,
		TokenRequests: []storagev1.TokenRequest{{Audience: "vault"}}}
	for can, attaches := range map[string]bool{"attach": true, "": false} {
		s := newScene(t, info(can, "capacity"), config)
		s.Run(s.component)
		spec := s.stored(func(object *storagev1.CSIDriver) bool { return true }).Spec
		if *spec.AttachRequired != attaches || !*spec.PodInfoOnMount || *spec.FSGroupPolicy != policy || !*spec.StorageCapacity ||
			*spec.NodeAllocatableUpdatePeriodSeconds != 60 || len(spec.VolumeLifecycleModes) != 2 || !*spec.RequiresRepublish ||
			spec.SELinuxMount != nil || spec.TokenRequests[0].Audience != "vault" {
			t.Errorf("%+v", spec)
		}
		s.looked()
		s.wrote("create csidrivers "+sidecartest.DriverName, "create csinodes twin-0")
	}
}

func TestObjectThatIsThereIsNotChangedUnasked(t *testing.T) {
	yes := true
	s := newScene(t, info("attach"), Config{Create: true, PodInfoOnMount: &yes}, driverObject(attachRequired(true)))
	s.Run(s.component)
	s.reported("CSIDriverDiffers podInfoOnMount is not set, not true")
	s.wrote()
}

func TestFieldsAreUpdatedOnceAndThenLeftToHumans(t *testing.T) {
	yes, no := true, false
	policy := storagev1.FileFSGroupPolicy
	s := newScene(t, info("attach"), Config{Update: true, PodInfoOnMount: &yes, FSGroupPolicy: &policy, AttachRequired: &yes},
		driverObject(attachRequired(false), func(spec *storagev1.CSIDriverSpec) { spec.RequiresRepublish = &yes }))
	s.Run(s.component)
	object := s.stored(func(object *storagev1.CSIDriver) bool {
		return object.Spec.PodInfoOnMount != nil && *object.Spec.PodInfoOnMount && *object.Spec.FSGroupPolicy == policy
	})
	if *object.Spec.AttachRequired || !*object.Spec.RequiresRepublish {
		t.Errorf("%+v", object.Spec)
	}
	s.reported("CSIDriverDiffers attachRequired is false, not true; Kubernetes does not let it change")
	s.wrote("patch csidrivers " + sidecartest.DriverName)
	object = object.DeepCopy()
	object.Spec.PodInfoOnMount = &no
	if _, err := s.Kube.StorageV1().CSIDrivers().Update(s.Ctx, object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.reported("CSIDriverDiffers attachRequired", "CSIDriverDiffers podInfoOnMount is false, not true")
	s.wrote("update csidrivers " + sidecartest.DriverName)
}

func TestObjectThatSomebodyDeletedIsNotMadeAgain(t *testing.T) {
	s := newScene(t, info("attach"), Config{Create: true})
	stop := s.Run(s.component)
	s.stored(func(*storagev1.CSIDriver) bool { return true })
	s.looked()
	s.Kube.ClearActions()
	if err := s.Kube.StorageV1().CSIDrivers().Delete(s.Ctx, sidecartest.DriverName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.reported("NodeIDEmpty Node twin-0", "CSIDriverMissing")
	stop()
	s.Run(s.component)
	s.looked()
	s.wrote("delete csidrivers "+sidecartest.DriverName, "create csinodes twin-2")
}

func TestFindingsAreReportedOnceAndNothingIsAskedWhileIdle(t *testing.T) {
	s := newScene(t, info("topology"), Config{}, driverObject(attachRequired(true)),
		sidecartest.Node("a", func(node *v1.Node) { node.Labels["zone"] = "1" }), sidecartest.CSINode("a", "zone"),
		sidecartest.Node("b"), sidecartest.CSINode("b", "zone"), sidecartest.CSINode("gone", "rack"))
	stop := s.Run(s.component)
	s.reported("AttachWithoutCapability", "TopologyLabelMissing Node b: no label zone")
	if n := strings.Count(s.Log(), "level=WARN"); n != 2 {
		t.Errorf("%d warnings in the log", n)
	}
	if want := map[string]float64{"AttachWithoutCapability": 1, "TopologyLabelMissing": 1}; !maps.Equal(s.found(), want) {
		t.Errorf("metrics %v", s.found())
	}
	s.Watched("csidrivers", "csinodes", "nodes")
	s.Kube.ClearActions()
	for range 10 {
		s.clock.Step(time.Hour)
	}
	stop()
	if actions := s.Kube.Actions(); len(actions) != 0 {
		t.Errorf("requests while idle: %v", actions)
	}
	s.Run(s.component) // after a lost lease: nothing new to say of the old
	if _, err := s.Kube.CoreV1().Nodes().Create(s.Ctx, sidecartest.Node("gone"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.reported("AttachWithoutCapability", "TopologyLabelMissing Node b: no label zone",
		"TopologyLabelMissing Node gone: no label rack", "TopologyKeysDiffer")
}

func TestMissingPermissionIsNamed(t *testing.T) {
	s := newScene(t, info("attach"), Config{})
	refuse := func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "storage.k8s.io", Resource: "csidrivers"}, "", errors.New("no"))
	}
	s.Kube.PrependReactor("list", "csidrivers", refuse)
	s.Kube.PrependWatchReactor("csidrivers", clienttesting.DefaultWatchReactor(nil,
		apierrors.NewForbidden(schema.GroupResource{Group: "storage.k8s.io", Resource: "csidrivers"}, "", errors.New("no"))))
	if err := s.component.Run(s.Ctx); err == nil || !strings.Contains(err.Error(), "the role must allow csidrivers") {
		t.Errorf("%v", err)
	}
	s = newScene(t, info("attach"), Config{Create: true})
	s.Refuse("create csidrivers", 1, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")))
	if err := s.component.Run(s.Ctx); err == nil || !strings.Contains(err.Error(), "create CSIDriver") {
		t.Errorf("%v", err)
	}
	s.Run(s.component)
	s.stored(func(*storagev1.CSIDriver) bool { return true })
}

func TestSettingsOutOfRangeAreNamed(t *testing.T) {
	five, policy := int64(5), storagev1.FSGroupPolicy("Sometimes")
	bed := sidecartest.New(t, info())
	for field, config := range map[string]Config{
		"VolumeLifecycleModes":               {VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{"Eternal"}},
		"FSGroupPolicy":                      {FSGroupPolicy: &policy},
		"TokenRequests":                      {TokenRequests: []storagev1.TokenRequest{{Audience: "a"}, {Audience: "a"}}},
		"TokenRequests.ExpirationSeconds":    {TokenRequests: []storagev1.TokenRequest{{ExpirationSeconds: &five}}},
		"NodeAllocatableUpdatePeriodSeconds": {NodeAllocatableUpdatePeriodSeconds: &five},
	} {
		if _, err := New(bed.Env, config); err == nil || !strings.Contains(err.Error(), "csidriver: "+field+" is") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
