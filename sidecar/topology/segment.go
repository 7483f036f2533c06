package topology

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Pair is one topology key with its value: "topology.kubernetes.io/zone" and
// "a".
type Pair struct{ Key, Value string }

// Segment is a place that storage can be reached from: the values of some
// topology keys, sorted by key. All nodes with these labels are in it. The
// empty segment is the whole cluster.
type Segment []Pair

// NewSegment makes a segment of keys and their values.
func NewSegment(values map[string]string) Segment {
	segment := make(Segment, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		segment = append(segment, Pair{key, values[key]})
	}
	return segment
}

// Map gives the values by key.
func (s Segment) Map() map[string]string {
	values := make(map[string]string, len(s))
	for _, pair := range s {
		values[pair.Key] = pair.Value
	}
	return values
}

// String is the segment as "key=value,key=value". Two segments are the same
// when their strings are.
func (s Segment) String() string {
	var text strings.Builder
	for i, pair := range s {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(pair.Key)
		text.WriteByte('=')
		text.WriteString(pair.Value)
	}
	return text.String()
}

// Value is the segment's value of a key.
func (s Segment) Value(key string) (string, bool) {
	for _, pair := range s {
		if pair.Key == key {
			return pair.Value, true
		}
	}
	return "", false
}

// Contains reports whether all of the smaller place is in this one: a segment
// with fewer keys is larger.
func (s Segment) Contains(smaller Segment) bool {
	for _, pair := range s {
		if value, ok := smaller.Value(pair.Key); !ok || value != pair.Value {
			return false
		}
	}
	return true
}

// Overlaps reports whether a node can be in both segments: no key has a
// different value in them.
func (s Segment) Overlaps(other Segment) bool {
	for _, pair := range s {
		if value, ok := other.Value(pair.Key); ok && value != pair.Value {
			return false
		}
	}
	return true
}

// CSI is the segment in a driver's words.
func (s Segment) CSI() *csi.Topology { return &csi.Topology{Segments: s.Map()} }

// Compare orders segments pair by pair, by key and then by value.
func Compare(a, b Segment) int {
	return slices.CompareFunc(a, b, func(x, y Pair) int {
		return cmp.Or(strings.Compare(x.Key, y.Key), strings.Compare(x.Value, y.Value))
	})
}

// Unique sorts segments in place and drops those that are there twice.
func Unique(segments []Segment) []Segment {
	slices.SortFunc(segments, Compare)
	return slices.CompactFunc(segments, func(a, b Segment) bool { return slices.Equal(a, b) })
}
