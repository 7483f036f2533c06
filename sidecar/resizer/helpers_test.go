package resizer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/resizer"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

const (
	gib     = sidecartest.GiB
	storage = v1.ResourceStorage
	expand  = "ControllerExpandVolume"
	alter   = "ControllerModifyVolume"
)

// quick has failures come back soon, and infeasible requests nearly never.
var quick = resizer.Config{RetryMin: 5 * time.Millisecond, RetryMax: time.Hour}

// patient has no failure come back.
var patient = resizer.Config{RetryMin: time.Hour, RetryMax: time.Hour}

// able is a driver that can do all; changes take from it.
func able(changes ...func(*csiclient.Info)) csiclient.Info {
	info := csiclient.Info{
		Plugin: map[csi.PluginCapability_Service_Type]bool{csi.PluginCapability_Service_CONTROLLER_SERVICE: true},
		Controller: map[csi.ControllerServiceCapability_RPC_Type]bool{
			csi.ControllerServiceCapability_RPC_EXPAND_VOLUME: true,
			csi.ControllerServiceCapability_RPC_MODIFY_VOLUME: true,
		},
		Expansion: map[csi.PluginCapability_VolumeExpansion_Type]bool{csi.PluginCapability_VolumeExpansion_ONLINE: true},
	}
	for _, change := range changes {
		change(&info)
	}
	return info
}

func offline(info *csiclient.Info) {
	info.Expansion = map[csi.PluginCapability_VolumeExpansion_Type]bool{csi.PluginCapability_VolumeExpansion_OFFLINE: true}
}

func without(rpc csi.ControllerServiceCapability_RPC_Type) func(*csiclient.Info) {
	return func(info *csiclient.Info) { delete(info.Controller, rpc) }
}

// request has a claim ask for a size.
func request(sizeBytes int64) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[storage] = sidecartest.Size(sizeBytes)
	}
}

// begun is a claim whose expansion has come to a status.
func begun(sizeBytes int64, status v1.ClaimResourceStatus) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Status.AllocatedResources = v1.ResourceList{storage: sidecartest.Size(sizeBytes)}
		if status != "" {
			c.Status.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{storage: status}
		}
	}
}

func condition(kinds ...v1.PersistentVolumeClaimConditionType) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		for _, kind := range kinds {
			c.Status.Conditions = append(c.Status.Conditions, v1.PersistentVolumeClaimCondition{Type: kind, Status: v1.ConditionTrue})
		}
	}
}

// asks has a claim ask for an attributes class.
func asks(class string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &class }
}

func hasClass(class string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) { c.Status.CurrentVolumeAttributesClassName = &class }
}

func modifying(class string, status v1.PersistentVolumeClaimModifyVolumeStatus) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Status.ModifyVolumeStatus = &v1.ModifyVolumeStatus{TargetVolumeAttributesClassName: class, Status: status}
	}
}

func attributes(name string, pairs ...string) *storagev1.VolumeAttributesClass {
	class := &storagev1.VolumeAttributesClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "vac-" + "x"}, DriverName: sidecartest.DriverName, Parameters: map[string]string{},
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		class.Parameters[pairs[i]] = pairs[i+1]
	}
	return class
}

// pod uses the claim "c" on a node.
func pod(phase v1.PodPhase, node string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: sidecartest.Namespace, UID: "pod"},
		Spec: v1.PodSpec{NodeName: node, Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c"},
		}}}},
		Status: v1.PodStatus{Phase: phase},
	}
}

// bound is the claim "c" with its volume "v" of 1 GiB.
func bound(changes ...any) []runtime.Object {
	claim, volume := sidecartest.PVC("c"), sidecartest.PV("v")
	sidecartest.Bind(claim, volume)
	objects := []runtime.Object{claim, volume}
	for _, change := range changes {
		switch change := change.(type) {
		case func(*v1.PersistentVolumeClaim):
			change(claim)
		case func(*v1.PersistentVolume):
			change(volume)
		case runtime.Object:
			objects = append(objects, change)
		default:
			panic(fmt.Sprintf("%T is no change", change))
		}
	}
	return objects
}

func start(b *sidecartest.Bed, config resizer.Config) (stop func()) {
	b.Helper()
	component, err := resizer.New(b.Env, config)
	if err != nil {
		b.Fatal(err)
	}
	return b.Run(component)
}

// state is the claim "c" and its volume in a line: sizes, statuses, conditions
// by their letters, classes, annotations.
func state(b *sidecartest.Bed) (string, error) {
	claim, err := b.Kube.CoreV1().PersistentVolumeClaims(sidecartest.Namespace).Get(b.Ctx, "c", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	volume, err := b.Kube.CoreV1().PersistentVolumes().Get(b.Ctx, "v", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	words := []string{"claim " + size(claim.Status.Capacity)}
	if _, ok := claim.Status.AllocatedResources[storage]; ok {
		words = append(words, "allocated "+size(claim.Status.AllocatedResources))
	}
	if status := claim.Status.AllocatedResourceStatuses[storage]; status != "" {
		words = append(words, string(status))
	}
	if class := claim.Status.CurrentVolumeAttributesClassName; class != nil {
		words = append(words, "class "+*class)
	}
	if modify := claim.Status.ModifyVolumeStatus; modify != nil {
		words = append(words, string(modify.Status)+" "+modify.TargetVolumeAttributesClassName)
	}
	var conditions []string
	for _, c := range claim.Status.Conditions {
		conditions = append(conditions, string(c.Type))
	}
	slices.Sort(conditions)
	words = append(words, conditions...)
	if _, ok := claim.Annotations["volume.kubernetes.io/node-expansion-not-required"]; ok {
		words = append(words, "no-node-expansion")
	}
	words = append(words, "| volume "+size(volume.Spec.Capacity))
	if class := volume.Spec.VolumeAttributesClassName; class != nil {
		words = append(words, "class "+*class)
	}
	if before, ok := volume.Annotations["volume.alpha.kubernetes.io/pre-resize-capacity"]; ok {
		words = append(words, "before "+before)
	}
	return strings.Join(words, " "), nil
}

func size(list v1.ResourceList) string {
	quantity := list[storage]
	return resource.NewQuantity(quantity.Value(), resource.BinarySI).String()
}

// calls are the driver's calls so far with what they asked for.
func calls(b *sidecartest.Bed) []string {
	var list []string
	for _, call := range b.Driver.Calls(expand, alter) {
		if call.Request.(interface{ GetVolumeId() string }).GetVolumeId() != "handle-v" {
			continue
		}
		switch request := call.Request.(type) {
		case *csi.ControllerExpandVolumeRequest:
			list = append(list, "expand "+resource.NewQuantity(request.CapacityRange.RequiredBytes, resource.BinarySI).String())
		case *csi.ControllerModifyVolumeRequest:
			var pairs []string
			for key, value := range request.MutableParameters {
				pairs = append(pairs, key+"="+value)
			}
			slices.Sort(pairs)
			list = append(list, "modify "+strings.Join(pairs, " "))
		}
	}
	return list
}

// reasons are the events so far without their messages.
func reasons(b *sidecartest.Bed) []string {
	var list []string
	for _, event := range b.Events() {
		if words := strings.SplitN(event, " ", 3); !strings.Contains(event, "olume z") {
			list = append(list, words[0]+" "+words[1])
		}
	}
	return list
}

// writes are the writes so far to the claim "c" and its volume.
func writes(b *sidecartest.Bed) []string {
	return slices.DeleteFunc(b.Writes(), func(write string) bool {
		return !strings.HasPrefix(write, "patch") || strings.Contains(write, "/z") || strings.Contains(write, " z")
	})
}

// settle has the claim "c" looked at once more, and then another one expanded:
// when that is done, everything that was due for "c" has been done.
func settle(b *sidecartest.Bed, modify bool) {
	b.Helper()
	update(b, func(c *v1.PersistentVolumeClaim) { c.Generation++ })
	others, err := b.Kube.CoreV1().PersistentVolumes().List(b.Ctx, metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	name := fmt.Sprintf("z%d", len(others.Items))
	claim, volume := sidecartest.PVC(name), sidecartest.PV(name)
	sidecartest.Bind(claim, volume)
	request(2 * gib)(claim)
	if modify {
		asks("gold")(claim)
	}
	if _, err := b.Kube.CoreV1().PersistentVolumes().Create(b.Ctx, volume, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	if _, err := b.Kube.CoreV1().PersistentVolumeClaims(sidecartest.Namespace).Create(b.Ctx, claim, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	b.Eventually(func() error {
		for _, event := range b.Events() {
			if strings.Contains(event, "olume "+name+" ") {
				return nil
			}
		}
		return errors.New("the other claim was not handled")
	})
}

// differs is the error that says how something differs, if it does.
func differs[T any](what string, got, want []T) error {
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		return fmt.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
	return nil
}

// comesTo waits until the objects are in a state.
func comesTo(b *sidecartest.Bed, want string) {
	b.Helper()
	b.Eventually(func() error {
		got, err := state(b)
		if err == nil && got != want {
			err = fmt.Errorf("state:\n got %s\nwant %s", got, want)
		}
		return err
	})
}

// update changes the stored claim "c" as a user does.
func update(b *sidecartest.Bed, change func(*v1.PersistentVolumeClaim)) {
	b.Helper()
	claim, err := b.Kube.CoreV1().PersistentVolumeClaims(sidecartest.Namespace).Get(b.Ctx, "c", metav1.GetOptions{})
	if err == nil {
		change(claim)
		claim.ResourceVersion = ""
		_, err = b.Kube.CoreV1().PersistentVolumeClaims(sidecartest.Namespace).Update(b.Ctx, claim, metav1.UpdateOptions{})
	}
	if err != nil {
		b.Fatal(err)
	}
}

func newBed(t *testing.T, info csiclient.Info, objects []runtime.Object) *sidecartest.Bed {
	t.Helper()
	return sidecartest.New(t, info, objects...)
}

func sizeText(text string) *resource.Quantity {
	quantity := resource.MustParse(text)
	return &quantity
}

func volumeSize(sizeBytes int64) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) { v.Spec.Capacity[storage] = sidecartest.Size(sizeBytes) }
}

func claimSize(sizeBytes int64) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) { c.Status.Capacity[storage] = sidecartest.Size(sizeBytes) }
}

func sizeBefore(text string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) { v.Annotations["volume.alpha.kubernetes.io/pre-resize-capacity"] = text }
}

// foreign is an attributes class of another driver.
func foreign(name string) *storagev1.VolumeAttributesClass {
	class := attributes(name)
	class.DriverName = "other.example.com"
	return class
}

func forbidden(kind string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("the role does not allow it"))
}

func conflict(write string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: strings.Fields(write)[1]}, "x", errors.New("it was changed"))
}

// started waits for the resizer's caches: it says so in its log.
func started(b *sidecartest.Bed) error {
	if !strings.Contains(b.Log(), "Resizer runs") {
		return errors.New("the resizer does not run yet")
	}
	return nil
}

func noNodeExpansion(c *v1.PersistentVolumeClaim) {
	c.Annotations = map[string]string{"volume.kubernetes.io/node-expansion-not-required": "true"}
}
