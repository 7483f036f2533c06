package provisioner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/testing/protocmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// page is a journal under test, with its own time.
type page struct {
	*bed
	*journal
	clock *clocktesting.FakeClock
}

func newPage(t *testing.T, objects ...runtime.Object) *page {
	b := newBed(t, able(), objects...)
	clock := clocktesting.NewFakeClock(time.Now())
	return &page{bed: b, clock: clock, journal: &journal{
		leases: b.Kube.CoordinationV1().Leases("csi"), namespace: "csi", name: "test-intents", clock: clock,
		log: slog.New(slog.DiscardHandler), events: &reporter{recorder: b.Env.Events("")},
		up:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "up"}),
		entries: map[string]string{}, tried: map[string]bool{}, waiting: map[string][]chan error{}, wake: make(chan struct{}, 1), free: make(chan struct{}), removalDelay: defaultRemovalDelay}}
}

// go runs the journal until the test ends or what is given back is called.
func (p *page) begin() (stop func()) {
	ctx, cancel := context.WithCancel(p.Ctx)
	done := make(chan struct{})
	go func() { defer close(done); p.run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	p.Cleanup(stop)
	return stop
}

func anIntent(name string) *intent {
	return &intent{Namespace: "default", Claim: name, Volume: "pvc-" + name, Secret: &v1.SecretReference{Namespace: "n", Name: "s"},
		Request: request(func(r *csi.CreateVolumeRequest) { r.Name = "pvc-" + name })}
}

// commits are the writes of the lease.
func (p *page) commits() int {
	return p.requests("create", "leases") + p.requests("update", "leases")
}

func TestEntryIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	what := anIntent("data")
	what.Request.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: []*csi.Topology{{Segments: map[string]string{zone: "a"}}}}
	what.Request.Parameters = map[string]string{"tier": "1"}
	what.Request.MutableParameters = map[string]string{"iops": "9"}
	with := *what
	with.Request = request()
	with.Request = cloneRequest(what.Request)
	with.Request.Secrets = map[string]string{"password": "hidden"}
	entry, err := with.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeIntent(entry)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(what, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if len(with.Request.GetSecrets()) != 1 {
		t.Error("the request itself lost its secrets")
	}
	for _, bad := range []string{"", "x", "aGVsbG8="} {
		if _, err := decodeIntent(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func cloneRequest(r *csi.CreateVolumeRequest) *csi.CreateVolumeRequest {
	copied, _ := decodeOf(r)
	return copied
}

func decodeOf(r *csi.CreateVolumeRequest) (*csi.CreateVolumeRequest, error) {
	entry, err := (&intent{Volume: "x", Request: r}).encode()
	if err != nil {
		return nil, err
	}
	what, err := decodeIntent(entry)
	if err != nil {
		return nil, err
	}
	return what.Request, nil
}

func TestJournalWritesTogether(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	stop := p.begin()
	if err := p.add(p.Ctx, "first", anIntent("first")); err != nil { // at once
		t.Fatal(err)
	}
	if got := p.commits(); got != 1 {
		t.Fatalf("%d writes for the first entry, want 1", got)
	}
	var adding sync.WaitGroup
	for i := range 50 {
		adding.Go(func() {
			if err := p.add(p.Ctx, types.UID(fmt.Sprint("uid-", i)), anIntent(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	p.wait("all are waiting", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.waiting) == 50 && p.clock.HasWaiters()
	})
	if got := p.commits(); got != 1 {
		t.Errorf("%d writes before the interval was over", got)
	}
	p.clock.Step(commitInterval)
	adding.Wait()
	if got, entries := p.commits(), len(p.bed.entries()); got != 2 || entries != 51 {
		t.Errorf("%d writes with %d entries, want 2 with 51", got, entries)
	}
	for i := range 50 {
		p.remove(types.UID(fmt.Sprint("uid-", i)))
	}
	p.wait("removal waits", p.clock.HasWaiters)
	if got := p.commits(); got != 2 {
		t.Errorf("%d writes: a removal was written at once", got)
	}
	p.clock.Step(defaultRemovalDelay)
	p.wait("removed", func() bool { return len(p.bed.entries()) == 1 })
	if got := p.commits(); got != 3 {
		t.Errorf("%d writes, want 3", got)
	}
	p.remove("first")
	stop()
	if entries := p.bed.entries(); len(entries) != 0 || p.commits() != 4 {
		t.Errorf("at the end %d entries, %d writes", len(entries), p.commits())
	}
}

func TestEntryThatIsDurableIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.begin()
	for range 3 {
		if err := p.add(p.Ctx, "a", anIntent("a")); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.commits(); got != 1 {
		t.Errorf("%d writes, want 1", got)
	}
}

func TestJournalIsReadAtTheStart(t *testing.T) {
	t.Parallel()
	entry, err := anIntent("data").encode()
	if err != nil {
		t.Fatal(err)
	}
	p := newPage(t, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "test-intents", Namespace: "csi",
		Annotations: map[string]string{entryPrefix + "uid": entry, entryPrefix + "bad": "?", "other": "kept"}}})
	found, err := p.load(p.Ctx)
	if err != nil || len(found) != 1 || found["uid"].Claim != "data" {
		t.Fatalf("found %v, %v", found, err)
	}
	stop := p.begin()
	p.remove("uid")
	stop()
	lease, err := p.leases.Get(p.Ctx, "test-intents", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{entryPrefix + "bad": "?", "other": "kept"}; !cmp.Equal(lease.Annotations, want) {
		t.Errorf("annotations %v, want %v", lease.Annotations, want)
	}
}

func TestJournalChangedByAnotherProcess(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.begin()
	if err := p.add(p.Ctx, "a", anIntent("a")); err != nil {
		t.Fatal(err)
	}
	lease, err := p.leases.Get(p.Ctx, "test-intents", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := anIntent("theirs").encode()
	if err != nil {
		t.Fatal(err)
	}
	lease.Annotations[entryPrefix+"theirs"] = theirs
	if _, err := p.leases.Update(p.Ctx, lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.clock.Step(commitInterval)
	if err := p.add(p.Ctx, "b", anIntent("b")); err != nil {
		t.Fatal(err)
	}
	if entries := p.bed.entries(); entries["a"] == nil || entries["b"] == nil || entries["theirs"] == nil {
		t.Errorf("entries %v, want all three", entries)
	}
}

// TestWriteWhoseAnswerIsLost leaves an entry that nobody wants: it is not taken
// for another process' later.
func TestWriteWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.begin()
	if err := p.add(p.Ctx, "a", anIntent("a")); err != nil {
		t.Fatal(err)
	}
	lose := true
	p.Kube.PrependReactor("update", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !lose {
			return false, nil, nil
		}
		lose = false
		lease := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease).DeepCopy()
		lease.ResourceVersion = "4711"
		if err := p.Kube.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), lease, "csi"); err != nil {
			t.Error(err)
		}
		return true, nil, apierrors.NewTimeoutError("lost", 1)
	})
	p.clock.Step(commitInterval)
	if err := p.add(p.Ctx, "b", anIntent("b")); err == nil {
		t.Error("an entry counts as durable whose write was not answered")
	}
	if entries := p.bed.entries(); entries["b"] == nil {
		t.Fatal("the test does not do what it says")
	}
	p.clock.Step(commitInterval)
	if err := p.add(p.Ctx, "c", anIntent("c")); err != nil {
		t.Fatal(err)
	}
	if entries := p.bed.entries(); entries["a"] == nil || entries["b"] != nil || entries["c"] == nil {
		t.Errorf("entries %v, want a and c", entries)
	}
}

func TestJournalThatIsDeletedIsMadeAgain(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.begin()
	if err := p.add(p.Ctx, "a", anIntent("a")); err != nil {
		t.Fatal(err)
	}
	if err := p.leases.Delete(p.Ctx, "test-intents", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.clock.Step(commitInterval)
	if err := p.add(p.Ctx, "b", anIntent("b")); err != nil {
		t.Fatal(err)
	}
	if entries := p.bed.entries(); entries["a"] == nil || entries["b"] == nil {
		t.Errorf("entries %v, want both", entries)
	}
}

func TestJournalThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	refuse := func(p *page, err error) {
		p.Kube.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	}
	t.Run("now", func(t *testing.T) {
		t.Parallel()
		p := newPage(t)
		refuse(p, apierrors.NewServiceUnavailable("paused"))
		p.begin()
		if err := p.add(p.Ctx, "a", anIntent("a")); err == nil {
			t.Error("an entry that was not written counts as durable")
		}
		if len(p.journal.entries) != 0 || p.bytes != 0 {
			t.Errorf("%d entries of %d bytes are left", len(p.journal.entries), p.bytes)
		}
	})
	t.Run("ever", func(t *testing.T) {
		t.Parallel()
		p := newPage(t)
		refuse(p, apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "test-intents", errors.New("role")))
		p.begin()
		for _, uid := range []types.UID{"a", "b", "c"} {
			if err := p.add(p.Ctx, uid, anIntent(string(uid))); err != nil {
				t.Errorf("volumes are not made without a journal: %v", err)
			}
		}
		if got := len(p.Events()); got != 1 || !p.saw("Warning "+reasonNoJournal) {
			t.Errorf("events %q, want one", p.Events())
		}
	})
}

func TestFullJournalIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	p.begin()
	large := func(name string) *intent {
		what := anIntent(name)
		var text strings.Builder
		for i := range 4000 { // hard to compress
			fmt.Fprint(&text, i*i*7919%10007, ",")
		}
		what.Request.Parameters = map[string]string{"text": text.String()}
		return what
	}
	entry, err := large("x").encode()
	if err != nil {
		t.Fatal(err)
	}
	room := journalMaxBytes / (len(entry) + len(entryPrefix) + 5)
	for i := range room {
		p.clock.Step(commitInterval)
		if err := p.add(p.Ctx, types.UID(fmt.Sprintf("uid%02d", i)), large(fmt.Sprintf("%02d", i))); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(p.Ctx)
	cancel()
	if err := p.add(ctx, "more1", large("xx")); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("%v, want that it is full", err)
	}
	added := make(chan error)
	go func() { added <- p.add(p.Ctx, "more1", large("xx")) }()
	p.remove("uid00")
	p.wait("written", func() bool { p.clock.Step(commitInterval); return p.bed.entries()["more1"] != nil })
	if err := <-added; err != nil {
		t.Error(err)
	}
}

func TestNameOfTheJournal(t *testing.T) {
	t.Parallel()
	for _, test := range [][3]string{
		{"pd.csi.storage.gke.io", "", "pd.csi.storage.gke.io-intents"},
		{"example.com/Driver", "", "example.com-driver-intents"},
		{sidecartest.DriverName, "n1", "driver.example.com-n1-intents"},
	} {
		if got := journalName(test[0], test[1]); got != test[2] {
			t.Errorf("%s, want %s", got, test[2])
		}
	}
}
