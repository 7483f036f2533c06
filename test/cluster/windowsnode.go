package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Times of a node that only looks like one.
const (
	leaseTime   = 40 * time.Second
	renewalTime = 10 * time.Second
	podsTime    = 100 * time.Millisecond // between two looks at its pods
)

// NodeOptions say what a node is like.
type NodeOptions struct {
	// Labels are those beside the ones every Windows node has.
	Labels map[string]string
	// Drivers are the CSI drivers that seem to be registered.
	Drivers []storagev1.CSINodeDriver
	// Migrated are the plugins in Kubernetes' own tree whose volumes are drivers' here.
	Migrated []string
}

// WindowsNode is a Windows node as far as the API server can tell: nothing runs
// there, and its pods only seem to.
type WindowsNode struct {
	// Name is the name of its Node object.
	Name string

	c      *Cluster
	client kubernetes.Interface
	uid    types.UID
}

// FakeWindowsNode makes a Windows node, as the node itself does, that stays ready
// until the test ends. Its pods run when their volumes are attached, and end when
// they are deleted.
func (c *Cluster) FakeWindowsNode(name string, options NodeOptions) *WindowsNode {
	c.t.Helper()
	client, err := kubernetes.NewForConfig(c.nodeConfig(name))
	if err != nil {
		c.t.Fatal(err)
	}
	n := &WindowsNode{Name: name, c: c, client: client}
	ctx, cancel := c.context()
	defer cancel()
	for _, step := range []func(context.Context, NodeOptions) error{n.register, n.reportReady, n.renew, n.setDrivers} {
		if err := step(ctx, options); err != nil {
			c.t.Fatalf("node %s: %v", name, err)
		}
	}
	n.keep()
	return n
}

// nodeConfig is the configuration of a kubelet.
func (c *Cluster) nodeConfig(name string) *rest.Config {
	c.t.Helper()
	return c.UserConfig("system:node:"+name, "system:nodes")
}

func (n *WindowsNode) register(ctx context.Context, options NodeOptions) error {
	labels := map[string]string{"kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": n.Name}
	maps.Copy(labels, options.Labels)
	node, err := n.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: n.Name, Labels: labels,
		// Without it the attach-detach controller leaves the node alone.
		Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
	}}, metav1.CreateOptions{})
	if err == nil {
		n.uid = node.UID
	}
	return err
}

func (n *WindowsNode) reportReady(ctx context.Context, _ NodeOptions) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("1000"),
	}
	now := metav1.Now()
	return n.patchStatus(ctx, n.client.CoreV1().RESTClient().Patch(types.StrategicMergePatchType).Resource("nodes").Name(n.Name), map[string]any{
		"capacity": room, "allocatable": room,
		"nodeInfo": corev1.NodeSystemInfo{OperatingSystem: "windows", Architecture: "amd64", KubeletVersion: "v1.37.2", OSImage: "Windows Server 2025 Datacenter"},
		"conditions": []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now,
		}},
	})
}

// patchStatus patches the status of what the request is about.
func (n *WindowsNode) patchStatus(ctx context.Context, request *rest.Request, status any) error {
	data, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	return request.SubResource("status").Body(data).Do(ctx).Error()
}

// renew makes or renews the node's lease.
func (n *WindowsNode) renew(ctx context.Context, _ NodeOptions) error {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	seconds, now := int32(leaseTime.Seconds()), metav1.NowMicro()
	spec := coordinationv1.LeaseSpec{HolderIdentity: &n.Name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	lease, err := leases.Get(ctx, n.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.Name, OwnerReferences: n.owner()}, Spec: spec}, metav1.CreateOptions{})
		return err
	}
	if err == nil {
		lease.Spec = spec
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	return err
}

func (n *WindowsNode) owner() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.uid}}
}

// setDrivers makes the CSINode object, which there is only with drivers.
func (n *WindowsNode) setDrivers(ctx context.Context, options NodeOptions) error {
	object := &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, OwnerReferences: n.owner()}, Spec: storagev1.CSINodeSpec{Drivers: options.Drivers},
	}
	if len(options.Migrated) > 0 {
		object.Annotations = map[string]string{corev1.MigratedPluginsAnnotationKey: strings.Join(options.Migrated, ",")}
	}
	_, err := n.client.StorageV1().CSINodes().Create(ctx, object, metav1.CreateOptions{})
	return err
}

// keep renews the lease and looks after the node's pods until the test ends.
func (n *WindowsNode) keep() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(n.c.t.Context()))
	var running sync.WaitGroup
	n.c.t.Cleanup(func() { cancel(); running.Wait() })
	every := func(pause time.Duration, do func(context.Context) error) {
		running.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(pause):
				}
				if err := do(ctx); err != nil && ctx.Err() == nil {
					n.c.t.Logf("node %s: %v", n.Name, err) // the API server may be paused
				}
			}
		})
	}
	every(renewalTime, func(ctx context.Context) error { return n.renew(ctx, NodeOptions{}) })
	// The attach-detach controller takes from a node's news that a volume is mounted
	// there no more, and waits six minutes where there are none.
	every(renewalTime, func(ctx context.Context) error { return n.reportReady(ctx, NodeOptions{}) })
	every(podsTime, n.lookAfterPods)
}

// lookAfterPods lets pods run and end.
func (n *WindowsNode) lookAfterPods(ctx context.Context) error {
	pods, err := n.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name, ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("its pods: %w", err)
	}
	var attached map[string]bool
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch {
		case pod.DeletionTimestamp != nil:
			err = n.end(ctx, pod)
		case pod.Status.Phase != corev1.PodPending:
		default:
			if attached == nil {
				if attached, err = n.attachedClaims(ctx); err != nil {
					return err
				}
			}
			if canRun(pod, attached) {
				err = n.run(ctx, pod)
			}
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	return nil
}
