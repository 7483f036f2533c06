package provisioner

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// Reasons of the events, as upstream's provisioner gives them.
const (
	reasonProvisioning = "Provisioning"
	reasonSucceeded    = "ProvisioningSucceeded"
	reasonFailed       = "ProvisioningFailed"
	reasonNoJournal    = "ProvisioningJournalUnavailable"
	reasonPostponed    = "VolumeDelete" // the library's: the volume is in use
)

// slow is how long a volume may take before that is worth an event.
const slow = 2 * time.Second

// reporter sends events. One that repeats itself is counted in the event that
// is there, by the recorder.
type reporter struct {
	recorder record.EventRecorder
	mu       sync.RWMutex
	over     bool
}

func (e *reporter) send(on *v1.ObjectReference, kind, reason, message string) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if !e.over && on != nil {
		e.recorder.Event(on.DeepCopy(), kind, reason, message)
	}
}

func (e *reporter) normal(on *v1.ObjectReference, reason, message string) {
	e.send(on, v1.EventTypeNormal, reason, message)
}

func (e *reporter) warn(on *v1.ObjectReference, reason, message string) {
	e.send(on, v1.EventTypeWarning, reason, message)
}

// end lets nothing through any more: the library's own goroutines may outlive
// a run for a moment.
func (e *reporter) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
}

// eventClient is where the library's events arrive. Beginnings and successes
// are left out: they are sent, where they are worth a request, from the places
// that know how long it took and whether it failed before. That a volume is
// still attached when its deletion is first looked at is usual, too.
type eventClient struct {
	corev1.EventInterface
	r *run
}

func (c *eventClient) pass(event *v1.Event) (*v1.Event, error) {
	switch event.Reason {
	case reasonProvisioning, reasonSucceeded:
		return event, nil
	case reasonPostponed:
		if c.r.deletions.postponed(event.InvolvedObject.UID) < 2 {
			return event, nil
		}
	}
	c.r.events.send(&event.InvolvedObject, event.Type, event.Reason, event.Message)
	return event, nil
}

// CreateWithEventNamespace implements corev1.EventExpansion.
func (c *eventClient) CreateWithEventNamespace(event *v1.Event) (*v1.Event, error) {
	return c.pass(event)
}

// UpdateWithEventNamespace implements corev1.EventExpansion.
func (c *eventClient) UpdateWithEventNamespace(event *v1.Event) (*v1.Event, error) {
	return c.pass(event)
}

// PatchWithEventNamespace implements corev1.EventExpansion.
func (c *eventClient) PatchWithEventNamespace(event *v1.Event, _ []byte) (*v1.Event, error) {
	return c.pass(event)
}

// CreateWithEventNamespaceWithContext implements corev1.EventExpansion.
func (c *eventClient) CreateWithEventNamespaceWithContext(_ context.Context, event *v1.Event) (*v1.Event, error) {
	return c.pass(event)
}

// UpdateWithEventNamespaceWithContext implements corev1.EventExpansion.
func (c *eventClient) UpdateWithEventNamespaceWithContext(_ context.Context, event *v1.Event) (*v1.Event, error) {
	return c.pass(event)
}

// PatchWithEventNamespaceWithContext implements corev1.EventExpansion.
func (c *eventClient) PatchWithEventNamespaceWithContext(_ context.Context, event *v1.Event, _ []byte) (*v1.Event, error) {
	return c.pass(event)
}
