package capacity_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/sidecar/capacity"
)

// TestOwnerThatIsNotFoundIsLookedForAgain: the component shares a process with the one
// that makes volumes, which must go on.
func TestOwnerThatIsNotFoundIsLookedForAgain(t *testing.T) {
	pod := func(owners []metav1.OwnerReference) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: namespace, UID: "p", OwnerReferences: owners}}
	}
	for name, c := range map[string]struct {
		pod   *v1.Pod // nil: none
		level int
		want  string // in the log
	}{
		"no such pod":             {nil, 1, "get pod csi/p"},
		"chain too short":         {pod(nil), 1, "Pod p has no owner"},
		"replica set is gone":     {pod(controlledBy("ReplicaSet", "none")), 2, "get ReplicaSet csi/none"},
		"unknown kind in between": {pod(controlledBy("CloneSet", "c")), 2, "CloneSet c cannot be looked up"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, driver(), class("ssd"), &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "rs", Namespace: namespace, UID: "uid-rs",
				OwnerReferences: controlledBy("Deployment", "d")}})
			s.has("ssd", 100, -1)
			pods := v1.SchemeGroupVersion.WithResource("pods")
			if c.pod != nil {
				if err := s.Kube.Tracker().Add(c.pod); err != nil {
					t.Fatal(err)
				}
			}
			s.start(capacity.Config{PodName: "p", OwnerLevel: c.level})
			s.Eventually(func() error {
				if !strings.Contains(s.Log(), c.want) {
					return fmt.Errorf("the log does not say %q", c.want)
				}
				return nil
			})
			if c.pod != nil {
				if err := s.Kube.Tracker().Delete(pods, namespace, "p"); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Kube.Tracker().Add(pod(controlledBy("ReplicaSet", "rs"))); err != nil {
				t.Fatal(err)
			}
			s.Eventually(func() error {
				s.clock.Step(interval)
				if got := s.Writes(); len(got) == 0 {
					return errors.New("nothing is published")
				}
				return nil
			})
		})
	}
}
