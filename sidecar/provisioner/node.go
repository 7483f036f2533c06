package provisioner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/util"

	"github.com/csi-windows/csi-windows/sidecar/queue"
	topo "github.com/csi-windows/csi-windows/sidecar/topology"
)

// ownNode is the one node that a provisioner of node-local volumes serves.
type ownNode struct {
	NodeDeployment
	segments map[string]string
	// competing has the uids of claims without a selected node, which the
	// provisioners of all nodes try to get.
	competing *queue.Queue
}

// settleOn asks the driver where it is.
func (r *run) settleOn(deployment *NodeDeployment) error {
	segment, err := topo.AskDriver(r.ctx, r.env, r.config.Timeout)
	if err != nil {
		return err
	}
	r.topology = newOwnTopology(r.env, deployment.NodeName, segment)
	r.node = &ownNode{NodeDeployment: *deployment, segments: segment.Map()}
	return nil
}

// onThisNode reports whether the claim's volume is to be made on this node. A
// claim that no node was selected for is competed for after a while.
func (r *run) onThisNode(claim *v1.PersistentVolumeClaim) bool {
	selected := claim.Annotations[annSelectedNode]
	if selected == "" && r.mayCompete(claim) {
		// At a random time, so that not all nodes ask at once.
		r.node.competing.AddAfter(string(claim.UID), jitter(r.node.BaseDelay))
	}
	return selected == r.node.NodeName
}

// jitter is a time from a half to one and a half of what is given.
func jitter(delay time.Duration) time.Duration {
	return delay/2 + rand.N(max(delay, 1))
}

// mayCompete reports whether the claim is one that any node may take.
func (r *run) mayCompete(claim *v1.PersistentVolumeClaim) bool {
	class := r.classes.class(util.GetPersistentVolumeClaimClass(claim))
	return !r.node.NoImmediateBinding && claim.DeletionTimestamp == nil && class != nil && claim.Spec.VolumeName == "" &&
		class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingImmediate
}

// compete selects this node for a claim if no other has been, and if there is
// room for the volume. The API server decides the race.
func (r *run) compete(ctx context.Context, key string) error {
	claim := r.claimByUID(types.UID(key))
	if claim == nil || claim.Annotations[annSelectedNode] != "" || !r.mayCompete(claim) {
		return nil
	}
	class := r.classes.class(util.GetPersistentVolumeClaimClass(claim))
	what, err := r.want(ctx, claim, class, r.node.NodeName)
	if errors.Is(err, errNodeWithoutDriver) {
		return nil // the class allows other places only: to take the claim would only be to give it back
	}
	fits := true
	if err == nil {
		fits, err = r.fits(ctx, what)
		if err != nil && status.Code(err) != codes.InvalidArgument {
			return err // another node may be in better health
		}
	}
	if err != nil {
		// As likely as not every node sees the same; the one that takes the
		// claim tells the user.
		r.log.InfoContext(ctx, "Claim is taken although its request fails", "claim", nameOf(claim), "error", err)
	} else if !fits {
		return queue.After(jitter(r.node.MaxDelay)) // room may be made
	}
	claim = claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, annSelectedNode, r.node.NodeName)
	_, err = r.env.Kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
	switch {
	case apierrors.IsConflict(err):
		return queue.After(jitter(r.node.BaseDelay))
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("select this node for claim %s: %w", nameOf(claim), err)
	}
	return nil
}

// fits asks the driver whether it has room.
func (r *run) fits(ctx context.Context, what *wanted) (bool, error) {
	if !r.info.Controller[csi.ControllerServiceCapability_RPC_GET_CAPACITY] {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	answer, err := r.csi.GetCapacity(ctx, &csi.GetCapacityRequest{VolumeCapabilities: what.request.GetVolumeCapabilities(),
		Parameters: what.request.GetParameters(), AccessibleTopology: &csi.Topology{Segments: r.node.segments}})
	if err != nil {
		return false, fmt.Errorf("room on this node: %w", err)
	}
	return what.request.GetCapacityRange().GetRequiredBytes() <= answer.GetAvailableCapacity(), nil
}
