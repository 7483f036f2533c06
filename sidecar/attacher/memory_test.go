package attacher

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What a status was decided on is the past once it is written, and only that: what
// others write meanwhile is looked at, and so is an object made anew.
func TestVersionsThatAreThePast(t *testing.T) {
	t.Parallel()
	va := func(uid, version string) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: types.UID(uid), ResourceVersion: version}}
	}
	m := newMemory()
	m.outdate(va("u", "5"), "3", "4")
	for _, test := range []struct {
		uid, version string
		want         bool
	}{{"u", "3", true}, {"u", "4", true}, {"u", "5", false}, {"u", "6", false}, {"other", "3", false}} {
		if got := m.isPast(va(test.uid, test.version)); got != test.want {
			t.Errorf("version %s of %s is the past: %v", test.version, test.uid, got)
		}
	}
	m.outdate(va("u", "7"), "7") // changed nothing: the cache has it already
	if m.isPast(va("u", "7")) {
		t.Error("the version of now is taken for the past")
	}
	m.forget("a", "u")
	if len(m.past) > 0 {
		t.Errorf("%d versions are kept of an attachment that is gone", len(m.past))
	}
}
