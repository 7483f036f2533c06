package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// holdings are what cluster or back-end hold: volumes and snapshots by their ids,
// attachments as VOLUME@NODE.
type holdings map[string]bool

// difference says what only one of two has.
func difference(inCluster, inBackend holdings) error {
	var wrong []string
	for one := range inCluster {
		if !inBackend[one] {
			wrong = append(wrong, one+" is in the cluster only")
		}
	}
	for one := range inBackend {
		if !inCluster[one] {
			wrong = append(wrong, one+" is in the back-end only")
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return errors.New(strings.Join(wrong, ", "))
}

func backendHoldings(state cluster.PlainState) holdings {
	all := holdings{}
	for id, volume := range state.Volumes {
		all[id] = true
		for node := range volume.Nodes {
			all[id+"@"+node] = true
		}
	}
	for id := range state.Snapshots {
		all[id] = true
	}
	return all
}

// census counts the cluster's objects.
type census struct {
	all holdings
	// left are all objects with what keeps them, for the message.
	left []string
	// unsettled are those that are on their way.
	unsettled []string
	// hopeless are the names of volumes whose claims cannot get them.
	hopeless map[string]bool
}

func (s *census) add(kind string, object metav1.Object, why string) {
	text := fmt.Sprintf("%s %s %v", kind, object.GetName(), object.GetFinalizers())
	if object.GetDeletionTimestamp() != nil {
		// What keeps it may be users' own doing, as long as they delete no more.
		text, why = text+" deleted", ""
	}
	s.left = append(s.left, text)
	if why != "" {
		s.unsettled = append(s.unsettled, text+":"+why)
	}
}

func (w *world) census(ctx context.Context) (*census, error) {
	s := &census{all: holdings{}, hopeless: map[string]bool{}}
	handles := map[string]string{}
	volumes, err := w.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range volumes.Items {
		one := &volumes.Items[i]
		s.all[one.Spec.CSI.VolumeHandle], handles[one.Name] = true, one.Spec.CSI.VolumeHandle
		s.add("volume", one, unless(one.Status.Phase == corev1.VolumeBound, " is "+string(one.Status.Phase)+": "+one.Status.Message))
	}
	attachments, err := w.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range attachments.Items {
		one := &attachments.Items[i]
		s.all[handles[*one.Spec.Source.PersistentVolumeName]+"@"+one.Spec.NodeName] = true
		s.add("attachment", one, unless(one.Status.Attached, " is not attached"))
	}
	return s, errors.Join(w.addClaims(ctx, s), w.addSnapshots(ctx, s))
}

// unless is the text unless all is well.
func unless(well bool, text string) string {
	if well {
		return ""
	}
	return text
}

func (w *world) addClaims(ctx context.Context, s *census) error {
	pods, err := w.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	claims, err := w.Client.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	isUsed, waitsForGood := map[string]bool{}, map[string]bool{}
	for i := range pods.Items {
		isUsed[claimOf(&pods.Items[i])] = true
	}
	for i := range claims.Items {
		one := &claims.Items[i]
		waits := *one.Spec.StorageClassName == "late" && !isUsed[one.Name] // for a pod that is not to come
		if one.Status.Phase != corev1.ClaimBound && !w.canBeMade(ctx, one) {
			s.hopeless["pvc-"+string(one.UID)], waits = true, true
		}
		why := ""
		asked, has := one.Spec.Resources.Requests[corev1.ResourceStorage], one.Status.Capacity[corev1.ResourceStorage]
		switch {
		case one.Status.Phase != corev1.ClaimBound:
			waitsForGood[one.Name] = waits
			why = unless(waits, " is "+string(one.Status.Phase))
		case asked.Cmp(has) > 0:
			why = " has " + has.String() + " and not " + asked.String()
		}
		s.add("claim", one, why)
	}
	for i := range pods.Items {
		one := &pods.Items[i]
		s.add("pod", one, unless(one.Status.Phase == corev1.PodRunning || waitsForGood[claimOf(one)], " is "+string(one.Status.Phase)))
	}
	return nil
}

func claimOf(pod *corev1.Pod) string { return pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName }

// canBeMade reports whether what the claim is to be made of is there and can be used.
func (w *world) canBeMade(ctx context.Context, claim *corev1.PersistentVolumeClaim) bool {
	source := claim.Spec.DataSource
	switch {
	case source == nil:
		return true
	case source.Kind == "VolumeSnapshot":
		snapshot, err := w.Dynamic.Resource(snapshotKind).Namespace(namespace).Get(ctx, source.Name, metav1.GetOptions{})
		return err == nil && snapshot.GetDeletionTimestamp() == nil && isReady(snapshot)
	default:
		of, err := w.Client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, source.Name, metav1.GetOptions{})
		return err == nil && of.DeletionTimestamp == nil && of.Status.Phase == corev1.ClaimBound
	}
}

func isReady(object *unstructured.Unstructured) bool {
	ready, _, _ := unstructured.NestedBool(object.Object, "status", "readyToUse")
	return ready
}

func (w *world) addSnapshots(ctx context.Context, s *census) error {
	contents, err := w.Dynamic.Resource(contentKind).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range contents.Items {
		handle, _, _ := unstructured.NestedString(contents.Items[i].Object, "status", "snapshotHandle")
		s.all[handle] = true
		s.add("content", &contents.Items[i], unless(isReady(&contents.Items[i]) && handle != "", " is not ready"))
	}
	snapshots, err := w.Dynamic.Resource(snapshotKind).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range snapshots.Items {
		one := &snapshots.Items[i]
		name, _, _ := unstructured.NestedString(one.Object, "spec", "source", "persistentVolumeClaimName")
		claim, err := w.Client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
		hopeless := err != nil || claim.DeletionTimestamp != nil || claim.Spec.VolumeName == "" // its claim goes, or never gets a volume
		s.add("snapshot", one, unless(isReady(one) || hopeless, " is not ready"))
	}
	return nil
}

// isAtRest fails while something is on its way, or cluster and back-end differ. The
// journal answers for a volume whose claim waits for a source that is gone.
func (w *world) isAtRest(ctx context.Context) error {
	s, err := w.census(ctx)
	if err != nil {
		return err
	}
	open, err := w.entries(ctx)
	if err != nil {
		return err
	}
	state, err := w.PlainState()
	if err != nil {
		return err
	}
	for _, volume := range state.Volumes {
		if !s.all[volume.ID] && s.hopeless[volume.Name] && slices.Contains(open, volume.Name) {
			delete(state.Volumes, volume.ID)
		}
	}
	if len(s.unsettled) > 0 {
		err = fmt.Errorf("on their way: %s", strings.Join(s.unsettled, "; "))
	}
	for _, name := range open {
		if !s.hopeless[name] {
			err = errors.Join(err, fmt.Errorf("the journal has %s", name))
		}
	}
	return errors.Join(err, difference(s.all, backendHoldings(state)))
}

// isEmpty fails while anything is left anywhere.
func (w *world) isEmpty(ctx context.Context) error {
	s, err := w.census(ctx)
	if err != nil {
		return err
	}
	open, err := w.entries(ctx)
	if err != nil {
		return err
	}
	state, err := w.PlainState()
	if err != nil {
		return err
	}
	held := backendHoldings(state)
	if len(s.left)+len(held)+len(open) == 0 {
		return nil
	}
	return fmt.Errorf("left in the cluster: %s; in the back-end: %s; in the journal: %s",
		strings.Join(s.left, "; "), strings.Join(slices.Sorted(maps.Keys(held)), " "), strings.Join(open, " "))
}

// deleteAll deletes all that users have made.
func (w *world) deleteAll(ctx context.Context) error {
	none := int64(0)
	return errors.Join(
		w.Client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &none}, metav1.ListOptions{}),
		w.Client.CoreV1().PersistentVolumeClaims(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		w.Dynamic.Resource(snapshotKind).Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
	)
}
