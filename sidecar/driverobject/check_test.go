package driverobject

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// info is a driver with a controller that can do what is named: attach,
// capacity, topology; "node" is a node plugin, without a controller.
func info(can ...string) csiclient.Info {
	info := csiclient.Info{
		Name:       sidecartest.DriverName,
		Plugin:     map[csi.PluginCapability_Service_Type]bool{csi.PluginCapability_Service_CONTROLLER_SERVICE: true},
		Controller: map[csi.ControllerServiceCapability_RPC_Type]bool{},
	}
	for _, one := range can {
		switch one {
		case "attach":
			info.Controller[csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME] = true
		case "capacity":
			info.Controller[csi.ControllerServiceCapability_RPC_GET_CAPACITY] = true
		case "topology":
			info.Plugin[csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS] = true
		case "node":
			info.Plugin = map[csi.PluginCapability_Service_Type]bool{}
		}
	}
	return info
}

func driverObject(changes ...func(*storagev1.CSIDriverSpec)) *storagev1.CSIDriver {
	object := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: sidecartest.DriverName, UID: "uid-1"}}
	for _, change := range changes {
		change(&object.Spec)
	}
	return object
}

func attachRequired(yes bool) func(*storagev1.CSIDriverSpec) {
	return func(spec *storagev1.CSIDriverSpec) { spec.AttachRequired = &yes }
}

func storageCapacity(yes bool) func(*storagev1.CSIDriverSpec) {
	return func(spec *storagev1.CSIDriverSpec) { spec.StorageCapacity = &yes }
}

func reasons(found []finding) string {
	var all []string
	for _, one := range found {
		all = append(all, one.reason)
	}
	return strings.Join(all, " ")
}

func TestWhatIsWrongWithTheCSIDriver(t *testing.T) {
	yes, no := true, false
	policy := storagev1.FileFSGroupPolicy
	for _, c := range []struct {
		name   string
		object *storagev1.CSIDriver
		info   csiclient.Info
		config Config
		want   string
	}{
		{"all is right", driverObject(attachRequired(true)), info("attach"), Config{}, ""},
		{"not there", nil, info("attach"), Config{}, reasonMissing},
		{"attach for nothing", driverObject(attachRequired(true)), info(), Config{}, reasonAttachNoCapability},
		{"attach by default for nothing", driverObject(), info(), Config{}, reasonAttachNoCapability},
		{"no attach, none wanted", driverObject(attachRequired(false)), info(), Config{}, ""},
		{"never attached", driverObject(attachRequired(false)), info("attach"), Config{}, reasonCapabilityNoAttach},
		{"never attached, and that is meant", driverObject(attachRequired(false)), info("attach"), Config{AttachRequired: &no}, ""},
		{"other than meant", driverObject(attachRequired(false)), info("attach"), Config{AttachRequired: &yes}, reasonDiffers},
		{"a node plugin says nothing of the controller", driverObject(storageCapacity(true)), info("node"), Config{}, ""},
		{"capacity without capability", driverObject(storageCapacity(true)), info("attach"), Config{}, reasonCapacityNoCapability},
		{"capacity", driverObject(storageCapacity(true)), info("attach", "capacity"), Config{PublishesCapacity: true}, ""},
		{"capacity for nobody", driverObject(), info("attach", "capacity"), Config{PublishesCapacity: true}, reasonCapacityIgnored},
		{"capacity that nobody publishes here", driverObject(), info("attach", "capacity"), Config{}, ""},
		{"fields that Config does not give", driverObject(func(spec *storagev1.CSIDriverSpec) {
			spec.FSGroupPolicy, spec.PodInfoOnMount = &policy, &yes
		}), info("attach"), Config{}, ""},
		{"fields that differ", driverObject(func(spec *storagev1.CSIDriverSpec) { spec.PodInfoOnMount = &no }), info("attach"),
			Config{PodInfoOnMount: &yes, FSGroupPolicy: &policy}, reasonDiffers + " " + reasonDiffers},
		{"modes in another order", driverObject(func(spec *storagev1.CSIDriverSpec) {
			spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{"Persistent", "Ephemeral"}
		}), info("attach"), Config{VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{"Ephemeral", "Persistent"}}, ""},
		{"other modes", driverObject(), info("attach"),
			Config{VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{"Ephemeral"}}, reasonDiffers},
	} {
		if got := checkObject(c.object, c.info, c.config); reasons(got) != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

// registered is a node "name id=… count=… keys=a,b labels=a,b".
func registered(line string) registration {
	words := strings.Fields(line)
	one := registration{node: words[0], driver: &storagev1.CSINodeDriver{Name: sidecartest.DriverName, NodeID: "id-" + words[0]}, labels: map[string]string{}}
	for _, word := range words[1:] {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "id":
			one.driver.NodeID = value
		case "keys":
			one.driver.TopologyKeys = strings.Split(value, ",")
		case "labels":
			for _, key := range strings.Split(value, ",") {
				one.labels[key] = "x"
			}
		case "count":
			var count int32
			if _, err := fmt.Sscan(value, &count); err != nil {
				panic(err)
			}
			one.driver.Allocatable = &storagev1.VolumeNodeResources{Count: &count}
		}
	}
	return one
}

func TestWhatIsWrongWithNodes(t *testing.T) {
	for _, c := range []struct {
		name       string
		noTopology bool
		nodes      []string
		want       string
		text       string
	}{
		{name: "all is right", nodes: []string{"a keys=zone labels=zone count=1", "b keys=zone labels=zone,rack"}},
		{name: "no nodes"},
		{name: "empty id", nodes: []string{"a id= keys=zone labels=zone"}, want: reasonNodeIDEmpty, text: "Node a"},
		{name: "two empty ids are not one id", nodes: []string{"a id= keys=z labels=z", "b id= keys=z labels=z"}, want: reasonNodeIDEmpty + " " + reasonNodeIDEmpty},
		{name: "one id twice", nodes: []string{"a id=x keys=z labels=z", "b id=x keys=z labels=z"}, want: reasonNodeIDNotUnique, text: `Nodes a and b: the driver registered the nodeID "x"`},
		{name: "one id three times", nodes: []string{"a id=x keys=z labels=z", "b id=x keys=z labels=z", "c id=x keys=z labels=z"},
			want: reasonNodeIDNotUnique + " " + reasonNodeIDNotUnique},
		{name: "nothing fits", nodes: []string{"a count=0 keys=z labels=z"}, want: reasonAllocatableCountSmall},
		{name: "no keys", nodes: []string{"a keys=z labels=z", "b"}, want: reasonTopologyKeysMissing, text: "Node b"},
		{name: "keys without topology", noTopology: true, nodes: []string{"a keys=z labels=z"}, want: reasonTopologyKeysUnused},
		{name: "no keys without topology", noTopology: true, nodes: []string{"a", "b"}},
		{name: "no label", nodes: []string{"a keys=rack,zone labels=zone"}, want: reasonTopologyLabelMissing, text: "no label rack"},
		{name: "keys in another order", nodes: []string{"a keys=rack,zone labels=rack,zone", "b keys=zone,rack labels=rack,zone"}},
		{name: "other keys", nodes: []string{"a keys=zone labels=zone", "b keys=rack,zone labels=rack,zone", "c keys=zone labels=zone"},
			want: reasonTopologyKeysDiffer, text: "[rack, zone] on b, [zone] on a"},
	} {
		var nodes []registration
		for _, line := range c.nodes {
			nodes = append(nodes, registered(line))
		}
		got := checkNodes(nodes, !c.noTopology)
		if reasons(got) != c.want || c.text != "" && !strings.Contains(got[0].text, c.text) {
			t.Errorf("%s: %v, want %s: %s", c.name, got, c.want, c.text)
		}
	}
}

func TestFindingIsReportedOnceWhenItHasSettledAndAgainAfterAChange(t *testing.T) {
	a, b := finding{"A", "a"}, finding{"A", "b"}
	var ledger ledger
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		afterSeconds int
		found        []finding
		report       string
		againSeconds int
	}{
		{0, []finding{a}, "", 30},
		{10, []finding{a, b}, "", 20},
		{30, []finding{a, b}, "a", 10},
		{40, []finding{a, b}, "b", 0},
		{50, []finding{a, b}, "", 0},
		{60, []finding{b}, "", 0},
		{61, []finding{a, b}, "", 30},
		{62, []finding{b}, "", 0},
		{63, []finding{a}, "", 30},
		{93, []finding{a}, "a", 0},
	} {
		report, again := ledger.enter(step.found, start.Add(time.Duration(step.afterSeconds)*time.Second))
		got := ""
		for _, one := range report {
			got += one.text
		}
		if got != step.report || again != time.Duration(step.againSeconds)*time.Second {
			t.Errorf("after %d s: %q and again after %v, want %q and %d s", step.afterSeconds, got, again, step.report, step.againSeconds)
		}
	}
}

func TestAThousandNodesAreNotReportedOneByOne(t *testing.T) {
	var found []finding
	for i := range 1000 {
		found = append(found, finding{reasonNodeIDEmpty, fmt.Sprint(i)})
	}
	found = append(found, finding{reasonTopologyKeysDiffer, "x"})
	if got := shorten(found); len(got) != perReasonMax+2 || got[len(got)-1].text != "x" {
		t.Errorf("%v", got)
	}
}

// A driver may register other keys on each node. What is said of it has to fit
// into an event.
func TestTheKeysOfVeryManyNodesAreNotAllNamed(t *testing.T) {
	t.Parallel()
	var nodes []registration
	for i := range 1000 {
		name := fmt.Sprintf("node%04d", i)
		nodes = append(nodes, registration{node: name, driver: &storagev1.CSINodeDriver{NodeID: name, TopologyKeys: []string{"key." + name}}})
	}
	found := checkKeys(nodes)
	if len(found) != 1 || len(found[0].text) > 1000 || !strings.Contains(found[0].text, "[key.node0000] on node0000") || !strings.HasSuffix(found[0].text, "and 990 more") {
		t.Errorf("%+v", found)
	}
}
