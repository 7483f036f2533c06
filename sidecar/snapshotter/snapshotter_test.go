package snapshotter_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
	"github.com/csi-windows/csi-windows/sidecar/snapshotter"
)

const (
	listSnapshots = csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS
	getSnapshot   = csi.ControllerServiceCapability_RPC_GET_SNAPSHOT
	metaPatch     = "patch volumesnapshotcontents snapcontent-1"
	statusPatch   = "patch volumesnapshotcontents/status snapcontent-1"
)

func TestSnapshotIsTakenWithThreeWrites(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(), "", class(map[string]string{"tier": "cold"}), vsc())
	serve(bed, &backend{})
	start(bed, quick)
	c := eventually(bed, "ready", isReady)
	if *c.Status.SnapshotHandle != "snap-1" || *c.Status.RestoreSize != 1<<30 || *c.Status.CreationTime != 1700000000e9 {
		t.Errorf("status %+v", c.Status)
	}
	settled(bed)
	if diff := cmp.Diff([]string{metaPatch, statusPatch, metaPatch}, writes(bed)); diff != "" {
		t.Errorf("writes: %s", diff)
	}
	calls := bed.Driver.Calls()
	request := calls[0].Request.(*csi.CreateSnapshotRequest)
	if len(calls) != 1 || request.GetName() != "snapshot-0a1b-2c3d" || request.GetSourceVolumeId() != "vol-1" || !cmp.Equal(request.GetParameters(), map[string]string{"tier": "cold"}) {
		t.Errorf("calls %v", calls)
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	secret := func(namespace, name string) *v1.Secret {
		return &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"key": []byte(name)}}
	}
	named := map[string]string{"csi.storage.k8s.io/snapshotter-secret-name": "${volumesnapshot.name}-key", "csi.storage.k8s.io/snapshotter-secret-namespace": "${volumesnapshot.namespace}"}
	for name, test := range map[string]struct {
		config     snapshotter.Config
		parameters map[string]string
		content    *snapshotv1.VolumeSnapshotContent
		want       *csi.CreateSnapshotRequest
		wantError  string
	}{
		"short uid and another prefix": {
			config: snapshotter.Config{NamePrefix: "nightly", NameUIDLength: 6},
			want:   &csi.CreateSnapshotRequest{Name: "nightly-0a1b2c"},
		},
		"metadata": {
			config: snapshotter.Config{ExtraCreateMetadata: true},
			want: &csi.CreateSnapshotRequest{Name: "snapshot-0a1b-2c3d", Parameters: map[string]string{
				"csi.storage.k8s.io/volumesnapshot/name": "snap", "csi.storage.k8s.io/volumesnapshot/namespace": "apps", "csi.storage.k8s.io/volumesnapshotcontent/name": "snapcontent-1",
			}},
		},
		"secret of the annotations": {
			parameters: named,
			content:    vsc(annotated(secretName, "own"), annotated(secretSpace, "apps")),
			want:       &csi.CreateSnapshotRequest{Name: "snapshot-0a1b-2c3d", Secrets: map[string]string{"key": "own"}},
		},
		"secret of the class": {
			parameters: named,
			want:       &csi.CreateSnapshotRequest{Name: "snapshot-0a1b-2c3d", Secrets: map[string]string{"key": "snap-key"}},
		},
		"unknown token": {
			parameters: map[string]string{"csi.storage.k8s.io/snapshotter-secret-name": "x", "csi.storage.k8s.io/snapshotter-secret-namespace": "${volumesnapshot.name}"},
			wantError:  `has unknown tokens: ["volumesnapshot.name"]`,
		},
		"half a secret": {
			parameters: map[string]string{"csi.storage.k8s.io/snapshotter-secret-name": "x"},
			wantError:  "must both be set, or none",
		},
		"secret that is not there": {
			parameters: map[string]string{"csi.storage.k8s.io/snapshotter-secret-name": "none", "csi.storage.k8s.io/snapshotter-secret-namespace": "apps"},
			wantError:  "read secret apps/none",
		},
		"unknown reserved parameter": {
			parameters: map[string]string{"csi.storage.k8s.io/snapshoter-secret-name": "x"},
			wantError:  `"csi.storage.k8s.io/snapshoter-secret-name" is unknown`,
		},
		"unbound": {
			content:   vsc(func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.VolumeSnapshotRef.UID = "" }),
			wantError: "is not bound",
		},
		"no class": {
			content:   vsc(func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.VolumeSnapshotClassName = nil }),
			wantError: "names no class",
		},
		"class that is not there": {
			content:   vsc(func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.VolumeSnapshotClassName = to("weekly") }),
			wantError: "class weekly: there is no such class",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.content == nil {
				test.content = vsc()
			}
			bed := newBed(t, can(), "", class(test.parameters), test.content, secret("apps", "own"), secret("apps", "snap-key"))
			serve(bed, &backend{})
			test.config.RetryMin, test.config.RetryMax = time.Hour, time.Hour
			start(bed, test.config)
			if test.wantError != "" {
				c := eventually(bed, "failed", hasFailed)
				if text := *c.Status.Error.Message; !strings.HasPrefix(text, "Failed to create snapshot: ") || !strings.Contains(text, test.wantError) {
					t.Errorf("error %q, want %q", text, test.wantError)
				}
				if events := bed.Events(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning SnapshotCreationFailed ") {
					t.Errorf("events %q", events)
				}
				if calls := bed.Driver.CallNames(); len(calls) != 0 {
					t.Errorf("calls %q", calls)
				}
				return
			}
			c := eventually(bed, "ready", isReady)
			got := bed.Driver.Calls()[0].Request.(*csi.CreateSnapshotRequest)
			if got.GetName() != test.want.GetName() || !cmp.Equal(got.GetSecrets(), test.want.GetSecrets()) || len(got.GetParameters()) != len(test.want.GetParameters()) ||
				len(test.want.GetParameters()) > 0 && !cmp.Equal(got.GetParameters(), test.want.GetParameters()) {
				t.Errorf("request %v, want %v", got, test.want)
			}
			if test.want.GetSecrets()["key"] == "snap-key" && (c.Annotations[secretName] != "snap-key" || c.Annotations[secretSpace] != "apps") {
				t.Errorf("the secret is not noted for the removal: %v", c.Annotations)
			}
		})
	}
}

func TestSnapshotThatIsNotReadyIsLookedAt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		can  []csi.ControllerServiceCapability_RPC_Type
		want []string
	}{
		"by GetSnapshot":    {[]csi.ControllerServiceCapability_RPC_Type{getSnapshot, listSnapshots}, []string{"CreateSnapshot", "GetSnapshot", "GetSnapshot"}},
		"by ListSnapshots":  {[]csi.ControllerServiceCapability_RPC_Type{listSnapshots}, []string{"CreateSnapshot", "ListSnapshots", "ListSnapshots"}},
		"by CreateSnapshot": {nil, []string{"CreateSnapshot", "CreateSnapshot", "CreateSnapshot"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, can(test.can...), "", class(nil), vsc())
			store := serve(bed, &backend{looks: 2})
			start(bed, quick)
			eventually(bed, "ready", isReady)
			settled(bed)
			if diff := cmp.Diff(test.want, bed.Driver.CallNames()); diff != "" {
				t.Errorf("calls: %s", diff)
			}
			// One write for the handle, one when it is ready, none between.
			if diff := cmp.Diff([]string{metaPatch, statusPatch, metaPatch, statusPatch}, writes(bed)); diff != "" {
				t.Errorf("writes: %s", diff)
			}
			if _, made, _ := store.state(); made != 1 {
				t.Errorf("%d snapshots made", made)
			}
		})
	}
}

func TestSnapshotThatWasThereBefore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		can  []csi.ControllerServiceCapability_RPC_Type
		want []string
	}{
		"is found by GetSnapshot":                            {[]csi.ControllerServiceCapability_RPC_Type{getSnapshot}, []string{"GetSnapshot"}},
		"is found by ListSnapshots":                          {[]csi.ControllerServiceCapability_RPC_Type{listSnapshots}, []string{"ListSnapshots"}},
		"is believed to be ready where the driver is silent": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, can(test.can...), "", class(nil), vsc(given("old-1")))
			serve(bed, &backend{})
			start(bed, quick)
			c := eventually(bed, "ready", isReady)
			settled(bed)
			if *c.Status.SnapshotHandle != "old-1" || *c.Status.CreationTime <= 0 {
				t.Errorf("status %+v", c.Status)
			}
			if diff := cmp.Diff(test.want, bed.Driver.CallNames()); diff != "" {
				t.Errorf("calls: %s", diff)
			}
			if diff := cmp.Diff([]string{statusPatch}, writes(bed)); diff != "" {
				t.Errorf("writes: %s", diff)
			}
		})
	}
}

func TestSnapshotThatIsNotFoundIsAnError(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(listSnapshots), "", class(nil), vsc(given("old-1")))
	bed.Driver.On("ListSnapshots", sidecartest.Reply(&csi.ListSnapshotsResponse{}))
	start(bed, snapshotter.Config{RetryMin: time.Hour, RetryMax: time.Hour})
	c := eventually(bed, "failed", hasFailed)
	if text := *c.Status.Error.Message; text != "Failed to check and update snapshot content: ListSnapshots old-1: the driver knows no such snapshot" || *c.Status.ReadyToUse {
		t.Errorf("status %q, %+v", text, c.Status)
	}
	if events := bed.Events(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning SnapshotContentCheckandUpdateFailed ") {
		t.Errorf("events %q", events)
	}
}

// What is not this driver's, and what is done, costs nothing.
func TestContentIsLeftAlone(t *testing.T) {
	t.Parallel()
	foreign := class(nil)
	foreign.Driver = "other.example.com"
	for name, objects := range map[string][]runtime.Object{
		"of another driver":              {class(nil), vsc(func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.Driver = "other.example.com" })},
		"of another driver's class":      {foreign, vsc()},
		"ready":                          {class(nil), vsc(taken("snap-1", true))},
		"of a group's member, no handle": {class(nil), vsc(annotated(memberOf, "group-1"))},
		"deleted while it is bound":      {class(nil), vsc(taken("snap-1", true), deleted, func(c *snapshotv1.VolumeSnapshotContent) { delete(c.Annotations, beingDeleted) })},
		"about to vanish": {class(nil), vsc(deleted, func(c *snapshotv1.VolumeSnapshotContent) {
			delete(c.Annotations, beingDeleted)
			c.Finalizers = []string{"example.com/other"}
		})},
		"without a source": {class(nil), vsc(func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.Source = snapshotv1.VolumeSnapshotContentSource{} })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, can(listSnapshots), "", objects...)
			start(bed, quick)
			settled(bed)
			if done, calls := writes(bed), bed.Driver.CallNames(); len(done)+len(calls) > 0 {
				t.Errorf("writes %q, calls %q", done, calls)
			}
		})
	}
}

func TestMemberOfAGroupIsLookedAtWithItsOwnSecret(t *testing.T) {
	t.Parallel()
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "own"}, Data: map[string][]byte{"key": []byte("own")}}
	bed := newBed(t, can(listSnapshots), "", secret, vsc(annotated(memberOf, "group-1"), annotated(secretName, "own"), annotated(secretSpace, "apps"),
		func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.VolumeSnapshotClassName = nil }))
	serve(bed, &backend{})
	start(bed, quick)
	settled(bed)
	patch(bed, `{"status":{"snapshotHandle":"snap-7","volumeGroupSnapshotHandle":"group-1","readyToUse":false}}`, "status")
	eventually(bed, "ready", isReady)
	calls := bed.Driver.Calls()
	if request, ok := calls[0].Request.(*csi.ListSnapshotsRequest); len(calls) != 1 || !ok || request.GetSecrets()["key"] != "own" {
		t.Errorf("calls %v", calls)
	}
	// It goes with its group, and not alone.
	release(bed)
	eventually(bed, "gone", isGone)
	if calls := bed.Driver.CallNames("DeleteSnapshot"); len(calls) > 0 {
		t.Errorf("calls %q", calls)
	}
}

func TestNewContentIsLeftToTheSnapshotControllerFirst(t *testing.T) {
	t.Parallel()
	now := time.Now()
	young := vsc(func(c *snapshotv1.VolumeSnapshotContent) {
		c.CreationTimestamp, c.Finalizers = metav1.NewTime(now), nil
	})
	bed := newBed(t, can(), "", class(nil), young)
	bed.Env.Clock = clocktesting.NewFakeClock(now) // it stays young however long the test takes
	serve(bed, &backend{})
	start(bed, quick)
	settled(bed)
	if calls := bed.Driver.CallNames(); len(calls) > 0 {
		t.Errorf("calls %q before the content is safe from vanishing", calls)
	}
	patch(bed, `{"metadata":{"finalizers":["`+finalizer+`"]}}`)
	eventually(bed, "ready", isReady)
}

func TestContentIsMadeSafeWhereNobodyElseDoes(t *testing.T) {
	t.Parallel()
	old := vsc(func(c *snapshotv1.VolumeSnapshotContent) { c.Finalizers = []string{"example.com/other"} })
	bed := newBed(t, can(), "", class(nil), old)
	serve(bed, &backend{})
	start(bed, quick)
	c := eventually(bed, "ready", isReady)
	if diff := cmp.Diff([]string{"example.com/other", finalizer}, c.Finalizers); diff != "" {
		t.Errorf("finalizers: %s", diff)
	}
	if done := writes(bed); len(done) != 3 {
		t.Errorf("writes %q", done)
	}
}

func TestNodeHandlesItsOwnContents(t *testing.T) {
	t.Parallel()
	labelled := func(name, node string) *snapshotv1.VolumeSnapshotContent {
		return vsc(func(c *snapshotv1.VolumeSnapshotContent) {
			c.Name, c.Labels = name, map[string]string{"snapshot.storage.kubernetes.io/managed-by": node}
		})
	}
	bed := newBed(t, can(), "v1", class(nil), labelled("snapcontent-1", "node-1"), labelled("snapcontent-2", "node-2"))
	serve(bed, &backend{})
	config := quick
	config.NodeName = "node-1"
	stop := start(bed, config)
	eventually(bed, "ready", isReady)
	settled(bed)
	if i := slices.IndexFunc(writes(bed), func(w string) bool { return strings.HasSuffix(w, "snapcontent-2") }); i >= 0 {
		t.Errorf("writes %q", writes(bed))
	}
	stop()
	start(bed, config) // it may run again
	settled(bed)
}

func TestSecretsAreInNoTextAnybodySees(t *testing.T) {
	t.Parallel()
	const password = "correct horse"
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "own"}, Data: map[string][]byte{"key": []byte(password)}}
	bed := newBed(t, can(), "", class(nil), secret, vsc(annotated(secretName, "own"), annotated(secretSpace, "apps")))
	bed.Driver.On("CreateSnapshot", sidecartest.Fail(codes.Internal, "cannot log in with "+password))
	start(bed, quick)
	c := eventually(bed, "failed", hasFailed)
	settledText := *c.Status.Error.Message + strings.Join(bed.Events(), "\n") + bed.Log()
	if strings.Contains(settledText, password) || !strings.Contains(settledText, "cannot log in with ***") {
		t.Errorf("texts: %s", settledText)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]snapshotter.Config{
		"Workers is -1: must be 1 or more":           {Workers: -1},
		"NameUIDLength is 33: must be 32 or less":    {NameUIDLength: 33},
		"RetryMax is 1ms: must be at least RetryMin": {RetryMax: time.Millisecond},
		"Timeout is -1ns: must be above 0":           {Timeout: -1},
	} {
		if _, err := snapshotter.New(nil, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
