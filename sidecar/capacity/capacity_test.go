package capacity_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/capacity"
	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhatIsPublished(t *testing.T) {
	zones := all(node("n1", "a"), node("n2", "b"), node("n3", "a"))
	immediate := func(class *storagev1.StorageClass) {
		mode := storagev1.VolumeBindingImmediate
		class.VolumeBindingMode = &mode
	}
	onlyIn := func(key, zone string) func(*storagev1.StorageClass) {
		return func(class *storagev1.StorageClass) {
			class.AllowedTopologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{
				{Key: key, Values: []string{zone}}}}}
		}
	}
	for _, c := range []struct {
		name    string
		info    csiclient.Info
		objects []runtime.Object
		config  capacity.Config
		want    []string
	}{
		{name: "one object a class and segment", info: zonal(), objects: all(zones, list(class("ssd"), class("hdd"))),
			want: []string{"ssd [zone=a] 100", "ssd [zone=b] 100", "hdd [zone=a] 7 max=5", "hdd [zone=b] 7 max=5"}},
		{name: "driver without topology: the whole cluster", info: driver(), objects: all(zones, list(class("ssd"))),
			want: []string{"ssd [] 100"}},
		{name: "classes of late binding only", info: driver(), objects: list(class("ssd"), class("hdd", immediate)),
			want: []string{"ssd [] 100"}},
		{name: "classes of immediate binding too", info: driver(), objects: list(class("ssd"), class("hdd", immediate)),
			config: capacity.Config{ImmediateBinding: true}, want: []string{"ssd [] 100", "hdd [] 7 max=5"}},
		{name: "classes of other drivers never", info: driver(), objects: list(class("ssd"), class("hdd", func(class *storagev1.StorageClass) {
			class.Provisioner = "other.example.com"
		})), want: []string{"ssd [] 100"}},
		{name: "segments the class does not allow", info: zonal(), objects: all(zones, list(class("ssd", onlyIn("zone", "b")))),
			want: []string{"ssd [zone=b] 100"}},
		{name: "allowed by a key the driver does not know", info: zonal(), objects: all(zones, list(class("ssd", onlyIn("rack", "1")))),
			want: []string{"ssd [zone=a] 100", "ssd [zone=b] 100"}},
		{name: "no room is published too", info: driver(), objects: list(class("none")), want: []string{"none [] 0"}},
		{name: "owner: the pod", info: driver(), objects: all(deployment("p", "rs", "d"), list(class("ssd"))),
			config: capacity.Config{PodName: "p"}, want: []string{"ssd [] 100 owner=Pod/p"}},
		{name: "owner: one level up", info: driver(), objects: all(deployment("p", "rs", "d"), list(class("ssd"))),
			config: capacity.Config{PodName: "p", OwnerLevel: 1}, want: []string{"ssd [] 100 owner=ReplicaSet/rs"}},
		{name: "owner: two levels up", info: driver(), objects: all(deployment("p", "rs", "d"), list(class("ssd"))),
			config: capacity.Config{PodName: "p", OwnerLevel: 2}, want: []string{"ssd [] 100 owner=Deployment/d"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, c.info, c.objects...)
			s.has("ssd", 100, -1)
			s.has("hdd", 7, 5)
			s.has("none", 0, -1)
			if c.config.PodName == "" {
				c.config.OwnerLevel = capacity.NoOwner
			}
			s.start(c.config)
			s.want(c.want...)
			s.wrote(map[string]int{"create": len(c.want)})
		})
	}
}

func TestObjectsHaveUpstreamsLabels(t *testing.T) {
	s := newScene(t, driver(), class("ssd"))
	s.has("ssd", 100, -1)
	s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
	s.want("ssd [] 100")
	objects, err := s.Kube.StorageV1().CSIStorageCapacities(namespace).List(s.Ctx, metav1.ListOptions{
		LabelSelector: "csi.storage.k8s.io/drivername=driver.example.com,csi.storage.k8s.io/managed-by=external-provisioner"})
	if err != nil || len(objects.Items) != 1 {
		t.Fatalf("%d objects with the labels, %v", len(objects.Items), err)
	}
	if object := objects.Items[0]; !strings.HasPrefix(object.Name, "csisc-") || object.NodeTopology == nil {
		t.Errorf("name %s, nodes %v", object.Name, object.NodeTopology)
	}
}

func TestOnlyWhatDiffersIsWritten(t *testing.T) {
	for _, c := range []struct {
		name       string
		size, most int64
		want       string
		writes     map[string]int
	}{
		{"nothing", 100, 50, "ssd [] 100 max=50", map[string]int{}},
		{"room", 90, 50, "ssd [] 90 max=50", map[string]int{"patch": 1}},
		{"no room", 0, 50, "ssd [] 0 max=50", map[string]int{"patch": 1}},
		{"largest volume", 100, 40, "ssd [] 100 max=40", map[string]int{"patch": 1}},
		{"no largest volume any more", 100, -1, "ssd [] 100", map[string]int{"patch": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, driver(), class("ssd"))
			s.has("ssd", 100, 50)
			s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
			s.want("ssd [] 100 max=50")
			s.cached()
			s.wrote(map[string]int{"create": 1})
			s.has("ssd", c.size, c.most)
			s.polled("ssd ")
			s.polled("ssd ")
			s.want(c.want)
			s.wrote(c.writes)
		})
	}
}

func TestDriverThatFailsChangesNothing(t *testing.T) {
	s := newScene(t, driver(), class("ssd"), published("csisc-x", "ssd", "", 100))
	s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
	s.polled("ssd ")
	s.has("ssd", -5, -1)
	s.polled("ssd ")
	s.wrote(map[string]int{})
	s.want("ssd [] 100")
	if log := s.Log(); !strings.Contains(log, "there is no pool") || !strings.Contains(log, "negative number of bytes") {
		t.Errorf("log: %s", log)
	}
	s.has("ssd", 80, -1)
	s.polled("ssd ")
	s.want("ssd [] 80")
}

func TestObjectsOfOthersAreLeftAlone(t *testing.T) {
	relabel := func(label, value string) func(*storagev1.CSIStorageCapacity) {
		return func(object *storagev1.CSIStorageCapacity) { object.Labels["csi.storage.k8s.io/"+label] = value }
	}
	s := newScene(t, driver(), class("ssd"),
		published("a", "ssd", "", 1, relabel("drivername", "other.example.com")),
		published("b", "gone", "", 2, relabel("managed-by", "external-provisioner-n1")),
		published("c", "gone", "", 3))
	s.has("ssd", 100, -1)
	s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
	s.want("ssd [] 1", "gone [] 2", "ssd [] 100")
	s.wrote(map[string]int{"create": 1, "delete": 1})
}

func TestObjectsOfNoUseAreRemoved(t *testing.T) {
	s := newScene(t, zonal(), all(node("n1", "a"), list(class("ssd"),
		published("keep", "ssd", "zone=a", 100),
		published("twice", "ssd", "zone=a", 100),
		published("segment", "ssd", "zone=z", 100),
		published("class", "gone", "zone=a", 100),
		published("nowhere", "ssd", "", 100, func(object *storagev1.CSIStorageCapacity) { object.NodeTopology = nil }),
		published("expression", "ssd", "", 100, func(object *storagev1.CSIStorageCapacity) {
			object.NodeTopology = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: "Exists"}}}
		})))...)
	s.has("ssd", 100, -1)
	s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
	s.want("ssd [zone=a] 100")
	s.wrote(map[string]int{"delete": 5})
	if _, err := s.Kube.StorageV1().CSIStorageCapacities(namespace).Get(s.Ctx, "keep", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestWhatSomebodyElseDidIsPutRight(t *testing.T) {
	s := newScene(t, driver(), class("ssd"), published("csisc-x", "ssd", "", 100))
	s.has("ssd", 100, -1)
	s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
	s.polled("ssd ")
	s.wrote(map[string]int{})
	client := s.Kube.StorageV1().CSIStorageCapacities(namespace)
	edited, err := client.Get(s.Ctx, "csisc-x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	edited = edited.DeepCopy()
	edited.Capacity.Set(1)
	if _, err := client.Update(s.Ctx, edited, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.want("ssd [] 100")
	s.wrote(map[string]int{"update": 1, "patch": 1})
	if err := client.Delete(s.Ctx, "csisc-x", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.want("ssd [] 100")
	s.wrote(map[string]int{"delete": 1, "create": 1})
	if _, err := client.Create(s.Ctx, published("csisc-y", "ssd", "", 100), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Eventually(func() error {
		if n := len(s.objects()); n != 1 {
			return fmt.Errorf("%d objects", n)
		}
		return nil
	})
}

// TestObjectThatTheCacheDoesNotKnowIsAdopted is two leaders for a moment: the
// other makes the object just before this one does.
func TestObjectThatTheCacheDoesNotKnowIsAdopted(t *testing.T) {
	for _, c := range []struct {
		name   string
		other  func(*storagev1.CSIStorageCapacity)
		want   string
		writes map[string]int
	}{
		{"the same", func(*storagev1.CSIStorageCapacity) {}, "ssd [] 100", map[string]int{"create": 1}},
		{"other room", func(object *storagev1.CSIStorageCapacity) { object.Capacity.Set(1) }, "ssd [] 100", map[string]int{"create": 1, "patch": 1}},
		{"not ours", func(object *storagev1.CSIStorageCapacity) { object.Labels = nil }, "ssd [] 100", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, driver(), class("ssd"))
			s.has("ssd", 100, -1)
			made := false
			s.Kube.PrependReactor("create", "csistoragecapacities", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if made {
					return false, nil, nil
				}
				made = true
				object := action.(clienttesting.CreateAction).GetObject().(*storagev1.CSIStorageCapacity).DeepCopy()
				c.other(object)
				return false, nil, s.Kube.Tracker().Create(action.GetResource(), object, namespace)
			})
			s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
			s.polled("ssd ")
			s.want(c.want)
			if c.writes != nil {
				s.wrote(c.writes)
			} else if !strings.Contains(s.Log(), "not managed by external-provisioner") {
				t.Error("nothing is said")
			}
		})
	}
}

func TestNewsOfVolumesAreAnsweredByOneQuestionSoon(t *testing.T) {
	s := newScene(t, zonal(), all(node("n1", "a"), node("n2", "b"), list(class("ssd"), class("hdd")))...)
	s.has("ssd", 100, -1)
	s.has("hdd", 100, -1)
	zoneA := []*csi.Topology{{Segments: map[string]string{"zone": "a", "rack": "1"}}}
	// The delay takes a while of real time too, in which all the news are taken in.
	s.start(capacity.Config{OwnerLevel: capacity.NoOwner, RefreshDelay: 10 * time.Second})
	s.want("ssd [zone=a] 100", "ssd [zone=b] 100", "hdd [zone=a] 100", "hdd [zone=b] 100")
	s.cached()
	s.has("ssd", 60, -1)
	for range 100 {
		s.component.Refresh("ssd", zoneA)
	}
	before := s.calls("")
	s.Eventually(func() error {
		s.clock.Step(interval / 1000)
		if s.calls("ssd zone=a") < 2 {
			return fmt.Errorf("the driver was not asked again")
		}
		return nil
	})
	s.want("ssd [zone=a] 60", "ssd [zone=b] 100", "hdd [zone=a] 100", "hdd [zone=b] 100")
	if more := s.calls("") - before; more != 1 {
		t.Errorf("%d questions", more)
	}
	s.component.Refresh("ssd", nil)
	s.component.Refresh("unknown", zoneA)
	s.Eventually(func() error {
		s.clock.Step(interval / 1000)
		if s.calls("ssd zone=b") < 2 {
			return fmt.Errorf("the driver was not asked again")
		}
		return nil
	})
	s.want("ssd [zone=a] 60", "ssd [zone=b] 60", "hdd [zone=a] 100", "hdd [zone=b] 100")
	s.stop()
	s.component.Refresh("ssd", nil)
}

func TestDriverGetsItsOwnParametersOnly(t *testing.T) {
	s := newScene(t, driver(), class("ssd", func(class *storagev1.StorageClass) {
		for _, name := range []string{"csi.storage.k8s.io/fstype", "csi.storage.k8s.io/provisioner-secret-name", "fsType", "csiProvisionerSecretName", "csiX"} {
			class.Parameters[name] = "x"
		}
	}))
	s.has("ssd", 100, -1)
	s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
	s.want("ssd [] 100")
	request := s.Driver.Calls("GetCapacity")[0].Request.(*csi.GetCapacityRequest)
	want := map[string]string{"pool": "ssd", "fsType": "x", "csiProvisionerSecretName": "x", "csiX": "x"} // as CreateVolume gets them
	if got := request.GetParameters(); !maps.Equal(got, want) {
		t.Errorf("parameters %v", got)
	}
	if request.GetVolumeCapabilities() != nil || request.GetAccessibleTopology() != nil {
		t.Errorf("request %v", request)
	}
}

func TestRunSaysWhyItCannotWork(t *testing.T) {
	plain := driver()
	plain.Controller = nil
	for _, c := range []struct {
		name   string
		info   csiclient.Info
		config capacity.Config
		want   string
	}{
		{"driver without GET_CAPACITY", plain, capacity.Config{OwnerLevel: capacity.NoOwner}, "GET_CAPACITY"},
		{"node without topology", driver(), capacity.Config{OwnerLevel: capacity.NoOwner, NodeName: "n1"}, "VOLUME_ACCESSIBILITY_CONSTRAINTS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bed := sidecartest.New(t, c.info)
			component, err := capacity.New(bed.Env, c.config)
			if err != nil {
				t.Fatal(err)
			}
			if err := component.Run(bed.Ctx); !errors.Is(err, sidecar.ErrNothingToDo) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestAStopBeforeTheCachesAreFullLeavesNothingBehind: TestMain looks for what goes on.
func TestAStopBeforeTheCachesAreFullLeavesNothingBehind(t *testing.T) {
	s := newScene(t, driver(), class("ssd"))
	s.Refuse("list storageclasses", -1, apierrors.NewServiceUnavailable("paused"))
	s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
	s.Eventually(func() error {
		for _, action := range s.Kube.Actions() {
			if action.Matches("list", "storageclasses") {
				return nil
			}
		}
		return errors.New("the classes were not asked for")
	})
	s.stop()
}

func TestSettingsOutOfRangeAreNamed(t *testing.T) {
	bed := sidecartest.New(t, driver())
	for field, config := range map[string]capacity.Config{
		"Workers":      {Workers: -1, OwnerLevel: -1},
		"PollInterval": {PollInterval: 1, OwnerLevel: -1},
		"RetryMax":     {RetryMin: 5e9, RetryMax: 1e9, OwnerLevel: -1},
		"OwnerLevel":   {OwnerLevel: -2, PodName: "p"},
		"PodName":      {},
	} {
		if _, err := capacity.New(bed.Env, config); err == nil || !strings.Contains(err.Error(), "capacity: "+field+" is") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestMetricsCountObjects(t *testing.T) {
	s := newScene(t, driver(), class("ssd"), class("broken"), published("csisc-x", "ssd", "", 100), published("csisc-y", "gone", "", 100))
	s.has("ssd", 100, -1)
	s.Refuse("delete csistoragecapacities", -1, apierrors.NewForbidden(schema.GroupResource{}, "csisc-y", nil))
	s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
	s.Eventually(func() error {
		got, err := s.gauges()
		if want := map[string]float64{"desired_current": 1, "desired_goal": 2, "obsolete": 1}; err == nil && !maps.Equal(got, want) {
			err = fmt.Errorf("metrics %v", got)
		}
		return err
	})
}
