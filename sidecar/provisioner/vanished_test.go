package provisioner

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// TestClaimGoesWhileTheIntentIsWrittenDown: the driver is asked all the same, and
// what comes of it is known to this process, not only to the next one.
func TestClaimGoesWhileTheIntentIsWrittenDown(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
	b.Driver.Once("CreateVolume", b.createAndFail(codes.Unavailable))
	claims := b.Env.Informers.Kube().Core().V1().PersistentVolumeClaims().Lister().PersistentVolumeClaims(sidecartest.Namespace)
	b.Kube.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		b.deleteClaim("data")
		b.Eventually(func() error { // which asks the API server for nothing
			if _, err := claims.Get("data"); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the cache has the claim: %w", err)
			}
			return nil
		})
		return false, nil, nil
	})
	// The request that is held up would hold up the watch as well.
	if err := b.Env.Informers.Sync(b.Ctx, b.Env.Informers.Kube().Core().V1().PersistentVolumeClaims().Informer().HasSynced); err != nil {
		t.Fatal(err)
	}
	b.wait("claims are watched", func() bool { return b.requests("watch", "persistentvolumeclaims") > 0 })
	b.start()
	b.wait("its volume is deleted", func() bool { return len(b.Driver.Calls("DeleteVolume")) > 0 })
	b.wait("nothing is left", func() bool { return b.volumes() == 0 && len(b.entries()) == 0 })
}

// TestAttemptThatIsHeldIsKept, since the driver may be about to be asked; its holder
// drops it.
func TestAttemptThatIsHeldIsKept(t *testing.T) {
	t.Parallel()
	all := &attempts{all: map[types.UID]*attempt{}}
	a := all.hold("uid")
	if !all.forget("uid") || all.known("uid") != a {
		t.Error("it is forgotten")
	}
	if all.drop(a) || all.known("uid") != nil {
		t.Error("it is kept")
	}
	a.busy.Unlock()
}
