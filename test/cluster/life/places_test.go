package life

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// strangeNode is a node where no driver is registered.
const strangeNode = "win3"

// selectedNode is the annotation of a claim with the scheduler's choice.
const selectedNode = "volume.kubernetes.io/selected-node"

// Volumes are made where their pods are scheduled.
func lateBinding(s *scene) {
	mark := s.driver.mark()
	s.makeClass(late)
	for i, node := range nodes {
		s.claim(node, "64Mi")
		s.pod("pod-"+node, node, node)
		s.runs("pod-" + node)
		volume := s.bound(node)
		if zone := s.zoneOf(volume); zone != zones[i] {
			s.t.Errorf("the volume of %s is in %s", node, zone)
		}
		s.isStored(volume.Spec.CSI.VolumeHandle, node)
	}
	for _, node := range nodes {
		s.noPod("pod-" + node)
		s.noClaim(node)
	}
	s.empty()
	s.called(mark, "CreateVolume", 2)
	s.called(mark, "DeleteVolume", 2)
}

// A class says where its volumes may be, with late and with immediate binding.
func allowedTopologies(s *scene) {
	s.makeClass(late, func(class *storagev1.StorageClass) {
		class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: s.zoneKey, Values: zones[1:]}}}}
	})
	s.claim("claim", "64Mi")
	s.pod("pod", "", "claim")
	if node := s.runs("pod"); node != nodes[1] {
		s.t.Errorf("the pod runs on %s", node)
	}
	if zone := s.zoneOf(s.bound("claim")); zone != zones[1] {
		s.t.Errorf("the volume is in %s", zone)
	}
	s.noPod("pod")
	s.noClaim("claim")
}

// A node without the driver that was selected is given back to the scheduler, and the
// claim says why; nothing is made for it.
func nodeWithoutDriver(s *scene) {
	mark := s.driver.mark()
	// Where capacity is looked at, the scheduler does not choose such a node at all.
	s.useCapacity(false)
	defer s.useCapacity(true)
	s.makeClass(late)
	s.claim("claim", "64Mi")
	s.pod("pod", strangeNode, "claim")
	s.event("claim", "ProvisioningFailed", strangeNode)
	s.wait("the mark of the node goes", func(ctx context.Context) error {
		claim, err := s.getClaim(ctx, "claim")
		if err == nil && claim.Annotations[selectedNode] != "" {
			err = errors.New("it is there")
		}
		return err
	})
	s.noPod("pod")
	s.called(mark, "CreateVolume", 0)
	s.pod("pod", nodes[0], "claim")
	s.runs("pod")
	s.noPod("pod")
	s.noClaim("claim")
}

// useCapacity has the scheduler look at the driver's capacity, or not.
func (s *scene) useCapacity(yes bool) {
	s.t.Helper()
	drivers := s.c.Client.StorageV1().CSIDrivers()
	s.wait("the driver's object is changed", func(ctx context.Context) error {
		object, err := drivers.Get(ctx, s.target.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		object.Spec.StorageCapacity = &yes
		_, err = drivers.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
}

// capacities are the published ones of the scene's class, by zone.
func (s *scene) capacities(ctx context.Context) (map[string]int64, error) {
	list, err := s.c.Client.StorageV1().CSIStorageCapacities(cluster.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	for i := range list.Items {
		one := &list.Items[i]
		if one.StorageClassName == s.name && one.Capacity != nil {
			all[one.NodeTopology.MatchLabels[s.zoneKey]] = one.Capacity.Value()
		}
	}
	return all, nil
}

// The free capacity of each zone is published, the scheduler respects it, it becomes
// less with a volume and more again without, and goes with its class.
func capacity(s *scene) {
	before := s.capacityOfClass()
	s.claim("large", fmt.Sprint(before[zones[0]]+before[zones[1]]))
	s.pod("large", "", "large")
	s.wait("the scheduler refuses", func(ctx context.Context) error {
		pod, err := s.c.Client.CoreV1().Pods(s.name).Get(ctx, "large", metav1.GetOptions{})
		if err == nil && !strings.Contains(fmt.Sprint(pod.Status.Conditions), "did not have enough free storage") {
			err = fmt.Errorf("%v", pod.Status.Conditions)
		}
		return err
	})
	if claim, err := s.getClaim(s.t.Context(), "large"); err != nil || claim.Annotations[selectedNode] != "" {
		s.t.Errorf("a node was chosen for %+v, %v", claim, err)
	}
	s.noPod("large")
	s.noClaim("large")

	s.claim("claim", "64Mi")
	s.pod("pod", nodes[0], "claim")
	s.runs("pod")
	bytes := s.bound("claim").Spec.Capacity[corev1.ResourceStorage]
	s.hasCapacity(zones[0], before[zones[0]]-bytes.Value())
	s.hasCapacity(zones[1], before[zones[1]])
	s.noPod("pod")
	s.noClaim("claim")
	s.hasCapacity(zones[0], before[zones[0]])
}

// capacityOfClass makes the class and waits for the capacity of both zones.
func (s *scene) capacityOfClass() (all map[string]int64) {
	s.t.Helper()
	s.t.Cleanup(func() { // after the class has gone
		for _, zone := range zones {
			s.goneCapacity(zone)
		}
	})
	s.makeClass(late)
	s.wait("capacity is published", func(ctx context.Context) (err error) {
		if all, err = s.capacities(ctx); err == nil && (all[zones[0]] == 0 || all[zones[1]] == 0) {
			err = fmt.Errorf("it is %v", all)
		}
		return err
	})
	return all
}

func (s *scene) hasCapacity(zone string, bytes int64) {
	s.t.Helper()
	s.wait("capacity of "+zone, func(ctx context.Context) error {
		all, err := s.capacities(ctx)
		if err == nil && all[zone] != bytes {
			err = fmt.Errorf("it is %d, not %d", all[zone], bytes)
		}
		return err
	})
}

// goneCapacity waits until nothing is published of a zone.
func (s *scene) goneCapacity(zone string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), waitTime)
	defer cancel()
	for {
		all, err := s.capacities(ctx)
		if _, there := all[zone]; err == nil && !there {
			return
		}
		select {
		case <-ctx.Done():
			s.t.Errorf("capacity without a class: %v, %v", all, err)
			return
		case <-time.After(pollTime):
		}
	}
}
