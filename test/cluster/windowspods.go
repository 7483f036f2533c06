package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// attachedClaims are the claims, as NAMESPACE/NAME, whose volumes are attached to the
// node. A node may not list these objects, so the test looks.
func (n *WindowsNode) attachedClaims(ctx context.Context) (map[string]bool, error) {
	attachments, err := n.c.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	attached := map[string]bool{}
	for i := range attachments.Items {
		a := &attachments.Items[i]
		if name := a.Spec.Source.PersistentVolumeName; a.Spec.NodeName == n.Name && a.Status.Attached && name != nil {
			volume, err := n.c.Client.CoreV1().PersistentVolumes().Get(ctx, *name, metav1.GetOptions{ResourceVersion: "0"})
			if err != nil {
				return nil, err
			}
			if claim := volume.Spec.ClaimRef; claim != nil {
				attached[claim.Namespace+"/"+claim.Name] = true
			}
		}
	}
	return attached, nil
}

// canRun reports whether every claim of a pod is attached.
func canRun(pod *corev1.Pod, attached map[string]bool) bool {
	for _, volume := range pod.Spec.Volumes {
		switch {
		case volume.PersistentVolumeClaim != nil && !attached[pod.Namespace+"/"+volume.PersistentVolumeClaim.ClaimName],
			volume.Ephemeral != nil && !attached[pod.Namespace+"/"+pod.Name+"-"+volume.Name]:
			return false
		}
	}
	return true
}

// run says that a pod runs.
func (n *WindowsNode) run(ctx context.Context, pod *corev1.Pod) error {
	now := metav1.Now()
	var containers []corev1.ContainerStatus
	for _, container := range pod.Spec.Containers {
		started := true
		containers = append(containers, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	ready := func(kind corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now}
	}
	request := n.client.CoreV1().RESTClient().Patch(types.StrategicMergePatchType).Namespace(pod.Namespace).Resource("pods").Name(pod.Name)
	return n.patchStatus(ctx, request, map[string]any{
		"phase": corev1.PodRunning, "startTime": now, "containerStatuses": containers,
		"conditions": []corev1.PodCondition{ready(corev1.PodInitialized), ready(corev1.ContainersReady), ready(corev1.PodReady)},
	})
}

// end says that a pod has ended, for good.
func (n *WindowsNode) end(ctx context.Context, pod *corev1.Pod) error {
	none := int64(0)
	return n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &none, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
}
