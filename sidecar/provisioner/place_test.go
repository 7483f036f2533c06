package provisioner

import (
	"context"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

const zone = "topology.example.com/zone"

func inZone(name string) func(*v1.Node) {
	return func(n *v1.Node) { n.Labels[zone] = name }
}

// nodes are two nodes in two zones, the second without the driver.
func nodes() []runtime.Object {
	late := sidecartest.StorageClass(sidecartest.ClassName, func(c *storagev1.StorageClass) {
		c.VolumeBindingMode = ptr(storagev1.VolumeBindingWaitForFirstConsumer)
	})
	return []runtime.Object{sidecartest.Node("n1", inZone("a")), sidecartest.CSINode("n1", zone), sidecartest.Node("n2", inZone("b")), late}
}

func TestVolumeIsMadeWhereItsPodWillRun(t *testing.T) {
	t.Parallel()
	b := newBed(t, topological(able()), append(nodes(), claim("data", selected("n1")))...)
	b.start()
	b.writes("create persistentvolumes " + pvName)
	terms := b.pv(pvName).Spec.NodeAffinity.Required.NodeSelectorTerms
	if len(terms) != 1 || terms[0].MatchExpressions[0].Key != zone || terms[0].MatchExpressions[0].Values[0] != "a" {
		t.Errorf("node affinity %v", terms)
	}
}

// TestC081_SelectedNodeIsGivenUp only where another one can help, and for sure
// nothing is being made.
func TestC081_SelectedNodeIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		node   string
		answer sidecartest.Answer // nil: the usual
		topo   bool
		given  bool // the node is given up
		event  string
	}{
		"no space there":            {"n1", sidecartest.Fail(codes.ResourceExhausted, "full"), true, true, "Warning ProvisioningFailed rpc error: code = ResourceExhausted"},
		"no space, no topology":     {"n1", sidecartest.Fail(codes.ResourceExhausted, "full"), false, false, "Warning ProvisioningFailed rpc error"},
		"time-out":                  {"n1", sidecartest.Fail(codes.DeadlineExceeded, "slow"), true, false, "Warning ProvisioningFailed rpc error"},
		"final error, not of space": {"n1", sidecartest.Fail(codes.Internal, "broken"), true, false, "Warning ProvisioningFailed rpc error"},
		"node without the driver":   {"n2", nil, true, true, "Warning ProvisioningFailed topology of the volume: the selected node cannot use"},
		"node gone":                 {"n3", nil, true, true, "Warning ProvisioningFailed topology of the volume: the selected node cannot use"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info := able()
			if test.topo {
				info = topological(info)
			}
			b := newBed(t, info, append(nodes(), claim("data", selected(test.node)))...)
			if test.answer != nil {
				b.Driver.On("CreateVolume", test.answer)
			}
			stop := b.start()
			b.wait("told", func() bool { return b.saw(test.event) })
			if test.given {
				b.writes("update persistentvolumeclaims default/data")
			} else {
				b.wait("tried again", func() bool { return len(b.Driver.Calls("CreateVolume")) > 2 })
			}
			stop()
			c, err := b.Kube.CoreV1().PersistentVolumeClaims(sidecartest.Namespace).Get(b.Ctx, "data", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if kept := c.Annotations[annSelectedNode] == test.node; kept == test.given {
				t.Errorf("selected node is kept: %v", kept)
			}
			if test.given && len(b.Driver.Calls()) > 1 {
				t.Errorf("CSI calls %q after the node was given up", b.Driver.CallNames())
			}
		})
	}
}

// TestNodeGoesWhileTheVolumeIsMadeForIt: only the same call again can tell what
// came of the first.
func TestNodeGoesWhileTheVolumeIsMadeForIt(t *testing.T) {
	t.Parallel()
	b := newBed(t, topological(able()), append(nodes(), claim("data", selected("n1")))...)
	answer := b.createAndFail(codes.DeadlineExceeded)
	b.Driver.Once("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
		if err := b.Kube.Tracker().Delete(storagev1.SchemeGroupVersion.WithResource("csinodes"), "", "n1"); err != nil {
			t.Error(err)
		}
		return answer(ctx, request)
	}, answer)
	b.start()
	b.writes("create persistentvolumes " + pvName)
}

// own is a provisioner that serves the node n1 only.
func own(b *bed) {
	b.config.NodeDeployment = &NodeDeployment{NodeName: "n1", BaseDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond}
	b.Driver.On("NodeGetInfo", sidecartest.Reply(&csi.NodeGetInfoResponse{NodeId: "id-n1",
		AccessibleTopology: &csi.Topology{Segments: map[string]string{zone: "a"}}}))
	b.Driver.On("GetCapacity", sidecartest.Reply(&csi.GetCapacityResponse{AvailableCapacity: sidecartest.GiB}))
}

func TestProvisionerOfOneNode(t *testing.T) {
	t.Parallel()
	at := func(zoneName string) func(*v1.PersistentVolume) {
		return func(pv *v1.PersistentVolume) {
			pv.Spec.NodeAffinity = volumeNodeAffinity([]*csi.Topology{{Segments: map[string]string{zone: zoneName}}})
		}
	}
	immediate := func(c *v1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr("now") }
	big := func(c *v1.PersistentVolumeClaim) { immediate(c); size(2 * sidecartest.GiB)(c) }
	save := "create persistentvolumes " + pvName
	elsewhere := func(c *v1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr("elsewhere") }
	leaving := func(c *v1.PersistentVolumeClaim) {
		immediate(c)
		sidecartest.Deleting(c)
		c.Finalizers = []string{"kubernetes.io/pvc-protection"}
	}
	for name, test := range map[string]struct {
		object runtime.Object
		writes []string
		asks   bool
	}{
		"claim for other zones":   {claim("data", elsewhere), nil, false},
		"claim being deleted":     {claim("data", leaving), nil, false},
		"claim for the node":      {claim("data", selected("n1")), []string{save}, false},
		"claim for another":       {claim("data", selected("n2")), nil, false},
		"claim for any":           {claim("data", immediate), []string{"update persistentvolumeclaims default/data", save}, true},
		"claim without room here": {claim("data", big), nil, true},
		"volume on the node":      {released("old", at("a")), []string{"patch persistentvolumes old", "delete persistentvolumes old"}, false},
		"volume on another":       {released("old", at("b")), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := sidecartest.StorageClass("now")
			other := sidecartest.StorageClass("elsewhere", func(c *storagev1.StorageClass) {
				c.AllowedTopologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: zone, Values: []string{"b"}}}}}
			})
			b := newBed(t, topological(able(csi.ControllerServiceCapability_RPC_GET_CAPACITY)), append(nodes(), test.object, now, other)...)
			own(b)
			b.start()
			b.writes(test.writes...)
			if test.asks {
				b.wait("asked for room", func() bool { return len(b.Driver.Calls("GetCapacity")) > 0 })
			}
			b.others(test.writes...)
		})
	}
}

// TestNodeWhoseDriverCannotTellItsRoom does not take a claim that other nodes may
// have room for.
func TestNodeWhoseDriverCannotTellItsRoom(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code  codes.Code
		taken bool
	}{
		"for the moment":           {codes.Unavailable, false},
		"broken":                   {codes.Internal, false},
		"for what the claim wants": {codes.InvalidArgument, true}, // no node can: the user is to be told
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := claim("data", func(c *v1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr("now") })
			b := newBed(t, topological(able(csi.ControllerServiceCapability_RPC_GET_CAPACITY)), append(nodes(), c, sidecartest.StorageClass("now"))...)
			own(b)
			b.Driver.On("GetCapacity", sidecartest.Fail(test.code, "no"))
			b.start()
			b.wait("asked for room", func() bool { return len(b.Driver.Calls("GetCapacity")) > 1 || test.taken })
			if test.taken {
				b.writes("update persistentvolumeclaims default/data", "create persistentvolumes "+pvName)
				return
			}
			b.others()
		})
	}
}
