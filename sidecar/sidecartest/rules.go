package sidecartest

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"
)

// serverRules is a store of objects that adds what a real API server does and
// the one in memory does not. An object gets an identity when it is made and a
// version with each change; a write that changes nothing is none; a write made
// for another version or another identity is refused; a status is written
// apart from the rest; an object with finalizers is only marked when it is
// deleted, and goes with its last finalizer.
//
// The client in memory handles one request at a time, so no lock is needed.
//
// Source: Kubernetes API concepts, "Resource versions", "Finalizers" and
// "Object names and IDs"; API conventions, "Spec and Status".
type serverRules struct {
	clienttesting.ObjectTracker
	made, version int
	// subresource and patch are those of the request under way.
	subresource string
	patch       *metav1.Preconditions
	// gone is the last state of an object that went with the request.
	gone runtime.Object
}

// withServerRules has the rules stand before a client's own store.
func withServerRules(server *clienttesting.Fake, tracker clienttesting.ObjectTracker) {
	rules := &serverRules{ObjectTracker: tracker, version: 1000}
	store := clienttesting.ObjectReaction(rules)
	var open watches
	open.answer(server, tracker)
	for _, verb := range []string{"create", "update", "patch", "delete"} {
		server.PrependReactor(verb, "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			open.wait()
			rules.subresource, rules.patch, rules.gone = action.GetSubresource(), nil, nil
			if patch, ok := action.(clienttesting.PatchAction); ok {
				rules.patch = preconditionsOf(patch)
			}
			return store(action)
		})
	}
}

// preconditionsOf are the identity and the version a patch names.
func preconditionsOf(patch clienttesting.PatchAction) *metav1.Preconditions {
	var body struct {
		Metadata struct {
			UID             *types.UID
			ResourceVersion *string
		}
	}
	// A patch of another form, a list of operations, names neither.
	_ = json.Unmarshal(patch.GetPatch(), &body)
	return &metav1.Preconditions{UID: body.Metadata.UID, ResourceVersion: body.Metadata.ResourceVersion}
}

// Get implements clienttesting.ObjectTracker.
func (r *serverRules) Get(gvr schema.GroupVersionResource, ns, name string, opts ...metav1.GetOptions) (runtime.Object, error) {
	if r.gone != nil {
		return r.gone, nil
	}
	return r.ObjectTracker.Get(gvr, ns, name, opts...)
}

// Create implements clienttesting.ObjectTracker.
func (r *serverRules) Create(gvr schema.GroupVersionResource, object runtime.Object, ns string, opts ...metav1.CreateOptions) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	r.made++
	if accessor.GetName() == "" {
		accessor.SetName(accessor.GetGenerateName() + strconv.Itoa(r.made))
	}
	if accessor.GetUID() == "" {
		accessor.SetUID(types.UID("made-" + strconv.Itoa(r.made)))
	}
	if created := accessor.GetCreationTimestamp(); created.IsZero() {
		accessor.SetCreationTimestamp(metav1.Now())
	}
	r.stamp(accessor)
	return r.ObjectTracker.Create(gvr, object, ns, opts...)
}

// Update implements clienttesting.ObjectTracker.
func (r *serverRules) Update(gvr schema.GroupVersionResource, object runtime.Object, ns string, _ ...metav1.UpdateOptions) error {
	old, err := r.stored(gvr, object, ns)
	if err != nil {
		return err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	var wanted metav1.Preconditions
	if uid := accessor.GetUID(); uid != "" {
		wanted.UID = &uid
	}
	switch version := accessor.GetResourceVersion(); {
	case version != "":
		wanted.ResourceVersion = &version
	case gvr.Group != "":
		// Kinds of the core group may be written whatever their version is.
		return apierrors.NewInvalid(schema.GroupKind{Group: gvr.Group, Kind: gvr.Resource}, accessor.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), "", "must be specified for an update"),
		})
	}
	if err := conflict(gvr, old, &wanted); err != nil {
		return err
	}
	return r.write(gvr, old, object, ns)
}

// Patch implements clienttesting.ObjectTracker.
func (r *serverRules) Patch(gvr schema.GroupVersionResource, object runtime.Object, ns string, _ ...metav1.PatchOptions) error {
	old, err := r.stored(gvr, object, ns)
	if err != nil {
		return err
	}
	if r.patch != nil {
		if err := conflict(gvr, old, &metav1.Preconditions{ResourceVersion: r.patch.ResourceVersion}); err != nil {
			return err
		}
		if uid := r.patch.UID; uid != nil && *uid != mustAccess(old).GetUID() {
			return apierrors.NewInvalid(schema.GroupKind{Group: gvr.Group, Kind: gvr.Resource}, nameOf(old), field.ErrorList{
				field.Invalid(field.NewPath("metadata", "uid"), *uid, "field is immutable"),
			})
		}
	}
	return r.write(gvr, old, object, ns)
}

// Delete implements clienttesting.ObjectTracker.
func (r *serverRules) Delete(gvr schema.GroupVersionResource, ns, name string, opts ...metav1.DeleteOptions) error {
	object, err := r.ObjectTracker.Get(gvr, ns, name)
	if err != nil {
		return err
	}
	if len(opts) > 0 {
		if err := conflict(gvr, object, opts[0].Preconditions); err != nil {
			return err
		}
	}
	accessor := mustAccess(object)
	switch {
	case len(accessor.GetFinalizers()) == 0:
		return r.ObjectTracker.Delete(gvr, ns, name)
	case accessor.GetDeletionTimestamp() != nil:
		return nil
	}
	now := metav1.Now()
	accessor.SetDeletionTimestamp(&now)
	r.stamp(accessor)
	return r.ObjectTracker.Update(gvr, object, ns)
}

func (r *serverRules) stored(gvr schema.GroupVersionResource, object runtime.Object, ns string) (runtime.Object, error) {
	return r.ObjectTracker.Get(gvr, ns, nameOf(object))
}

// write puts what the request may change of an object into the store.
func (r *serverRules) write(gvr schema.GroupVersionResource, old, object runtime.Object, ns string) error {
	if err := keepOther(gvr, r.subresource, old, object); err != nil {
		return err
	}
	accessor, before := mustAccess(object), mustAccess(old)
	accessor.SetUID(before.GetUID())
	accessor.SetCreationTimestamp(before.GetCreationTimestamp())
	accessor.SetDeletionTimestamp(before.GetDeletionTimestamp())
	accessor.SetResourceVersion(before.GetResourceVersion())
	if equality.Semantic.DeepEqual(old, object) {
		return nil
	}
	r.stamp(accessor)
	if accessor.GetDeletionTimestamp() != nil && len(accessor.GetFinalizers()) == 0 {
		r.gone = object
		return r.ObjectTracker.Delete(gvr, ns, accessor.GetName())
	}
	return r.ObjectTracker.Update(gvr, object, ns)
}

func (r *serverRules) stamp(accessor metav1.Object) {
	r.version++
	accessor.SetResourceVersion(strconv.Itoa(r.version))
}

// conflict is the refusal of a write that was made for another object.
func conflict(gvr schema.GroupVersionResource, object runtime.Object, wanted *metav1.Preconditions) error {
	if wanted == nil {
		return nil
	}
	accessor := mustAccess(object)
	if wanted.UID != nil && *wanted.UID != accessor.GetUID() {
		return apierrors.NewConflict(gvr.GroupResource(), accessor.GetName(),
			fmt.Errorf("uid in precondition: %s, uid of the object: %s", *wanted.UID, accessor.GetUID()))
	}
	if wanted.ResourceVersion != nil && *wanted.ResourceVersion != accessor.GetResourceVersion() {
		return apierrors.NewConflict(gvr.GroupResource(), accessor.GetName(),
			fmt.Errorf("version in precondition: %s, version of the object: %s", *wanted.ResourceVersion, accessor.GetResourceVersion()))
	}
	return nil
}

// mustAccess gives the metadata of an object that is in the store.
func mustAccess(object runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return &metav1.ObjectMeta{}
	}
	return accessor
}

func nameOf(object runtime.Object) string {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	return accessor.GetName()
}
