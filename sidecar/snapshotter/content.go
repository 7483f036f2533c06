package snapshotter

import (
	"maps"
	"reflect"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// content is what the two kinds of contents have in common. It is never
// changed, since it shares its maps with the caches.
type content struct {
	words *words
	meta  metav1.ObjectMeta

	driver       string
	className    string
	deletePolicy bool
	ref          v1.ObjectReference
	// volumes are the handles a snapshot is to be taken of; none when the
	// snapshot was there before its content, and given is its handle.
	volumes []string
	given   string
	// givenMembers are the handles of the members of a group that was there.
	givenMembers []string

	status status
}

// status is what a content's object says of its snapshot.
type status struct {
	handle, groupHandle      string
	ready, readySet          bool
	timeKnown, restorableSet bool
	failure                  string
	members                  []member
}

// member is a snapshot of a group. Size and time are nil when they are unknown
// and ready is when the API server's version has no place for it.
type member struct {
	Volume    string `json:"volumeHandle,omitempty"`
	Handle    string `json:"snapshotHandle,omitempty"`
	TimeNs    *int64 `json:"creationTime,omitempty"`
	Ready     *bool  `json:"readyToUse,omitempty"`
	SizeBytes *int64 `json:"restoreSize,omitempty"`
}

// answer is what the driver says of a snapshot.
type answer struct {
	handle, groupHandle string
	ready               bool
	// time is zero and sizeBytes is 0 when the driver does not know.
	time      time.Time
	sizeBytes int64
	members   []member
}

func (c *content) has(annotation string) bool {
	_, ok := c.meta.Annotations[annotation]
	return ok
}

// marked reports that a call to take the snapshot may be under way.
func (c *content) marked() bool { return c.has(c.words.marker) }

// isMember reports that the snapshot belongs to a group, which it is taken and
// removed with.
func (c *content) isMember() bool { return c.has(annMember) || c.status.groupHandle != "" }

// dynamic reports that the snapshot is to be taken for the content.
func (c *content) dynamic() bool { return len(c.volumes) > 0 && !(c.has(annMember)) }

func (c *content) deleting() bool { return c.meta.DeletionTimestamp != nil }

func (c *content) bound() bool { return c.ref.UID != "" }

func (c *content) protected() bool { return slices.Contains(c.meta.Finalizers, c.words.finalizer) }

// released reports that the content goes and nothing holds it but what this
// package has to do: the deletion of a bound content waits for that of its
// snapshot object, as the snapshot-controller says with an annotation.
func (c *content) released() bool {
	return c.deleting() && (c.has(c.words.beingDeleted) || c.given != "" && !c.bound())
}

// outcomeUnknown reports that a snapshot may be at the back-end that the
// content does not name.
func (c *content) outcomeUnknown() bool {
	return c.marked() && c.dynamic() && c.status.handle == ""
}

// handle is the snapshot that goes with the content. One that was there
// before counts from the beginning, whether or not anybody had the time to look
// at it, until this package let the content go.
func (c *content) handle() string {
	if c.status.handle == "" && c.protected() {
		return c.given
	}
	return c.status.handle
}

// otherwise reports that a change of the object may call for work. What this
// package writes itself does not: the handler that wrote it goes on with it,
// and a failure that is written must not bring its content back before its
// time.
func (c *content) otherwise(old *content) bool {
	if c.meta.ResourceVersion == old.meta.ResourceVersion {
		return true // all are looked at again
	}
	was, is := old.essence(), c.essence()
	return !reflect.DeepEqual(&was, &is)
}

// essence is a content without what this package writes.
func (c *content) essence() content {
	annotations := maps.Clone(c.meta.Annotations)
	delete(annotations, c.words.marker)
	delete(annotations, c.words.secretName)
	delete(annotations, c.words.secretNamespace)
	if len(annotations) == 0 {
		annotations = nil
	}
	essence := *c
	essence.meta = metav1.ObjectMeta{UID: c.meta.UID, Annotations: annotations, DeletionTimestamp: c.meta.DeletionTimestamp}
	if c.protected() {
		essence.meta.Finalizers = []string{c.words.finalizer}
	}
	essence.status = status{}
	if c.isMember() {
		// The snapshot-controller writes the status of a group's members.
		essence.status = status{handle: c.status.handle, groupHandle: c.status.groupHandle, ready: c.status.ready}
	}
	return essence
}
