package provisioner

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/queue"
)

// settleLater is when an attempt is looked at again that is not to be ended
// yet although nothing brought that about in the cache.
const settleLater = 10 * time.Second

// settle ends the making of a volume that nobody waits for any more: the claim
// is gone, or got another volume. The driver is asked again, in the words of
// the journal, until its answer is final, and a volume that comes of it is
// deleted. An attempt whose claim is there is left to the usual way.
func (r *run) settle(ctx context.Context, key string) error {
	uid := types.UID(key)
	if r.attempts.known(uid) == nil {
		return nil
	}
	a := r.attempts.hold(uid)
	defer r.letGo(a)
	now, what := a.state()
	if (now != stageOpen && now != stageFound) || what == nil {
		return nil // it ended, or its object is being saved
	}
	if claim := r.claimByUID(uid); claim != nil && claim.Spec.VolumeName == "" {
		return nil
	}
	wanted, err := r.stillWanted(ctx, uid, what)
	switch {
	case err != nil:
		return err
	case wanted == byVolume:
		r.finish(uid)
		return nil
	case wanted == byClaim:
		return queue.After(settleLater)
	}
	return r.replay(ctx, a, what)
}

// Who wants a volume that may be in the making.
type wish int

const (
	byNobody wish = iota
	byClaim
	byVolume
)

// stillWanted asks the API server itself, since a volume is to be deleted: the
// cache may not have the object yet that was saved for it.
func (r *run) stillWanted(ctx context.Context, uid types.UID, what *intent) (wish, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := r.env.Kube.CoreV1().PersistentVolumes().Get(ctx, what.Volume, metav1.GetOptions{})
	switch {
	case err == nil:
		return byVolume, nil // be it another claim's: a volume of that name is in use
	case !apierrors.IsNotFound(err):
		return byNobody, fmt.Errorf("whether volume object %s exists: %w", what.Volume, err)
	}
	claim, err := r.env.Kube.CoreV1().PersistentVolumeClaims(what.Namespace).Get(ctx, what.Claim, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return byNobody, fmt.Errorf("whether claim %s/%s exists: %w", what.Namespace, what.Claim, err)
	case err == nil && claim.UID == uid && claim.Spec.VolumeName == "":
		return byClaim, nil
	}
	return byNobody, nil
}

// replay asks the driver again for a volume that nobody wants, to learn its id
// and delete it.
func (r *run) replay(ctx context.Context, a *attempt, what *intent) error {
	secrets, err := r.credentials(ctx, what.Secret)
	if apierrors.IsNotFound(err) {
		secrets, err = nil, nil // gone with the namespace; the driver may do without
	}
	if err != nil {
		return err
	}
	made, err := r.createVolume(ctx, what.Request, secrets)
	if err != nil {
		if csiclient.IsFinal(err) || status.Code(err) == codes.ResourceExhausted {
			r.log.InfoContext(ctx, "No volume was made for the claim that is gone", "claim", what.Namespace+"/"+what.Claim, "answer", err)
			if former := a.reopen(); former != nil {
				return r.replay(ctx, a, former)
			}
			r.drop(a)
			return nil
		}
		return fmt.Errorf("volume of claim %s/%s, which is gone: %w", what.Namespace, what.Claim, err)
	}
	if err := r.discard(ctx, made.GetVolumeId(), secrets); err != nil {
		if r.userOf(made.GetVolumeId()) == "" {
			return err
		}
		r.log.WarnContext(ctx, "Volume of a claim that is gone is kept", "error", err)
	}
	r.log.InfoContext(ctx, "Volume of the claim that is gone is deleted", "claim", what.Namespace+"/"+what.Claim, "handle", made.GetVolumeId())
	r.drop(a)
	return nil
}

// drop forgets an attempt for good.
func (r *run) drop(a *attempt) {
	r.attempts.finish(a.uid)
	r.journal.remove(a.uid)
}

// newIntent is what the journal keeps of a volume to be made.
func newIntent(claim *v1.PersistentVolumeClaim, what *wanted) *intent {
	return &intent{Namespace: claim.Namespace, Claim: claim.Name, Volume: what.request.GetName(),
		Secret: what.secret, Request: what.request}
}
