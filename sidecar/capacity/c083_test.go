package capacity_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/csi-windows/csi-windows/sidecar/capacity"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// onNode is a driver of node-local volumes.
func onNode(s *scene, name string) {
	s.Driver.On("NodeGetInfo", sidecartest.Reply(&csi.NodeGetInfoResponse{NodeId: name,
		AccessibleTopology: &csi.Topology{Segments: map[string]string{"host": name}}}))
}

func TestC083_NodeDeploymentOwnerIsThePodWhateverTheLevel(t *testing.T) {
	for _, level := range []int{0, 1} {
		t.Run(fmt.Sprint("level ", level), func(t *testing.T) {
			s := newScene(t, zonal(), all(node("n2", "b"), list(class("ssd"), daemonPod("p1", "ds")))...)
			onNode(s, "n1")
			s.has("ssd", 100, -1)
			s.start(capacity.Config{PodName: "p1", OwnerLevel: level, NodeName: "n1"})
			s.want("ssd [host=n1] 100 owner=Pod/p1")
			for _, action := range s.Kube.Actions() {
				if resource := action.GetResource().Resource; resource == "nodes" || resource == "csinodes" || resource == "daemonsets" {
					t.Errorf("%s %s: no other node is of interest", action.GetVerb(), resource)
				}
			}
		})
	}
}

func TestC083_NodeDeletedItsObjectsGo(t *testing.T) {
	s := newScene(t, zonal(), all(node("n1", "a"), node("n2", "b"), node("n3", "b"), list(class("ssd"), class("hdd")))...)
	s.has("ssd", 100, -1)
	s.has("hdd", 7, -1)
	s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
	s.want("ssd [zone=a] 100", "ssd [zone=b] 100", "hdd [zone=a] 7", "hdd [zone=b] 7")
	s.wrote(map[string]int{"create": 4})
	if err := s.Kube.CoreV1().Nodes().Delete(s.Ctx, "n2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Kube.CoreV1().Nodes().Delete(s.Ctx, "n1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.want("ssd [zone=b] 100", "hdd [zone=b] 7")
	s.wrote(map[string]int{"delete": 2})
}

func TestC083_SegmentOfANewNodeIsPublishedAndAMovedOnesIsRemoved(t *testing.T) {
	s := newScene(t, zonal(), all(node("n1", "a"), list(class("ssd")))...)
	s.has("ssd", 100, -1)
	s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
	s.want("ssd [zone=a] 100")
	moved := sidecartest.Node("n1")
	moved.Labels["zone"] = "c"
	if _, err := s.Kube.CoreV1().Nodes().Update(s.Ctx, moved, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.want("ssd [zone=c] 100")
	s.wrote(map[string]int{"create": 2, "delete": 1})
}

func TestC083_OwnerChangesAtUpgradeObjectsArePatchedNotDoubled(t *testing.T) {
	s := newScene(t, zonal(), all(deployment("p2", "rs2", "d"), node("n1", "a"), node("n2", "b"), list(class("ssd"),
		published("csisc-1", "ssd", "zone=a", 100, ownedBy("ReplicaSet", "rs1")),
		published("csisc-2", "ssd", "zone=b", 100)))...)
	s.has("ssd", 100, -1)
	s.start(capacity.Config{PodName: "p2", OwnerLevel: 2})
	s.want("ssd [zone=a] 100 owner=Deployment/d", "ssd [zone=b] 100 owner=Deployment/d")
	s.polled("ssd zone=a", "ssd zone=b")
	s.wrote(map[string]int{"patch": 2})
}

func TestC083_OwnerStaysWhereNoneIsWanted(t *testing.T) {
	s := newScene(t, driver(), class("ssd"), published("csisc-1", "ssd", "", 100, ownedBy("ReplicaSet", "rs1")))
	s.has("ssd", 100, -1)
	s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
	s.polled("ssd ")
	s.want("ssd [] 100 owner=ReplicaSet/rs1")
	s.wrote(map[string]int{})
}

func TestC083_NothingChangedNothingIsWritten(t *testing.T) {
	s := newScene(t, zonal(), all(deployment("p", "rs", "d"), node("n1", "a"), list(class("ssd"),
		published("csisc-1", "ssd", "zone=a", 100, ownedBy("Deployment", "d"))))...)
	s.has("ssd", 100, -1)
	s.start(capacity.Config{PodName: "p", OwnerLevel: 2})
	for range 3 {
		s.polled("ssd zone=a")
	}
	s.Watched("csistoragecapacities", "storageclasses", "nodes", "csinodes")
	s.wrote(map[string]int{})
	s.polled("ssd zone=a")
	if actions := s.Kube.Actions(); len(actions) != 0 {
		t.Errorf("requests while idle: %v", actions)
	}
}

func TestC083_StorageClassDeletedItsObjectsGo(t *testing.T) {
	s := newScene(t, zonal(), all(node("n1", "a"), node("n2", "b"), list(class("ssd"), class("hdd")))...)
	s.has("ssd", 100, -1)
	s.has("hdd", 7, -1)
	s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
	s.want("ssd [zone=a] 100", "ssd [zone=b] 100", "hdd [zone=a] 7", "hdd [zone=b] 7")
	s.wrote(map[string]int{"create": 4})
	if err := s.Kube.StorageV1().StorageClasses().Delete(s.Ctx, "ssd", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.want("hdd [zone=a] 7", "hdd [zone=b] 7")
	s.wrote(map[string]int{"delete": 2})
}

// TestC083_TwoPodsOfANodeDoNotPullAnObjectToAndFro is an upgrade in which the
// old pod runs until the new one does.
func TestC083_TwoPodsOfANodeDoNotPullAnObjectToAndFro(t *testing.T) {
	s := newScene(t, zonal(), class("ssd"), daemonPod("old", "ds"), daemonPod("new", "ds"))
	onNode(s, "n1")
	s.has("ssd", 100, -1)
	s.start(capacity.Config{PodName: "old", NodeName: "n1"})
	s.want("ssd [host=n1] 100 owner=Pod/old")
	s.wrote(map[string]int{"create": 1})
	s.start(capacity.Config{PodName: "new", NodeName: "n1"})
	s.want("ssd [host=n1] 100 owner=Pod/new")
	s.polled("ssd host=n1")
	s.polled("ssd host=n1")
	s.polled("ssd host=n1")
	s.want("ssd [host=n1] 100 owner=Pod/new")
	s.wrote(map[string]int{"patch": 1})
	for room := range int64(3) {
		s.has("ssd", room, -1)
		s.polled("ssd host=n1")
		s.polled("ssd host=n1")
		s.want(fmt.Sprintf("ssd [host=n1] %d owner=Pod/new", room))
	}
	for _, action := range s.Kube.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok && strings.Contains(string(patch.GetPatch()), "ownerReferences") {
			t.Errorf("the owner is written again: %s", patch.GetPatch())
		}
	}
}

func TestC083_RunAgainAfterALostLeaseAdoptsWhatIsThere(t *testing.T) {
	s := newScene(t, driver(), class("ssd"))
	s.has("ssd", 100, -1)
	s.start(capacity.Config{OwnerLevel: capacity.NoOwner})
	s.want("ssd [] 100")
	s.cached()
	s.wrote(map[string]int{"create": 1})
	s.stop()
	s.stop = s.Run(s.component)
	s.polled("ssd ")
	s.wrote(map[string]int{})
}
