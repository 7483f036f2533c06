package provisioner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// bulky is a class whose volumes need so much room in the journal that it has
// place for four.
func bulky(class *storagev1.StorageClass) {
	random := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for text.Len() < 62_000 {
		text.WriteString(strconv.FormatUint(random.Uint64(), 36))
	}
	class.Parameters = map[string]string{"text": text.String()}
}

// While a back-end does not answer, the volumes in doubt fill the journal. When
// it answers again they need workers, which must not all wait for room.
func TestAFullJournalDoesNotHoldUpTheVolumesInIt(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), sidecartest.StorageClass(sidecartest.ClassName, bulky))
	b.config.WorkerThreads = 2
	b.Driver.On("CreateVolume", sidecartest.Fail(codes.Unavailable, "the back-end does not answer"))
	b.start()
	for i := range 4 {
		name := fmt.Sprintf("first%d", i)
		b.addClaim(name, name)
	}
	b.wait("four in doubt", func() bool { return len(b.entries()) == 4 })
	for i := range 4 {
		name := fmt.Sprintf("then%d", i)
		b.addClaim(name, name)
	}
	b.wait("the user is told", func() bool { return strings.Contains(strings.Join(b.Events(), "\n"), "the journal is full") })
	b.Driver.On("CreateVolume", b.create)
	b.wait("all have a volume", func() bool { return b.volumes() == 8 })
}

// An answer that got lost is none, whatever code gRPC has for it.
func TestAVolumeWhoseAnswerCannotBeReadIsNotLost(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]struct {
		code codes.Code
		said string
	}{
		"not written": {codes.Internal, "grpc: error while marshaling: string field contains invalid UTF-8"},
		"not taken":   {codes.ResourceExhausted, "grpc: received message larger than max (40000000 vs. 33554432)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, able(), sidecartest.StorageClass(sidecartest.ClassName), claim("c"))
			b.Driver.On("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
				if _, err := b.create(ctx, request); err != nil {
					return nil, err
				}
				return nil, status.Error(text.code, text.said)
			})
			b.config.RetryMin, b.config.RetryMax = time.Hour, time.Hour // the claim has gone before it is tried again
			b.start()
			b.wait("the user is told", func() bool { return b.saw("Warning ProvisioningFailed") })
			b.Driver.On("CreateVolume", b.create)
			b.deleteClaim("c")
			b.wait("deleted again", func() bool { return b.volumes() == 0 })
			b.journalEmpty()
		})
	}
}

// The object of a volume may be more than the API server or its store takes.
func TestAVolumeWhoseObjectIsTooLargeGoesWithItsClaim(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"for the server": apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
		"for the store":  apierrors.NewInternalError(errors.New("etcdserver: request is too large")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, able(), sidecartest.StorageClass(sidecartest.ClassName), claim("c"))
			b.Refuse("create persistentvolumes", -1, refusal)
			b.start()
			b.wait("the user is told", func() bool { return b.saw("Warning ProvisioningFailed The volume was made") })
			b.deleteClaim("c")
			b.wait("deleted again", func() bool { return b.volumes() == 0 })
			b.journalEmpty()
		})
	}
}

// A driver may name as many places as fit into an answer, some twice.
func TestAVolumeOfVeryManyPlaces(t *testing.T) {
	t.Parallel()
	const places = 300_000
	segments := make([]*csi.Topology, 0, 2*places)
	for i := range 2 * places {
		segments = append(segments, &csi.Topology{Segments: map[string]string{"zone": strconv.Itoa(i % places)}})
	}
	terms := volumeNodeAffinity(segments).Required.NodeSelectorTerms
	if len(terms) != places || terms[7].MatchExpressions[0].Values[0] != "7" {
		t.Errorf("%d terms of %d places", len(terms), places)
	}
}

func TestTheJournalOfANodeWithALongNameCanBeWritten(t *testing.T) {
	t.Parallel()
	driver, node := strings.Repeat("d", 63), strings.Repeat("n", 161)+"."+strings.Repeat("n", 89)
	one, other := journalName(driver, node+"-1"), journalName(driver, node+"-2")
	for _, name := range []string{one, other} {
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 || !strings.HasSuffix(name, "-intents") {
			t.Errorf("%s: %q", name, wrong)
		}
	}
	if one == other {
		t.Errorf("two nodes have the journal %s", one)
	}
}

// A call with a secret that is no text never leaves this process. It must not count
// as one whose answer is open: nobody could end it.
func TestASecretThatIsNoTextBeginsNothing(t *testing.T) {
	t.Parallel()
	class := sidecartest.StorageClass(sidecartest.ClassName)
	class.Parameters = map[string]string{
		"csi.storage.k8s.io/provisioner-secret-name": "binary", "csi.storage.k8s.io/provisioner-secret-namespace": sidecartest.Namespace}
	b := newBed(t, able(), claim("data"), class, sidecartest.Secret("binary", "keytab", "\xff\x00"))
	b.start()
	b.wait("the user is told", func() bool { return b.logged("is no text") && b.saw("Warning ProvisioningFailed") })
	if got := b.entries(); len(got) > 0 {
		t.Errorf("entries %v", got)
	}
}
