package capacity

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// findOwner walks up from a pod to the owner of the objects. Upstream's role
// permits to read pods and replica sets, which is enough for two levels; the
// owner itself is not read.
func findOwner(ctx context.Context, kube kubernetes.Interface, namespace, pod string, level int) (*metav1.OwnerReference, error) {
	if level == NoOwner {
		return nil, nil // no owner is wanted
	}
	object, err := kube.CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("owner of capacity objects: get pod %s/%s: %w", namespace, pod, err)
	}
	owner := &metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: object.Name, UID: object.UID}
	above := metav1.GetControllerOf(object)
	for up := 1; up <= level; up++ {
		if above == nil {
			return nil, fmt.Errorf("owner of capacity objects: level %d of pod %s/%s: %s %s has no owner",
				level, namespace, pod, owner.Kind, owner.Name)
		}
		owner = &metav1.OwnerReference{APIVersion: above.APIVersion, Kind: above.Kind, Name: above.Name, UID: above.UID}
		if up == level {
			break
		}
		if above, err = controllerOf(ctx, kube, namespace, owner); err != nil {
			return nil, err
		}
	}
	return owner, nil
}

// controllerOf is the owner of an owner, nil if it has none.
func controllerOf(ctx context.Context, kube kubernetes.Interface, namespace string, owner *metav1.OwnerReference) (*metav1.OwnerReference, error) {
	var object metav1.Object
	var err error
	switch apps, get := kube.AppsV1(), (metav1.GetOptions{}); owner.Kind {
	case "ReplicaSet":
		object, err = apps.ReplicaSets(namespace).Get(ctx, owner.Name, get)
	case "Deployment":
		object, err = apps.Deployments(namespace).Get(ctx, owner.Name, get)
	case "StatefulSet":
		object, err = apps.StatefulSets(namespace).Get(ctx, owner.Name, get)
	case "DaemonSet":
		object, err = apps.DaemonSets(namespace).Get(ctx, owner.Name, get)
	default:
		return nil, fmt.Errorf("owner of capacity objects: what owns %s %s cannot be looked up; lower the level", owner.Kind, owner.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("owner of capacity objects: get %s %s/%s: %w", owner.Kind, namespace, owner.Name, err)
	}
	if object.GetUID() != owner.UID {
		return nil, fmt.Errorf("owner of capacity objects: %s %s/%s was replaced by another", owner.Kind, namespace, owner.Name)
	}
	return metav1.GetControllerOf(object), nil
}
