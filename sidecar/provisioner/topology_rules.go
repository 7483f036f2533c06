package provisioner

import (
	"fmt"
	"hash/fnv"
	"io"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	topo "github.com/csi-windows/csi-windows/sidecar/topology"
)

// allowedSegmentsMax bounds what a class can ask for: each key of a term
// multiplies the segments by the number of its values.
const allowedSegmentsMax = 10_000

// allowedSegments are those a class names, sorted, each once; none if it
// allows all.
func allowedSegments(class *storagev1.StorageClass) ([]topo.Segment, error) {
	var segments []topo.Segment
	for _, term := range class.AllowedTopologies {
		values, count := term.MatchLabelExpressions, 1
		for _, expression := range values {
			if count *= len(expression.Values); count+len(segments) > allowedSegmentsMax {
				return nil, fmt.Errorf("storage class %s: allowedTopologies name more than %d segments", class.Name, allowedSegmentsMax)
			}
		}
		if len(values) == 0 {
			continue // by the API: matches nothing
		}
		segments = append(segments, combine(values)...)
	}
	if len(segments) == 0 && len(class.AllowedTopologies) > 0 {
		return nil, fmt.Errorf("storage class %s: allowedTopologies allow no place at all", class.Name)
	}
	return topo.Unique(segments), nil
}

// combine gives every combination of one value a key.
func combine(expressions []v1.TopologySelectorLabelRequirement) []topo.Segment {
	combined := []map[string]string{{}}
	for _, expression := range expressions {
		var longer []map[string]string
		for _, values := range combined {
			for _, value := range expression.Values {
				one := map[string]string{expression.Key: value}
				for k, v := range values {
					one[k] = v
				}
				longer = append(longer, one)
			}
		}
		combined = longer
	}
	segments := make([]topo.Segment, len(combined))
	for i, values := range combined {
		segments[i] = topo.NewSegment(values)
	}
	return segments
}

// spread chooses the segment, of count, to try first for a claim that no node
// is selected for. The claims of one StatefulSet go to one segment after the
// other; claims of one pod of it, "data-web-3" and "log-web-3", go to the same
// one, or the pod could not run. So the number at the end of a name counts
// on from a place that the part before it decides. Upstream does the same with the
// same hash, so that a set which grows after a change of provisioner stays spread.
func spread(claim string, count int) int {
	set, number := claim, uint32(0)
	if dash := strings.LastIndexByte(claim, '-'); dash >= 0 {
		if n, err := strconv.ParseUint(claim[dash+1:], 10, 32); err == nil {
			number = uint32(n)
			set = claim[:dash]
			set = set[strings.LastIndexByte(set, '-')+1:]
		}
	}
	hash := fnv.New32()
	_, _ = io.WriteString(hash, set) // a hash takes everything
	return int((hash.Sum32() + number) % uint32(count))
}

// volumeNodeAffinity says which nodes a volume can be used on: those in any of
// the segments the driver named; nil for all.
func volumeNodeAffinity(segments []*csi.Topology) *v1.VolumeNodeAffinity {
	places := make([]topo.Segment, 0, len(segments))
	for _, segment := range segments {
		if len(segment.GetSegments()) == 0 {
			return nil // any place is among them
		}
		places = append(places, topo.NewSegment(segment.GetSegments()))
	}
	if len(places) == 0 {
		return nil
	}
	// In the driver's order, as upstream has it, but each once.
	var terms []v1.NodeSelectorTerm
	seen := map[string]bool{}
	for _, place := range places {
		text := place.String()
		if seen[text] {
			continue
		}
		seen[text] = true
		var term v1.NodeSelectorTerm
		for _, pair := range place {
			term.MatchExpressions = append(term.MatchExpressions, v1.NodeSelectorRequirement{
				Key: pair.Key, Operator: v1.NodeSelectorOpIn, Values: []string{pair.Value},
			})
		}
		terms = append(terms, term)
	}
	return &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: terms}}
}
