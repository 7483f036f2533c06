package topology_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
	"github.com/csi-windows/csi-windows/sidecar/topology"
)

func segment(text string) topology.Segment {
	values := map[string]string{}
	for pair := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(pair, "=")
		values[key] = value
	}
	return topology.NewSegment(values)
}

func TestSegmentsContainSegmentsWithMoreKeys(t *testing.T) {
	for _, c := range []struct {
		a, b               string
		contains, overlaps bool
	}{
		{"", "", true, true},
		{"", "zone=a", true, true},
		{"zone=a", "", false, true},
		{"zone=a", "zone=a", true, true},
		{"zone=a", "zone=a rack=1", true, true},
		{"zone=a rack=1", "zone=a", false, true},
		{"zone=a", "zone=b", false, false},
		{"zone=a", "zone=b rack=1", false, false},
		{"zone=a", "rack=1", false, true},
	} {
		a, b := segment(c.a), segment(c.b)
		if got := a.Contains(b); got != c.contains {
			t.Errorf("[%s] contains [%s]: %v", a, b, got)
		}
		if got := a.Overlaps(b); got != c.overlaps {
			t.Errorf("[%s] overlaps [%s]: %v", a, b, got)
		}
	}
}

func TestSegmentsAreSortedPairByPairAndUnique(t *testing.T) {
	got := ""
	for _, one := range topology.Unique([]topology.Segment{
		segment("zone=b"), segment("zone=a rack=2"), segment("zone=a"), segment("zone=b"), segment("rack=10"), segment(""),
	}) {
		got += "[" + one.String() + "]"
	}
	if want := "[][rack=10][rack=2,zone=a][zone=a][zone=b]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// cluster makes nodes: "name labels | keys", without "|" for a node that the
// driver is not on, with "-" before the name for a CSINode whose node is gone.
func cluster(lines ...string) []runtime.Object {
	var objects []runtime.Object
	for _, line := range lines {
		labels, keys, hasDriver := strings.Cut(line, "|")
		words := strings.Fields(labels)
		name := strings.TrimPrefix(words[0], "-")
		node := sidecartest.Node(name)
		for key, value := range segment(strings.Join(words[1:], " ")).Map() {
			node.Labels[key] = value
		}
		if name == words[0] {
			objects = append(objects, node)
		}
		if hasDriver {
			objects = append(objects, sidecartest.CSINode(name, strings.Fields(keys)...))
		}
	}
	return objects
}

func watched(t *testing.T, objects ...runtime.Object) (*sidecartest.Bed, *topology.Nodes) {
	t.Helper()
	bed := sidecartest.New(t, csiclient.Info{}, objects...)
	nodes := topology.Watch(bed.Env)
	if err := bed.Env.Informers.Sync(bed.Ctx, nodes.Synced()...); err != nil {
		t.Fatal(err)
	}
	return bed, nodes
}

func TestNodeIsInTheSegmentOfItsLabels(t *testing.T) {
	other := sidecartest.CSINode("other", "zone")
	other.Spec.Drivers[0].Name = "other.example.com"
	_, nodes := watched(t, append(cluster("n1 zone=a rack=1 | zone", "n2 zone=a rack=1 | zone rack zone",
		"bare zone=a", "keyless zone=a |", "stale zone=a | zone rack", "-gone | zone", "other zone=a"), other)...)
	for name, want := range map[string]any{
		"n1": "zone=a", "n2": "rack=1,zone=a",
		"bare": topology.ErrNoDriver, "other": topology.ErrNoDriver, "gone": topology.ErrNoDriver, "never": topology.ErrNoDriver,
		"keyless": topology.ErrNoKeys, "stale": topology.ErrNoLabel,
	} {
		got, err := nodes.Of(name)
		if kind, isError := want.(error); isError {
			if !errors.Is(err, kind) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: error %v, want %v with the node's name", name, err, kind)
			}
		} else if err != nil || got.String() != want {
			t.Errorf("%s: [%s], %v; want [%s]", name, got, err, want)
		}
	}
	census, err := nodes.Count()
	if err != nil || census.WithDriver != 4 || census.WithKeys != 3 || len(census.Segments) != 2 ||
		census.Segments[0].String() != "rack=1,zone=a" || census.Segments[1].String() != "zone=a" {
		t.Errorf("census %+v, %v", census, err)
	}
}

func TestOwnNodeIsTheOnlyOneAndNothingIsWatched(t *testing.T) {
	nodes := topology.Own("n1", segment("zone=a"))
	if got, err := nodes.Of("n1"); err != nil || got.String() != "zone=a" {
		t.Errorf("n1: [%s], %v", got, err)
	}
	if _, err := nodes.Of("n2"); !errors.Is(err, topology.ErrNoDriver) {
		t.Errorf("n2: %v", err)
	}
	if _, err := topology.Own("n1", nil).Of("n1"); !errors.Is(err, topology.ErrNoKeys) {
		t.Errorf("no segment: %v", err)
	}
	census, err := nodes.Count()
	if err != nil || len(census.Segments) != 1 || len(nodes.Synced()) != 0 {
		t.Errorf("census %+v, %v; %d caches", census, err, len(nodes.Synced()))
	}
	if census, err := topology.Own("n1", nil).Count(); err != nil || len(census.Segments) != 0 {
		t.Errorf("no segment: census %+v, %v", census, err)
	}
}

func TestDriverIsAskedForItsOwnSegment(t *testing.T) {
	bed := sidecartest.New(t, csiclient.Info{})
	bed.Driver.Once("NodeGetInfo", sidecartest.Reply(&csi.NodeGetInfoResponse{NodeId: "x",
		AccessibleTopology: &csi.Topology{Segments: map[string]string{"zone": "a", "host": "n1"}}}))
	got, err := topology.AskDriver(bed.Ctx, bed.Env, 10e9)
	if err != nil || got.String() != "host=n1,zone=a" {
		t.Errorf("[%s], %v", got, err)
	}
	bed.Driver.Once("NodeGetInfo", sidecartest.Hang)
	if _, err := topology.AskDriver(bed.Ctx, bed.Env, 1); err == nil || !strings.Contains(err.Error(), "NodeGetInfo") {
		t.Errorf("a driver that hangs: %v", err)
	}
}

// TestOnlyWhatChangesSegmentsIsHeardOf writes to a node, and then does
// something that is heard of, so that nothing is left on its way.
func TestOnlyWhatChangesSegmentsIsHeardOf(t *testing.T) {
	bed, nodes := watched(t, cluster("n1 zone=a | zone")...)
	var heard atomic.Int32
	end, err := nodes.OnChange(func() { heard.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, n int32) {
		t.Helper()
		bed.Eventually(func() error {
			if got := heard.Load(); got != n {
				return errors.New(what + ": not heard of")
			}
			return nil
		})
	}
	expect("what is there", 2)
	kube := bed.Kube
	update := func(change func(labels map[string]string)) {
		t.Helper()
		node, err := kube.CoreV1().Nodes().Get(bed.Ctx, "n1", metav1.GetOptions{})
		if err == nil {
			node = node.DeepCopy()
			change(node.Labels)
			node.Spec.PodCIDR += "x"
			_, err = kube.CoreV1().Nodes().Update(bed.Ctx, node, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	register := func(change func(*storagev1.CSINodeSpec)) {
		t.Helper()
		csiNode, err := kube.StorageV1().CSINodes().Get(bed.Ctx, "n1", metav1.GetOptions{})
		if err == nil {
			csiNode = csiNode.DeepCopy()
			change(&csiNode.Spec)
			_, err = kube.StorageV1().CSINodes().Update(bed.Ctx, csiNode, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	update(func(map[string]string) {})
	update(func(labels map[string]string) { labels["zone"] = "b" })
	expect("the label, and only it", 3)
	register(func(spec *storagev1.CSINodeSpec) {
		spec.Drivers = append(spec.Drivers, storagev1.CSINodeDriver{Name: "other.example.com", NodeID: "o"})
	})
	register(func(spec *storagev1.CSINodeSpec) { spec.Drivers = spec.Drivers[1:] })
	expect("the registration, and only the driver's", 4)
	end()
	if err := kube.CoreV1().Nodes().Delete(context.Background(), "n1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	bed.Eventually(func() error {
		if _, err := nodes.Of("n1"); !strings.Contains(err.Error(), "not found") {
			return err
		}
		return nil
	})
	expect("the end", 4)
}
