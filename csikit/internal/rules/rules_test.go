package rules

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func newChecker(t testing.TB) *Checker {
	t.Helper()
	checker, err := New(0)
	if err != nil {
		t.Fatal(err)
	}
	return checker
}

func capability() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

func publish(change func(*csi.NodePublishVolumeRequest)) *csi.NodePublishVolumeRequest {
	r := &csi.NodePublishVolumeRequest{VolumeId: "v", StagingTargetPath: `C:\s`, TargetPath: `C:\t`, VolumeCapability: capability()}
	change(r)
	return r
}

func create(change func(*csi.CreateVolumeRequest)) *csi.CreateVolumeRequest {
	r := &csi.CreateVolumeRequest{Name: "n", VolumeCapabilities: []*csi.VolumeCapability{capability()}}
	change(r)
	return r
}

// expect checks a request; want is the text of the violation, "" for none.
func expect(t *testing.T, request proto.Message, want string) {
	t.Helper()
	got := ""
	if v := newChecker(t).Check(request); v != nil {
		got = v.Error()
	}
	if got != want {
		t.Errorf("%s: got %q, want %q", request.ProtoReflect().Descriptor().Name(), got, want)
	}
}

func TestC024_PathsHaveNoLimitOf128Bytes(t *testing.T) {
	t.Parallel()
	for _, size := range []int{131, 260, 1024} {
		expect(t, publish(func(r *csi.NodePublishVolumeRequest) { r.TargetPath = strings.Repeat("p", size) }), "")
		expect(t, publish(func(r *csi.NodePublishVolumeRequest) { r.StagingTargetPath = strings.Repeat("p", size) }), "")
	}
	expect(t, publish(func(r *csi.NodePublishVolumeRequest) { r.VolumeId = strings.Repeat("v", 128) }), "")
	expect(t, publish(func(r *csi.NodePublishVolumeRequest) { r.VolumeId = strings.Repeat("v", 129) }), "volume_id: 129 bytes, the limit is 128")
	expect(t, publish(func(r *csi.NodePublishVolumeRequest) { r.TargetPath = strings.Repeat("p", PathBytesMax+1) }),
		"target_path: 98302 bytes, the limit is 98301")
}

func TestC020_ControlCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"\x00", "\x01", "\t", "\n", "\x1f", "\x7f", "\u0080", "\u009f"} {
		expect(t, publish(func(r *csi.NodePublishVolumeRequest) { r.TargetPath = "C:\\" + c + ":" }), "target_path: control character at byte 3")
		expect(t, publish(func(r *csi.NodePublishVolumeRequest) { r.VolumeId = c }), "volume_id: control character at byte 0")
	}
	expect(t, publish(func(r *csi.NodePublishVolumeRequest) { r.TargetPath = "C:\\größe \u00a0" }), "")
	// Names may have white space, by CSI's words.
	expect(t, create(func(r *csi.CreateVolumeRequest) { r.Name = "a\tb\r\n" }), "")
	for _, c := range []string{"\x00", "\x08", "\x0b", "\x0c", "\x0e", "\x1f", "\x7f", "\u0080", "\u009f"} {
		expect(t, create(func(r *csi.CreateVolumeRequest) { r.Name = "a" + c }), "name: control character at byte 1")
	}
}

func TestRulesOfFields(t *testing.T) {
	t.Parallel()
	change := func(f func(*csi.CreateVolumeRequest)) proto.Message { return create(f) }
	for _, c := range []struct {
		request proto.Message
		want    string
	}{
		{create(func(*csi.CreateVolumeRequest) {}), ""},
		{&csi.ProbeRequest{}, ""},
		{&csi.CreateVolumeRequest{}, "name: required"},
		{change(func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = nil }), "volume_capabilities: required"},
		{change(func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].AccessMode = nil }), "volume_capabilities[0].access_mode: required"},
		{change(func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].AccessMode.Mode = 0 }), "volume_capabilities[0].access_mode.mode: required"},
		{change(func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].AccessType = nil }), "volume_capabilities[0].access_type: required"},
		{change(func(r *csi.CreateVolumeRequest) { r.CapacityRange = &csi.CapacityRange{RequiredBytes: -1} }), "capacity_range.required_bytes: -1 is negative"},
		{change(func(r *csi.CreateVolumeRequest) {
			r.CapacityRange = &csi.CapacityRange{RequiredBytes: 2, LimitBytes: 1}
		}),
			"capacity_range.limit_bytes: 1 is less than required_bytes, 2"},
		{change(func(r *csi.CreateVolumeRequest) { r.CapacityRange = &csi.CapacityRange{RequiredBytes: 2} }), ""},
		{change(func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"key": strings.Repeat("v", 4093)} }), ""},
		{change(func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"key": strings.Repeat("v", 4094)} }),
			"parameters: 4097 bytes of keys and values, the limit is 4096"},
		{change(func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities[0].GetMount().MountFlags = []string{strings.Repeat("f", 4000), strings.Repeat("f", 97)}
		}), "volume_capabilities[0].mount.mount_flags: 4097 bytes in all, the limit is 4096"},
		{change(func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities[0].GetMount().MountFlags = []string{strings.Repeat("f", 4096)}
		}), ""},
		{change(func(r *csi.CreateVolumeRequest) {
			r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{}}}
		}), "volume_content_source.volume.volume_id: required"},
		{&csi.ListVolumesRequest{MaxEntries: -5}, "max_entries: -5 is negative"},
		{&csi.ControllerExpandVolumeRequest{VolumeId: "v"}, "capacity_range: required"},
		{&csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: strings.Repeat("n", 256), VolumeCapability: capability()}, ""},
		{&csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: strings.Repeat("n", 257), VolumeCapability: capability()}, "node_id: 257 bytes, the limit is 256"},
		{&csi.CreateVolumeGroupSnapshotRequest{Name: "g", SourceVolumeIds: []string{"a", ""}}, "source_volume_ids[1]: required"},
		{&csi.CreateVolumeGroupSnapshotRequest{Name: "g"}, "source_volume_ids: required"},
		{&csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: "g"}, ""},
		{&csi.ControllerModifyVolumeRequest{VolumeId: "v"}, "mutable_parameters: required"},
		{&csi.GetMetadataDeltaRequest{BaseSnapshotId: "a"}, "target_snapshot_id: required"},
		{&csi.GetMetadataAllocatedRequest{SnapshotId: "a", StartingOffset: -1}, "starting_offset: -1 is negative"},
	} {
		expect(t, c.request, c.want)
	}
}

// Every rule of the table is broken once, in a message that is right otherwise, so
// that a rule that nobody applies is seen.
func TestEveryRequiredFieldIsMissed(t *testing.T) {
	t.Parallel()
	checker := newChecker(t)
	broken := 0
	for name, rules := range table() {
		if !strings.HasSuffix(name, "Request") {
			continue
		}
		for _, r := range rules {
			if !r.required {
				continue
			}
			message := filled(t, name)
			if v := checker.Check(message.Interface()); v != nil {
				t.Fatalf("%s as it should be: %v", name, v)
			}
			message.Clear(message.Descriptor().Fields().ByName(protoreflect.Name(r.name)))
			v := checker.Check(message.Interface())
			if v == nil || v.Field != r.name || v.Problem != "required" {
				t.Errorf("%s without %s: %v", name, r.name, v)
			}
			broken++
		}
	}
	if broken < 40 {
		t.Errorf("only %d required fields were found", broken)
	}
}

func TestATableOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	b := builder{plans: map[protoreflect.FullName]*plan{}, rules: map[string][]rule{"csi.v1.DeleteVolumeRequest": {{name: "new_field"}, {name: "new_oneof", oneof: true}}}}
	b.plan((&csi.DeleteVolumeRequest{}).ProtoReflect().Descriptor())
	b.plan((&csi.ProbeRequest{}).ProtoReflect().Descriptor())
	if len(b.errs) != 3 {
		t.Errorf("got %v", b.errs)
	}
}
