package life

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// waitTime is how long a step of a scene may take: longer than the controller
// manager's own interval of looking at claims, and than a few retries, of which the
// attach-detach controller's are up to two minutes apart.
const waitTime = 4 * time.Minute

// pollTime lies between two looks.
const pollTime = 50 * time.Millisecond

// target is a driver under test.
type target struct {
	// name is the driver's, zoneKey that of its topology.
	name, zoneKey string
	// driver is who the sidecar speaks to, controller the driver itself.
	driver     *between
	controller csi.ControllerClient
	// slow and fast are parameters that can be changed, bad ones no driver knows.
	slow, fast, bad map[string]string
	// onNode says that the node has a part in an expansion.
	onNode bool
}

// The two zones, each with one node.
var zones = [2]string{"zone-1", "zone-2"}

// nodes are their nodes, which have the same name for the drivers.
var nodes = [2]string{"win1", "win2"}

// scene is one test with objects of its own in a shared cluster.
type scene struct {
	*target
	t     *testing.T
	c     *cluster.Cluster
	name  string // of its namespace and its class
	class *storagev1.StorageClass
}

func newScene(t *testing.T, c *cluster.Cluster, g *target, name string) *scene {
	t.Helper()
	s := &scene{target: g, t: t, c: c, name: strings.ToLower(strings.Split(g.name, ".")[0] + "-" + name)}
	if _, err := c.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.wait("the account of pods", func(ctx context.Context) error {
		_, err := c.Client.CoreV1().ServiceAccounts(s.name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return s
}

// wait looks again and again until something holds.
func (s *scene) wait(what string, try func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), waitTime)
	defer cancel()
	began := time.Now()
	for {
		err := try(ctx)
		if err == nil {
			if took := time.Since(began); took > 3*time.Second {
				s.t.Logf("%s: took %v", what, took.Round(100*time.Millisecond))
			}
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("%s: not after %v: %v", what, waitTime, err)
		case <-time.After(pollTime):
		}
	}
}

// must ends the test with an error.
func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// makeClass makes the scene's class. It goes with the scene.
func (s *scene) makeClass(changes ...func(*storagev1.StorageClass)) {
	s.t.Helper()
	mode, expands := storagev1.VolumeBindingImmediate, true
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Provisioner: s.target.name, VolumeBindingMode: &mode, AllowVolumeExpansion: &expands}
	for _, change := range changes {
		change(class)
	}
	made, err := s.c.Client.StorageV1().StorageClasses().Create(s.t.Context(), class, metav1.CreateOptions{})
	s.must(err)
	s.class = made
	s.t.Cleanup(func() {
		s.must(s.c.Client.StorageV1().StorageClasses().Delete(context.WithoutCancel(s.t.Context()), class.Name, metav1.DeleteOptions{}))
	})
}

func late(class *storagev1.StorageClass) {
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	class.VolumeBindingMode = &mode
}

func retain(class *storagev1.StorageClass) {
	policy := corev1.PersistentVolumeReclaimRetain
	class.ReclaimPolicy = &policy
}

// claim makes a claim of the scene's class.
func (s *scene) claim(name, size string, changes ...func(*corev1.PersistentVolumeClaim)) {
	s.t.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &s.name,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
	for _, change := range changes {
		change(claim)
	}
	_, err := s.c.Client.CoreV1().PersistentVolumeClaims(s.name).Create(s.t.Context(), claim, metav1.CreateOptions{})
	s.must(err)
}

func (s *scene) getClaim(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	return s.c.Client.CoreV1().PersistentVolumeClaims(s.name).Get(ctx, name, metav1.GetOptions{})
}

// bound waits until a claim has its volume.
func (s *scene) bound(name string) (volume *corev1.PersistentVolume) {
	s.t.Helper()
	s.wait("claim "+name+" is bound", func(ctx context.Context) error {
		claim, err := s.getClaim(ctx, name)
		if err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("it is %s; events: %s", claim.Status.Phase, s.events(ctx, name))
		}
		volume, err = s.c.Client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		return err
	})
	return volume
}

// pod makes a pod that uses claims, on any node or on one.
func (s *scene) pod(name, node string, claims ...string) {
	s.t.Helper()
	seconds := int64(1)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		OS: &corev1.PodOS{Name: corev1.Windows}, NodeSelector: map[string]string{"kubernetes.io/os": "windows"}, TerminationGracePeriodSeconds: &seconds,
		Containers: []corev1.Container{{Name: "c", Image: "none"}},
	}}
	if node != "" {
		pod.Spec.NodeSelector["kubernetes.io/hostname"] = node
	}
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
	_, err := s.c.Client.CoreV1().Pods(s.name).Create(s.t.Context(), pod, metav1.CreateOptions{})
	s.must(err)
}

// runs waits until a pod runs, and returns its node.
func (s *scene) runs(name string) (node string) {
	s.t.Helper()
	s.wait("pod "+name+" runs", func(ctx context.Context) error {
		pod, err := s.c.Client.CoreV1().Pods(s.name).Get(ctx, name, metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("it is %s on %q: %v; events: %s", pod.Status.Phase, pod.Spec.NodeName, pod.Status.Conditions, s.events(ctx, name))
		}
		if err == nil {
			node = pod.Spec.NodeName
		}
		return err
	})
	return node
}

// noPod deletes a pod and waits until it is gone.
func (s *scene) noPod(name string) {
	s.t.Helper()
	s.must(s.c.Client.CoreV1().Pods(s.name).Delete(s.t.Context(), name, metav1.DeleteOptions{}))
	s.gone("pod "+name, func(ctx context.Context) error {
		_, err := s.c.Client.CoreV1().Pods(s.name).Get(ctx, name, metav1.GetOptions{})
		return err
	})
}

// noClaim deletes a claim and waits until it is gone.
func (s *scene) noClaim(name string) {
	s.t.Helper()
	s.must(s.c.Client.CoreV1().PersistentVolumeClaims(s.name).Delete(s.t.Context(), name, metav1.DeleteOptions{}))
	s.gone("claim "+name, func(ctx context.Context) error {
		_, err := s.getClaim(ctx, name)
		return err
	})
}

// gone waits until getting something says that it is not there.
func (s *scene) gone(what string, get func(context.Context) error) {
	s.t.Helper()
	s.wait(what+" goes", func(ctx context.Context) error {
		err := get(ctx)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}

// events are those of an object of the scene's namespace, or of none.
func (s *scene) events(ctx context.Context, name string) string {
	var all []string
	for _, namespace := range []string{s.name, metav1.NamespaceDefault} {
		list, err := s.c.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err != nil {
			return err.Error()
		}
		for i := range list.Items {
			all = append(all, fmt.Sprintf("%s %s: %s", list.Items[i].Type, list.Items[i].Reason, list.Items[i].Message))
		}
	}
	return strings.Join(all, "\n")
}

// event waits for one of an object that has a reason and a text.
func (s *scene) event(name, reason, text string) {
	s.t.Helper()
	s.wait("event "+reason+" of "+name, func(ctx context.Context) error {
		all := s.events(ctx, name)
		for line := range strings.Lines(all) {
			if strings.Contains(line, " "+reason+": ") && strings.Contains(line, text) {
				return nil
			}
		}
		return fmt.Errorf("there are: %s", all)
	})
}
