package provisioner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	leases "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
)

const (
	// entryPrefix begins the annotation of an entry; the claim's uid follows.
	entryPrefix = "intent.csi-windows.io/"
	// journalMaxBytes is how large the entries may be together. The API
	// server takes 256 KiB of annotations.
	journalMaxBytes = 240 << 10
	// commitInterval is the least time between two writes of new entries.
	// Whoever comes meanwhile shares the next one.
	commitInterval = 250 * time.Millisecond
	// defaultRemovalDelay is how long a removal waits for an entry to ride along with.
	defaultRemovalDelay = 5 * time.Second
	// lastCommitTimeout bounds the write at the end of a run.
	lastCommitTimeout = 2 * time.Second
)

// journal is the write-ahead list of volumes in the making. It is kept in the
// annotations of a Lease, a kind of object that the usual role of a
// provisioner may write, and that no other component reads.
//
// An entry is durable before the driver is asked. It is removed, at leisure,
// when the volume's object is saved or no volume came of it.
type journal struct {
	leases    leases.LeaseInterface
	name      string
	clock     clock.Clock
	log       *slog.Logger
	events    *reporter
	namespace string
	up        prometheus.Gauge
	wake      chan struct{}
	// removalDelay is defaultRemovalDelay but in tests.
	removalDelay time.Duration

	mu      sync.Mutex
	off     bool
	entries map[string]string // what is to be in the object, by annotation
	bytes   int
	stored  *coordinationv1.Lease // the object as it was last seen; nil: there is none
	tried   map[string]bool       // entries that a failed write may have left in the object
	waiting map[string][]chan error
	changed time.Time // the last removal that is not written yet
	written time.Time
	free    chan struct{} // closed, and made anew, when an entry was removed
}

func (r *run) newJournal(up prometheus.Gauge) *journal {
	node := ""
	if r.config.NodeDeployment != nil {
		node = r.config.NodeDeployment.NodeName
	}
	return &journal{
		leases: r.env.Kube.CoordinationV1().Leases(r.env.Namespace), namespace: r.env.Namespace,
		name: journalName(r.driver, node), clock: r.env.Clock, log: r.log, events: r.events, up: up,
		off: r.config.NoJournal, entries: map[string]string{}, tried: map[string]bool{}, waiting: map[string][]chan error{},
		wake: make(chan struct{}, 1), free: make(chan struct{}), removalDelay: cmp.Or(r.config.removalDelay, defaultRemovalDelay),
	}
}

// load reads what an earlier leader left. An entry that cannot be read stays
// where it is and is reported.
func (j *journal) load(ctx context.Context) (map[types.UID]*intent, error) {
	if j.off {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stored, err := j.leases.Get(ctx, j.name, metav1.GetOptions{})
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case apierrors.IsNotFound(err):
		j.up.Set(1)
		return nil, nil
	case apierrors.IsForbidden(err):
		j.turnOff(err)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the journal %s/%s: %w", j.namespace, j.name, err)
	}
	j.up.Set(1)
	j.stored = stored
	found := map[types.UID]*intent{}
	for key, entry := range stored.Annotations {
		uid, ok := strings.CutPrefix(key, entryPrefix)
		if !ok {
			continue
		}
		j.entries[key] = entry
		j.bytes += len(key) + len(entry)
		what, err := decodeIntent(entry)
		if err != nil {
			j.log.ErrorContext(ctx, "Journal has an entry that cannot be read; a volume of that claim may be left at the back-end",
				"lease", j.namespace+"/"+j.name, "claimUID", uid, "error", err)
			continue
		}
		found[types.UID(uid)] = what
	}
	return found, nil
}

// turnOff goes on without a journal, and says so once.
func (j *journal) turnOff(cause error) {
	j.off = true
	j.up.Set(0)
	text := "A volume is lost if the provisioner is killed while it is made and its claim is deleted before the next start: " +
		"the journal cannot be written; let the provisioner get, create and update leases in its namespace"
	j.log.Warn(text, "lease", j.namespace+"/"+j.name, "error", cause)
	j.events.warn(&v1.ObjectReference{Kind: "Lease", APIVersion: "coordination.k8s.io/v1", Namespace: j.namespace, Name: j.name},
		reasonNoJournal, text)
}

// add returns when the intent is durable, or cannot be made so. It does not wait
// long for room: the entries may be those of volumes that wait for the worker
// that waits here.
func (j *journal) add(ctx context.Context, uid types.UID, what *intent) error {
	entry, err := what.encode()
	if err != nil {
		return err
	}
	key := entryPrefix + string(uid)
	began := j.clock.Now()
	for {
		durable, full := j.tryAdd(key, entry)
		switch {
		case full != nil:
			if err := j.waitForRoom(ctx, full, began); err != nil {
				return fmt.Errorf("the journal is full: %w", err)
			}
			continue
		case durable == nil:
			return nil
		}
		select {
		case err := <-durable:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tryAdd puts an entry among those to be written, and gives where to wait for
// that: nowhere, for the write, or for room.
func (j *journal) tryAdd(key, entry string) (durable chan error, full chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.entries[key]
	if j.off || (before == entry && j.stored != nil && j.stored.Annotations[key] == entry) {
		return nil, nil
	}
	size := j.bytes + len(entry) - len(before)
	if before == "" {
		size += len(key)
	}
	if size > journalMaxBytes {
		if len(entry) > journalMaxBytes/4 {
			j.log.Warn("Volume is made without a journal entry, which would be too large", "key", key, "sizeBytes", len(entry))
			return nil, nil
		}
		return nil, j.free
	}
	j.entries[key], j.bytes = entry, size
	durable = make(chan error, 1)
	j.waiting[key] = append(j.waiting[key], durable)
	j.signal()
	return durable, nil
}

// remove takes an entry out. That is written some time later.
func (j *journal) remove(uid types.UID) {
	key := entryPrefix + string(uid)
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, ok := j.entries[key]; !ok {
		return
	}
	j.drop(key)
	j.changed = j.clock.Now()
	j.signal()
}

func (j *journal) drop(key string) {
	j.bytes -= len(key) + len(j.entries[key])
	delete(j.entries, key)
	close(j.free)
	j.free = make(chan struct{})
}

func (j *journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// run writes until ctx ends. A last write then leaves no more than must be.
func (j *journal) run(ctx context.Context) {
	for ctx.Err() == nil {
		delay, due := j.due()
		if due && delay <= 0 {
			j.commit(ctx)
			continue
		}
		var timer clock.Timer
		var fired <-chan time.Time
		if due {
			timer = j.clock.NewTimer(delay)
			fired = timer.C()
		}
		select {
		case <-ctx.Done():
		case <-j.wake:
		case <-fired:
		}
		if timer != nil {
			timer.Stop()
		}
	}
	if _, due := j.due(); due {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCommitTimeout)
		defer cancel()
		j.commit(last)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answer(j.waiting, errors.New("the provisioner ends"))
	j.waiting = map[string][]chan error{}
}

// due says whether something is to be written, and after what time.
func (j *journal) due() (time.Duration, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.clock.Now()
	switch {
	case j.off:
		return 0, false
	case len(j.waiting) > 0:
		return commitInterval - now.Sub(j.written), true
	case !j.changed.IsZero():
		return j.removalDelay - now.Sub(j.changed), true
	}
	return 0, false
}

// commit writes the entries as they are, and answers those who wait for it.
func (j *journal) commit(ctx context.Context) {
	j.mu.Lock()
	waiting := j.waiting
	j.waiting, j.changed = map[string][]chan error{}, time.Time{}
	object := j.object()
	j.mu.Unlock()
	stored, err := j.write(ctx, object)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.written = j.clock.Now()
	switch {
	case err == nil:
		j.stored = stored
		clear(j.tried)
		j.up.Set(1)
	case apierrors.IsForbidden(err):
		j.turnOff(err)
		err = nil
	default:
		j.up.Set(0)
		err = fmt.Errorf("write the journal %s/%s: %w", j.namespace, j.name, err)
		for key := range waiting {
			j.tried[key] = true
			// It may be there all the same. Who wanted it asks the driver for
			// nothing; the next write makes it go.
			if _, ok := j.entries[key]; ok && len(j.waiting[key]) == 0 && !j.had(key) {
				j.drop(key)
			}
		}
		j.changed = j.written // try again, after a while
	}
	j.answer(waiting, err)
}

// had reports whether an entry was written before the last try.
func (j *journal) had(key string) bool {
	return j.stored != nil && j.stored.Annotations[key] != ""
}

func (j *journal) answer(waiting map[string][]chan error, err error) {
	for _, waiters := range waiting {
		for _, waiter := range waiters {
			waiter <- err
		}
	}
}

// object is the object with the entries as they are to be.
func (j *journal) object() *coordinationv1.Lease {
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: j.name, Namespace: j.namespace}}
	if j.stored != nil {
		object = j.stored.DeepCopy()
	}
	maps.DeleteFunc(object.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, entryPrefix) })
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	maps.Copy(object.Annotations, j.entries)
	return object
}

// write makes or updates the object. Somebody else may have changed it: it is
// read then, and an entry of theirs that this run has never seen is kept.
func (j *journal) write(ctx context.Context, object *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for range 3 {
		stored, err := j.put(ctx, object)
		if err == nil || (!apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err)) {
			return stored, err
		}
		current, err := j.leases.Get(ctx, j.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			object.ResourceVersion, object.UID = "", ""
			continue
		}
		if err != nil {
			return nil, err
		}
		j.mu.Lock()
		j.adopt(current, object)
		j.mu.Unlock()
		current = current.DeepCopy()
		current.Annotations = object.Annotations
		object = current
	}
	return nil, errors.New("somebody else writes it all the time")
}

func (j *journal) put(ctx context.Context, object *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if object.ResourceVersion == "" {
		return j.leases.Create(ctx, object, metav1.CreateOptions{})
	}
	return j.leases.Update(ctx, object, metav1.UpdateOptions{})
}

// adopt keeps foreign entries: they are read at the next start.
func (j *journal) adopt(current, object *coordinationv1.Lease) {
	for key, entry := range current.Annotations {
		if _, ours := j.entries[key]; ours || !strings.HasPrefix(key, entryPrefix) || j.had(key) || j.tried[key] {
			continue
		}
		j.log.Warn("Journal has an entry that another process wrote; it is kept", "lease", j.namespace+"/"+j.name, "key", key)
		j.entries[key] = entry
		j.bytes += len(key) + len(entry)
		object.Annotations[key] = entry
	}
}
