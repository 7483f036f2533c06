package attacher

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// entry is a volume in a listing, published to some nodes.
func entry(volumeID string, nodeIDs ...string) *csi.ListVolumesResponse_Entry {
	return &csi.ListVolumesResponse_Entry{
		Volume: &csi.Volume{VolumeId: volumeID},
		Status: &csi.ListVolumesResponse_VolumeStatus{PublishedNodeIds: nodeIDs},
	}
}

func page(next string, entries ...*csi.ListVolumesResponse_Entry) sidecartest.Answer {
	return sidecartest.Reply(&csi.ListVolumesResponse{Entries: entries, NextToken: next})
}

// pages answers each token with its page.
func pages(byToken map[string]sidecartest.Answer) sidecartest.Answer {
	return func(ctx context.Context, request proto.Message) (proto.Message, error) {
		return byToken[request.(*csi.ListVolumesRequest).StartingToken](ctx, request)
	}
}

// listedTimes waits for more listings.
func listedTimes(b *sidecartest.Bed, more int) {
	b.Helper()
	before := len(b.Driver.Calls(lists))
	b.Eventually(func() error {
		if now := len(b.Driver.Calls(lists)); now < before+more {
			return fmt.Errorf("%d of %d listings", now-before, more)
		}
		return nil
	})
}

// called waits for calls to attach and detach.
func called(b *sidecartest.Bed, times int) {
	b.Helper()
	b.Eventually(func() error {
		if calls := csiCalls(b); len(calls) < times {
			return fmt.Errorf("calls: %q, and not %d", calls, times)
		}
		return nil
	})
}

// kubernetes-csi/external-attacher#215, #184: a node is deleted, its volume is
// not listed as published any more, and it must be free to go elsewhere.
func TestC085_ANodeThatIsGoneIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, objects := range map[string][]runtime.Object{
		"with its CSINode":               nil,
		"its CSINode is a little behind": {sidecartest.CSINode("n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bed(t, lister(), append(objects, guarded("a"), sidecartest.VA("a", "n", isAttached))...)
			b.Driver.On(lists, page("", entry("handle-a")))
			stop := start(b, quick())
			vaIs(b, "a-n", "given up", func(va *storagev1.VolumeAttachment) bool {
				return !va.Status.Attached && va.Status.AttachmentMetadata == nil && va.Status.AttachError != nil &&
					strings.Contains(va.Status.AttachError.Message, "node n is gone")
			})
			listedTimes(b, 3)
			same(t, "calls", nil, csiCalls(b))
			same(t, "writes", []string{"patch volumeattachments/status a-n"}, b.Writes())
			// It is detached when it is deleted: the listing may have been wrong.
			remove(b, "a-n")
			gone(b, "a-n")
			stop()
			same(t, "calls", []string{"unpublish handle-a id-n"}, csiCalls(b))
		})
	}
}

func TestC085_ANodeThatComesBackIsAttachedToAgain(t *testing.T) {
	t.Parallel()
	b := bed(t, lister(), guarded("a"), sidecartest.VA("a", "n", isAttached))
	b.Driver.On(lists, page("", entry("handle-a")))
	start(b, quick())
	cacheHas(b, "a-n", func(va *storagev1.VolumeAttachment) bool { return !va.Status.Attached })
	b.Driver.On(lists, page("", entry("handle-a", "id-n")))
	if _, err := b.Kube.StorageV1().CSINodes().Create(b.Ctx, sidecartest.CSINode("n"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	attached(b, "a-n")
	same(t, "calls", []string{"publish handle-a id-n"}, csiCalls(b))
}

func TestC085_ANodeThatExistsIsAttachedToOnceMore(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]sidecartest.Answer{
		"the node is not listed":   page("", entry("handle-a", "id-other"), entry("handle-b", "id-n")),
		"the volume is not listed": page("", entry("handle-b", "id-n")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bed(t, lister(), guarded("a"), guarded("b"), sidecartest.VA("a", "n", isAttached), sidecartest.VA("b", "n", isAttached),
				sidecartest.CSINode("n"), sidecartest.Node("n"))
			listed := page("", entry("handle-a", "id-n"), entry("handle-b", "id-n"))
			b.Driver.Once(lists, answer)
			b.Driver.On(lists, listed)
			stop := start(b, quick())
			called(b, 1)
			listedTimes(b, 5)
			stop()
			same(t, "calls", []string{"publish handle-a id-n"}, csiCalls(b))
			// It has the status already that the call leads to.
			same(t, "writes", nil, b.Writes())
		})
	}
}

// A driver that never lists what it attached is asked ever less often, and
// costs no request to the API server.
func TestC085_AnIncompleteListingDoesNotAttachEveryTime(t *testing.T) {
	t.Parallel()
	b := bed(t, lister(), guarded("a"), sidecartest.VA("a", "n", isAttached), sidecartest.CSINode("n"), sidecartest.Node("n"))
	b.Driver.On(lists, page(""))
	config := quick()
	config.ReconcileSync = 1e6
	stop := start(b, config)
	listedTimes(b, 100)
	stop()
	// At the listings 0, 2, 6, 14, 30 and every 32nd after it.
	most := 5 + len(b.Driver.Calls(lists))/32
	if calls := csiCalls(b); len(calls) < 3 || len(calls) > most {
		t.Errorf("%d calls after %d listings", len(calls), len(b.Driver.Calls(lists)))
	}
	same(t, "writes", nil, b.Writes())
	same(t, "reads", []string{"nodes"}, reads(b, "nodes"))
}

func TestC085_ABrokenListingChangesNothing(t *testing.T) {
	t.Parallel()
	unknown := &csi.ListVolumesResponse_Entry{Volume: &csi.Volume{VolumeId: "handle-a"}}
	for name, answer := range map[string]sidecartest.Answer{
		"an error":                       sidecartest.Fail(codes.Internal, "no"),
		"it ends half-way":               pages(map[string]sidecartest.Answer{"": page("2"), "2": sidecartest.Fail(codes.Aborted, "start again")}),
		"a page is its own next":         pages(map[string]sidecartest.Answer{"": page("2"), "2": page("2")}),
		"an entry without an id":         page("", entry("")),
		"a volume twice, other nodes":    page("", entry("handle-a"), entry("handle-a", "id-other")),
		"a volume without its nodes":     page("", unknown),
		"a driver that hangs":            sidecartest.Hang,
		"nothing is wrong, on two pages": pages(map[string]sidecartest.Answer{"": page("2"), "2": page("", entry("handle-a", "id-n"))}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bed(t, lister(), guarded("a"), sidecartest.VA("a", "n", isAttached)) // its node is gone
			b.Driver.On(lists, answer)
			config := quick()
			config.Timeout = 3e7
			config.MaxEntries = 17
			stop := start(b, config)
			listedTimes(b, 4)
			stop()
			same(t, "calls", nil, csiCalls(b))
			same(t, "writes", nil, b.Writes())
			for _, call := range b.Driver.Calls(lists) {
				if n := call.Request.(*csi.ListVolumesRequest).MaxEntries; n != 17 {
					t.Errorf("%d entries were asked for", n)
				}
			}
		})
	}
}

// What happens to an attachment while the driver lists is newer than the listing.
func TestC085_ChangesDuringAListingAreNewerThanIt(t *testing.T) {
	t.Parallel()
	b := bed(t, lister(), guarded("a"), guarded("z"), sidecartest.VA("z", "n", isAttached), sidecartest.VA("a", "n"),
		sidecartest.CSINode("n"), sidecartest.Node("n"))
	publishing, called, answer := held(&csi.ControllerPublishVolumeResponse{}, nil)
	b.Driver.Once(publishes, publishing)
	first, arrived, release := held(&csi.ListVolumesResponse{Entries: []*csi.ListVolumesResponse_Entry{entry("handle-a"), entry("handle-z", "id-n")}}, nil)
	b.Driver.Once(lists, first)
	b.Driver.On(lists, page("", entry("handle-a", "id-n"), entry("handle-z", "id-n")))
	stop := start(b, quick())
	await(t, "the listing", arrived)
	await(t, "the call", called)
	close(answer)
	attached(b, "a-n")
	cacheHas(b, "a-n", func(va *storagev1.VolumeAttachment) bool { return va.Status.Attached })
	close(release)
	listedTimes(b, 2)
	stop()
	same(t, "calls", []string{"publish handle-a id-n"}, csiCalls(b))
}

func TestC085_NodesThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "nodes"}
	for name, c := range map[string]struct {
		err   error
		calls []string
	}{
		"by the role of upstream":     {apierrors.NewForbidden(resource, "n", nil), []string{"publish handle-a id-n"}},
		"as the API server is paused": {apierrors.NewTimeoutError("paused", 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bed(t, lister(), guarded("a"), sidecartest.VA("a", "n", isAttached), sidecartest.CSINode("n"))
			b.Refuse("get nodes", -1, c.err)
			b.Driver.Once(lists, page("", entry("handle-a")))
			b.Driver.On(lists, page("", entry("handle-a", "id-n")))
			stop := start(b, quick())
			called(b, len(c.calls))
			listedTimes(b, 3)
			stop()
			same(t, "calls", c.calls, csiCalls(b))
			same(t, "writes", nil, b.Writes())
		})
	}
}

// An attachment whose call had an unknown outcome is taken up again as soon as
// the driver lists it, and not only after the wait that failures bring.
func TestAListedAttachmentEndsTheWait(t *testing.T) {
	t.Parallel()
	b := bed(t, lister(), guarded("a"), sidecartest.VA("a", "n"), sidecartest.CSINode("n"))
	b.Driver.Once(publishes, sidecartest.Fail(codes.DeadlineExceeded, "slow"))
	b.Driver.On(lists, page("", entry("handle-a")))
	config := quick()
	config.RetryMin, config.RetryMax = 1e12, 1e12
	start(b, config)
	failed(b, "a-n", "slow")
	listedTimes(b, 2)
	same(t, "calls", []string{"publish handle-a id-n"}, csiCalls(b))
	b.Driver.On(lists, page("", entry("handle-a", "id-n")))
	attached(b, "a-n")
}

// While all is well, the comparison costs calls to the driver only.
func TestIdleCostsNoRequest(t *testing.T) {
	t.Parallel()
	b := bed(t, lister(), guarded("a"), sidecartest.VA("a", "n", isAttached), sidecartest.CSINode("n"), sidecartest.VA("b", "n"))
	b.Driver.On(lists, page("", entry("handle-a", "id-n")))
	start(b, quick())
	failed(b, "b-n", "does not exist")
	b.Watched("volumeattachments", "persistentvolumes", "csinodes")
	listedTimes(b, 1)
	before := len(b.Kube.Actions())
	listedTimes(b, 20)
	if after := len(b.Kube.Actions()); after != before {
		t.Errorf("requests while idle: %v", b.Kube.Actions()[before:])
	}
}

func TestOnlyDriversThatListNodesAreAsked(t *testing.T) {
	t.Parallel()
	b := bed(t, with(csi.ControllerServiceCapability_RPC_LIST_VOLUMES), guarded("a"), sidecartest.VA("a", "n"), sidecartest.CSINode("n"))
	config := quick()
	config.ReconcileSync = 1e6
	start(b, config)
	attached(b, "a-n")
	remove(b, "a-n")
	gone(b, "a-n")
	if calls := b.Driver.Calls(lists); len(calls) > 0 {
		t.Errorf("%d listings", len(calls))
	}
}

func TestPublishRequest(t *testing.T) {
	t.Parallel()
	block, file := v1.PersistentVolumeBlock, v1.PersistentVolumeFilesystem
	mount := func(mode csi.VolumeCapability_AccessMode_Mode, fsType string, flags ...string) *csi.VolumeCapability {
		return &csi.VolumeCapability{
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType, MountFlags: flags}},
		}
	}
	type request = csi.ControllerPublishVolumeRequest
	for name, c := range map[string]struct {
		change func(*v1.PersistentVolume)
		can    capabilities
		config Config
		want   *request
	}{
		"plain": {func(*v1.PersistentVolume) {}, capabilities{}, Config{DefaultFSType: "refs"},
			&request{VolumeCapability: mount(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "ntfs")}},
		"the default file system, options, attributes": {func(pv *v1.PersistentVolume) {
			pv.Spec.CSI.FSType, pv.Spec.MountOptions, pv.Spec.VolumeMode = "", []string{"noatime"}, &file
			pv.Spec.CSI.VolumeAttributes = map[string]string{"tier": "gold"}
		}, capabilities{}, Config{DefaultFSType: "refs"}, &request{
			VolumeCapability: mount(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "refs", "noatime"),
			VolumeContext:    map[string]string{"tier": "gold"}}},
		"no default file system": {func(pv *v1.PersistentVolume) { pv.Spec.CSI.FSType, pv.Spec.VolumeMode = "", nil }, capabilities{}, Config{},
			&request{VolumeCapability: mount(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "")}},
		"block": {func(pv *v1.PersistentVolume) { pv.Spec.VolumeMode = &block }, capabilities{}, Config{DefaultFSType: "refs"},
			&request{VolumeCapability: &csi.VolumeCapability{
				AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
				AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
			}}},
		"read-only, for a driver that knows it": {func(pv *v1.PersistentVolume) {
			pv.Spec.CSI.ReadOnly, pv.Spec.AccessModes = true, []v1.PersistentVolumeAccessMode{v1.ReadOnlyMany}
		}, capabilities{publishReadOnly: true}, Config{},
			&request{Readonly: true, VolumeCapability: mount(csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, "ntfs")}},
		"read-only, for one that does not": {func(pv *v1.PersistentVolume) { pv.Spec.CSI.ReadOnly = true }, capabilities{}, Config{},
			&request{VolumeCapability: mount(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "ntfs")}},
		"many writers": {func(pv *v1.PersistentVolume) {
			pv.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteMany, v1.ReadOnlyMany}
		}, capabilities{}, Config{}, &request{VolumeCapability: mount(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, "ntfs")}},
		"one pod": {func(pv *v1.PersistentVolume) {
			pv.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
		}, capabilities{singleNodeMultiWriter: true}, Config{},
			&request{VolumeCapability: mount(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, "ntfs")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pv := sidecartest.PV("a", c.change)
			r := &run{can: c.can, config: c.config}
			got, err := r.publishRequest(&volume{pv: pv, spec: &pv.Spec, source: pv.Spec.CSI}, "id-n")
			c.want.VolumeId, c.want.NodeId = "handle-a", "id-n"
			if err != nil || !proto.Equal(c.want, got) {
				t.Errorf("got  %v %v\nwant %v", got, err, c.want)
			}
		})
	}
}

func TestInlineVolumesOfMigratedPlugins(t *testing.T) {
	t.Parallel()
	va := sidecartest.VA("a", "n")
	va.Spec.Source = storagev1.VolumeAttachmentSource{InlineVolumeSpec: &guarded("inline").Spec}
	b := bed(t, with(), va, sidecartest.CSINode("n"))
	start(b, quick())
	attached(b, "a-n")
	remove(b, "a-n")
	gone(b, "a-n")
	same(t, "calls", []string{"publish handle-inline id-n", "unpublish handle-inline id-n"}, csiCalls(b))
	same(t, "writes of the attacher", []string{"patch volumeattachments a-n", "patch volumeattachments/status a-n", "delete volumeattachments a-n", "patch volumeattachments a-n"}, b.Writes())
}

func TestFinalizerName(t *testing.T) {
	t.Parallel()
	for driver, want := range map[string]string{
		"pd.csi.storage.gke.io": "external-attacher/pd-csi-storage-gke-io",
		"Example/driver_1":      "external-attacher/Example-driver-1",
		"odd.":                  "external-attacher/odd-X",
	} {
		if got := FinalizerName(driver); got != want {
			t.Errorf("%s: %s, want %s", driver, got, want)
		}
	}
}
