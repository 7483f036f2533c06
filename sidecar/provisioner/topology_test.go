package provisioner

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
	topo "github.com/csi-windows/csi-windows/sidecar/topology"
)

func withTopology() csiclient.Info {
	return csiclient.Info{Plugin: map[csi.PluginCapability_Service_Type]bool{
		csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS: true,
	}}
}

// topologyNode makes a node of "name key=value … | key …": its labels and the keys
// that the driver registered. Without "|" the driver is not on it, with "-"
// before the name the node is gone.
func topologyNode(line string) []runtime.Object {
	labels, keys, hasDriver := strings.Cut(line, "|")
	words := strings.Fields(labels)
	name := strings.TrimPrefix(words[0], "-")
	var objects []runtime.Object
	if name == words[0] {
		objects = append(objects, sidecartest.Node(name, func(node *v1.Node) {
			maps.Copy(node.Labels, topologySegment(strings.Join(words[1:], ",")))
		}))
	}
	if hasDriver {
		objects = append(objects, sidecartest.CSINode(name, strings.Fields(keys)...))
	}
	return objects
}

func topologySegment(text string) map[string]string {
	values := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			values[key] = value
		}
	}
	return values
}

// allowedTerms makes allowedTopologies of "key=v1/v2,key=v3", a term each.
func allowedTerms(terms ...string) []v1.TopologySelectorTerm {
	var all []v1.TopologySelectorTerm
	for _, text := range terms {
		var term v1.TopologySelectorTerm
		values := topologySegment(text)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			term.MatchLabelExpressions = append(term.MatchLabelExpressions,
				v1.TopologySelectorLabelRequirement{Key: key, Values: strings.Split(values[key], "/")})
		}
		all = append(all, term)
	}
	return all
}

func topologyText(segments []*csi.Topology) string {
	var texts []string
	for _, one := range segments {
		texts = append(texts, topo.NewSegment(one.GetSegments()).String())
	}
	return strings.Join(texts, " ")
}

func TestRequirementOfAVolume(t *testing.T) {
	three := []string{"n1 zone=a | zone", "n2 zone=b | zone", "n3 zone=c | zone", "n4 zone=a | zone"}
	racks := []string{"n1 zone=a rack=1 | zone rack", "n2 zone=a rack=2 | zone rack", "n3 zone=b rack=1 | zone rack"}
	mixed := append(slices.Clone(racks), "m1 zone=c | zone", "m2 zone=a | zone")
	// FNV-1 of "mysql" is 4183828397, which leaves 2 of 3 and 2 of 5.
	cases := []struct {
		name             string
		nodes, allowed   []string
		claim, node      string
		strict, noImmed  bool
		requisite, first string // first: the whole of Preferred
		err              string
		unusable         bool // errNodeWithoutDriver
	}{
		{name: "late: all segments, that of the node first", nodes: three, node: "n2",
			requisite: "zone=a zone=b zone=c", first: "zone=b zone=c zone=a"},
		{name: "late: last segment", nodes: three, node: "n3", requisite: "zone=a zone=b zone=c", first: "zone=c zone=a zone=b"},
		{name: "late, strict: the node's segment only", nodes: three, node: "n2", strict: true, requisite: "zone=b", first: "zone=b"},
		{name: "late, allowed: allowed segments, that of the node first", nodes: three, allowed: []string{"zone=c/b"}, node: "n3",
			requisite: "zone=b zone=c", first: "zone=c zone=b"},
		{name: "late, allowed, strict", nodes: three, allowed: []string{"zone=c/b"}, node: "n3", strict: true,
			requisite: "zone=c", first: "zone=c"},
		{name: "late, allowed by fewer keys than the driver's: the class' segment holds the node", nodes: racks,
			allowed: []string{"zone=a", "zone=b"}, node: "n3", requisite: "zone=a zone=b", first: "zone=b zone=a"},
		{name: "late: node outside of what the class allows", nodes: three, allowed: []string{"zone=a"}, node: "n2",
			err: "node n2 (zone=b) is outside of the topologies that storage class fast allows", unusable: true},
		{name: "late, strict: node outside of what the class allows", nodes: three, allowed: []string{"zone=a"}, node: "n2", strict: true,
			err: "outside", unusable: true},
		{name: "late: only segments with the node's keys", nodes: mixed, node: "m1",
			requisite: "zone=a zone=c", first: "zone=c zone=a"},
		{name: "late: node with more keys than others", nodes: mixed, node: "n2",
			requisite: "rack=1,zone=a rack=1,zone=b rack=2,zone=a", first: "rack=2,zone=a rack=1,zone=a rack=1,zone=b"},
		{name: "late: node is gone", nodes: three, node: "n9", err: "n9", unusable: true},
		{name: "late: CSINode without node", nodes: append(slices.Clone(three), "-n9 zone=a | zone"), node: "n9", err: "n9", unusable: true},
		{name: "late: no CSINode", nodes: append(slices.Clone(three), "n9 zone=a"), node: "n9", err: "n9", unusable: true},
		{name: "late: no keys on this node", nodes: append(slices.Clone(three), "n9 zone=a |"), node: "n9", err: "n9", unusable: true},
		{name: "late: no keys on any node: no other would do better", nodes: []string{"n9 zone=a |"}, node: "n9", err: "no topology keys"},
		{name: "late: label not there yet", nodes: append(slices.Clone(three), "n9 | zone"), node: "n9", err: "no label"},
		{name: "late: another node with stale keys counts for nothing", nodes: append(slices.Clone(three), "n9 | zone"), node: "n1",
			requisite: "zone=a zone=b zone=c", first: "zone=a zone=b zone=c"},

		{name: "immediate: all segments, begun by the claim's name", nodes: three, claim: "data-mysql-0",
			requisite: "zone=a zone=b zone=c", first: "zone=c zone=a zone=b"},
		{name: "immediate: the next of a set begins with the next", nodes: three, claim: "data-mysql-1",
			requisite: "zone=a zone=b zone=c", first: "zone=a zone=b zone=c"},
		{name: "immediate: strict changes nothing", nodes: three, claim: "data-mysql-1", strict: true,
			requisite: "zone=a zone=b zone=c", first: "zone=a zone=b zone=c"},
		{name: "immediate, allowed", nodes: three, allowed: []string{"zone=b", "zone=a,rack=2/1", "zone=b"}, claim: "data-mysql-0",
			requisite: "rack=1,zone=a rack=2,zone=a zone=b", first: "zone=b rack=1,zone=a rack=2,zone=a"},
		{name: "immediate: keys of all kinds together", nodes: mixed, claim: "data-mysql-0",
			requisite: "rack=1,zone=a rack=1,zone=b rack=2,zone=a zone=a zone=c",
			first:     "rack=2,zone=a zone=a zone=c rack=1,zone=a rack=1,zone=b"},
		{name: "immediate, switched off", nodes: three, noImmed: true},
		{name: "immediate, switched off, but allowed", nodes: three, noImmed: true, allowed: []string{"zone=b"},
			requisite: "zone=b", first: "zone=b"},
		{name: "immediate: no node", nodes: nil},
		{name: "immediate: no node with the driver", nodes: []string{"n1 zone=a", "-n2 | zone"}},
		{name: "immediate: no keys anywhere: the driver chooses", nodes: []string{"n1 zone=a |"}},
		{name: "immediate: no labels for any keys", nodes: []string{"n1 | zone"}, err: "none of 1 nodes has labels"},
		{name: "allowed nowhere", nodes: three, allowed: []string{""}, err: "allow no place"},
		{name: "allowed in too many places", nodes: three,
			allowed: []string{"a=" + strings.Repeat("1/", 100) + "1,b=" + strings.Repeat("1/", 100) + "1"}, err: "more than 10000"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var objects []runtime.Object
			for _, line := range c.nodes {
				objects = append(objects, topologyNode(line)...)
			}
			bed := sidecartest.New(t, withTopology(), objects...)
			topology := newTopology(bed.Env)
			if err := bed.Env.Informers.Sync(bed.Ctx, topology.synced()...); err != nil {
				t.Fatal(err)
			}
			bed.Kube.ClearActions()
			in := topologyInput{
				PVC: sidecartest.PVC(c.claim), SelectedNode: c.node, StrictTopology: c.strict, ImmediateTopology: !c.noImmed,
				StorageClass: sidecartest.StorageClass("fast", func(class *storagev1.StorageClass) {
					class.AllowedTopologies = allowedTerms(c.allowed...)
				}),
			}
			got, err := topology.requirement(bed.Ctx, in)
			switch {
			case c.err == "" && err != nil:
				t.Fatal(err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("error %v, want one with %q", err, c.err)
			case errors.Is(err, errNodeWithoutDriver) != c.unusable:
				t.Errorf("error %v: another node is to be selected: %v", err, !c.unusable)
			}
			if requisite := topologyText(got.GetRequisite()); requisite != c.requisite {
				t.Errorf("requisite %s, want %s", requisite, c.requisite)
			}
			if preferred := topologyText(got.GetPreferred()); preferred != c.first {
				t.Errorf("preferred %s, want %s", preferred, c.first)
			}
			if (got == nil) != (c.requisite == "") {
				t.Errorf("requirement %v", got)
			}
			if actions := bed.Kube.Actions(); len(actions) != 0 {
				t.Errorf("the API server was asked: %v", actions)
			}
		})
	}
}

func TestDriverWithoutTopologyHasNoRequirementAndNoNodesAreWatched(t *testing.T) {
	bed := sidecartest.New(t, csiclient.Info{}, topologyNode("n1 zone=a | zone")...)
	for _, topology := range []*topology{newTopology(bed.Env), newOwnTopology(bed.Env, "n1", topo.NewSegment(nil))} {
		if err := bed.Env.Informers.Sync(bed.Ctx, topology.synced()...); err != nil {
			t.Fatal(err)
		}
		got, err := topology.requirement(bed.Ctx, topologyInput{PVC: sidecartest.PVC("c"),
			StorageClass: sidecartest.StorageClass("fast"), SelectedNode: "n1", ImmediateTopology: true})
		if got != nil || err != nil {
			t.Errorf("requirement %v, %v", got, err)
		}
	}
	if actions := bed.Kube.Actions(); len(actions) != 0 {
		t.Errorf("the API server was asked: %v", actions)
	}
}

func TestOwnTopologyKnowsOneNode(t *testing.T) {
	bed := sidecartest.New(t, withTopology(), topologyNode("n2 host=n2 | host")...)
	topology := newOwnTopology(bed.Env, "n1", topo.NewSegment(map[string]string{"host": "n1"}))
	in := topologyInput{PVC: sidecartest.PVC("c"), StorageClass: sidecartest.StorageClass("fast"), SelectedNode: "n1"}
	if got, err := topology.requirement(bed.Ctx, in); err != nil || topologyText(got.GetRequisite()) != "host=n1" {
		t.Errorf("own node: %v, %v", got, err)
	}
	in.SelectedNode = "n2"
	if got, err := topology.requirement(bed.Ctx, in); !errors.Is(err, errNodeWithoutDriver) {
		t.Errorf("another node: %v, %v", got, err)
	}
	in.SelectedNode, in.ImmediateTopology = "", true
	if got, err := topology.requirement(bed.Ctx, in); err != nil || topologyText(got.GetPreferred()) != "host=n1" {
		t.Errorf("no node: %v, %v", got, err)
	}
}

func TestClaimsOfASetAreSpreadAndClaimsOfAPodStayTogether(t *testing.T) {
	const segments = 5
	begin := spread("data-web-0", segments)
	for i, claim := range []string{"data-web-0", "data-web-1", "data-web-2", "data-web-3", "data-web-4", "data-web-5"} {
		if got, want := spread(claim, segments), (begin+i)%segments; got != want {
			t.Errorf("%s begins with %d, want %d", claim, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"data-web-3", "log-web-3", true},
		{"data-web-3", "web-3", true},
		{"my-data-web-3", "log-web-3", true},
		{"data-web-3", "data-web-4", false},
		{"data-web-x", "data-web-x", true},
		{"a--1", "a--1", true},
	} {
		if got := spread(c.a, segments) == spread(c.b, segments); got != c.same {
			t.Errorf("%s and %s begin with the same: %v", c.a, c.b, got)
		}
	}
	used := map[int]bool{}
	for letter := 'a'; letter <= 'z'; letter++ {
		used[spread(string(letter), segments)] = true
	}
	if len(used) != segments {
		t.Errorf("names without numbers begin with %d of %d segments", len(used), segments)
	}
	for _, odd := range []string{"", "-", "--", "7", "-7", "x-99999999999999999999", "x-4294967295"} {
		if got := spread(odd, segments); got < 0 || got >= segments {
			t.Errorf("%q begins with %d", odd, got)
		}
	}
}

func TestNodeAffinityOfAVolume(t *testing.T) {
	for _, c := range []struct {
		segments []string
		want     string
	}{
		{nil, ""},
		{[]string{"zone=a"}, "zone In [a]"},
		{[]string{"zone=b,rack=1", "zone=a"}, "rack In [1] & zone In [b] | zone In [a]"},
		{[]string{"zone=a", "zone=b", "zone=a"}, "zone In [a] | zone In [b]"},
		{[]string{"zone=a", ""}, ""},
	} {
		var segments []*csi.Topology
		for _, one := range c.segments {
			segments = append(segments, &csi.Topology{Segments: topologySegment(one)})
		}
		affinity := volumeNodeAffinity(segments)
		var terms []string
		if affinity != nil {
			for _, term := range affinity.Required.NodeSelectorTerms {
				var parts []string
				for _, one := range term.MatchExpressions {
					parts = append(parts, one.Key+" "+string(one.Operator)+" ["+strings.Join(one.Values, " ")+"]")
				}
				terms = append(terms, strings.Join(parts, " & "))
			}
		}
		if got := strings.Join(terms, " | "); got != c.want || (affinity == nil) != (c.want == "") {
			t.Errorf("%q: %s, want %s", c.segments, got, c.want)
		}
	}
}
