package life

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// kinds of snapshots.
var (
	snapshotKind      = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}
	contentKind       = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshotcontents"}
	snapshotClassKind = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshotclasses"}
	groupKind         = schema.GroupVersionResource{Group: "groupsnapshot.storage.k8s.io", Version: "v1", Resource: "volumegroupsnapshots"}
	groupContentKind  = schema.GroupVersionResource{Group: "groupsnapshot.storage.k8s.io", Version: "v1", Resource: "volumegroupsnapshotcontents"}
	groupClassKind    = schema.GroupVersionResource{Group: "groupsnapshot.storage.k8s.io", Version: "v1", Resource: "volumegroupsnapshotclasses"}
)

// of are the objects of a kind, in the scene's namespace or in none.
func (s *scene) of(kind schema.GroupVersionResource) dynamic.ResourceInterface {
	if kind == snapshotKind || kind == groupKind {
		return s.c.Dynamic.Resource(kind).Namespace(s.name)
	}
	return s.c.Dynamic.Resource(kind)
}

// make makes an object of YAML.
func (s *scene) make(kind schema.GroupVersionResource, text string, values ...any) {
	s.t.Helper()
	var object unstructured.Unstructured
	s.must(yaml.Unmarshal(fmt.Appendf(nil, text, values...), &object.Object))
	_, err := s.of(kind).Create(s.t.Context(), &object, metav1.CreateOptions{})
	s.must(err)
}

// unmake deletes an object and waits until it is gone.
func (s *scene) unmake(kind schema.GroupVersionResource, name string) {
	s.t.Helper()
	s.must(s.of(kind).Delete(s.t.Context(), name, metav1.DeleteOptions{}))
	s.gone(kind.Resource+" "+name, func(ctx context.Context) error {
		_, err := s.of(kind).Get(ctx, name, metav1.GetOptions{})
		return err
	})
}

// snapshotClass makes a class of snapshots that goes with the scene.
func (s *scene) snapshotClass(kind schema.GroupVersionResource, kindName, policy string) {
	s.t.Helper()
	s.make(kind, `{apiVersion: %s/%s, kind: %s, metadata: {name: %s}, driver: %s, deletionPolicy: %s}`,
		kind.Group, kind.Version, kindName, s.name, s.target.name, policy)
	s.t.Cleanup(func() {
		s.must(s.of(kind).Delete(context.WithoutCancel(s.t.Context()), s.name, metav1.DeleteOptions{}))
	})
}

// snapshot makes a snapshot of a claim.
func (s *scene) snapshot(name, claim string) {
	s.t.Helper()
	s.make(snapshotKind, `{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: %s},
 spec: {volumeSnapshotClassName: %s, source: {persistentVolumeClaimName: %s}}}`, name, s.name, claim)
}

// ready waits until a snapshot, or a group of them, can be used.
func (s *scene) ready(kind schema.GroupVersionResource, name string) {
	s.t.Helper()
	s.wait(kind.Resource+" "+name+" is ready", func(ctx context.Context) error {
		object, err := s.of(kind).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if ready, _, err := unstructured.NestedBool(object.Object, "status", "readyToUse"); err != nil || !ready {
			return fmt.Errorf("%v; events: %s", object.Object["status"], s.events(ctx, name))
		}
		return nil
	})
}

// contents are the driver's snapshots in the cluster, with what may hold them there.
func (s *scene) contents(ctx context.Context) (found []string) {
	for _, kind := range []schema.GroupVersionResource{contentKind, groupContentKind} {
		list, err := s.of(kind).List(ctx, metav1.ListOptions{})
		if err != nil {
			return []string{err.Error()}
		}
		for i := range list.Items {
			content := &list.Items[i]
			if driver, _, _ := unstructured.NestedString(content.Object, "spec", "driver"); driver == s.target.name {
				found = append(found, fmt.Sprintf("%s %s, deleted %v, finalizers %q, annotations %q, status %v", strings.TrimSuffix(kind.Resource, "s"),
					content.GetName(), content.GetDeletionTimestamp(), content.GetFinalizers(), content.GetAnnotations(), content.Object["status"]))
			}
		}
	}
	return found
}
