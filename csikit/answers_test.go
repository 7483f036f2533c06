package csikit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/csikit/kittest"
	"github.com/csi-windows/csi-windows/node"
)

// liar answers what it is told to.
type liar struct {
	*kittest.Backend
	volume   csikit.Volume
	snapshot csikit.Snapshot
	group    csikit.GroupSnapshot
	capacity csikit.Capacity
	next     string
	context  map[string]string
	health   []node.HealthCondition
}

func (l *liar) CreateVolume(context.Context, csikit.CreateVolumeRequest) (csikit.Volume, error) {
	return l.volume, nil
}

func (l *liar) GetVolume(context.Context, csikit.VolumeRequest) (csikit.Volume, error) {
	return l.volume, nil
}

func (l *liar) ExpandVolume(context.Context, csikit.ExpandRequest) (csikit.Volume, error) {
	return l.volume, nil
}

func (l *liar) ListVolumes(context.Context, csikit.Page) (csikit.VolumePage, error) {
	return csikit.VolumePage{Volumes: []csikit.Volume{l.volume, l.volume}, NextToken: l.next}, nil
}

func (l *liar) AttachVolume(context.Context, csikit.AttachRequest) (map[string]string, error) {
	return l.context, nil
}

func (l *liar) CreateSnapshot(context.Context, csikit.CreateSnapshotRequest) (csikit.Snapshot, error) {
	return l.snapshot, nil
}

func (l *liar) GetSnapshot(context.Context, csikit.SnapshotRequest) (csikit.Snapshot, error) {
	return l.snapshot, nil
}

func (l *liar) ListSnapshots(context.Context, csikit.ListSnapshotsRequest) (csikit.SnapshotPage, error) {
	return csikit.SnapshotPage{Snapshots: []csikit.Snapshot{l.snapshot}, NextToken: l.next}, nil
}

func (l *liar) CreateGroupSnapshot(context.Context, csikit.CreateGroupSnapshotRequest) (csikit.GroupSnapshot, error) {
	return l.group, nil
}

func (l *liar) GetCapacity(context.Context, csikit.CapacityRequest) (csikit.Capacity, error) {
	return l.capacity, nil
}

func (l *liar) VolumeHealth(context.Context, csikit.VolumeRequest) (csikit.VolumeHealth, error) {
	return csikit.VolumeHealth{VolumeID: l.volume.ID, Conditions: l.health}, nil
}

// honest is a liar that tells the truth about volume v.
func honest() *liar {
	now := time.Now()
	snapshot := csikit.Snapshot{ID: "s", SourceVolumeID: "v", SizeBytes: 1 << 30, CreatedAt: now, Ready: true}
	return &liar{
		Backend:  kittest.NewBackend("node-1"),
		volume:   csikit.Volume{ID: "v", CapacityBytes: 1 << 30, Context: map[string]string{"a": "b"}},
		snapshot: snapshot,
		group:    csikit.GroupSnapshot{ID: "g", Snapshots: []csikit.Snapshot{snapshot}, CreatedAt: now, Ready: true},
	}
}

// askAll makes every call that the liar answers and returns the errors.
func askAll(t *testing.T, l *liar) map[string]error {
	t.Helper()
	driver, err := csikit.New(csikit.Config{Name: "test.example.com", Version: "1", Backend: l})
	if err != nil {
		t.Fatal(err)
	}
	c, g := driver.Services().Controller, driver.Services().GroupController
	ctx, errs := within(t), map[string]error{}
	_, errs["CreateVolume"] = c.CreateVolume(ctx, createRequest("v", writer()))
	_, errs["ControllerGetVolume"] = c.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: "v"})
	_, errs["ControllerExpandVolume"] = c.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
		VolumeId: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30, LimitBytes: 2 << 30}})
	_, errs["ListVolumes"] = c.ListVolumes(ctx, &csi.ListVolumesRequest{MaxEntries: 2, StartingToken: "t"})
	_, errs["ControllerPublishVolume"] = c.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{
		VolumeId: "v", NodeId: "node-1", VolumeCapability: writer()})
	_, errs["CreateSnapshot"] = c.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v"})
	_, errs["GetSnapshot"] = c.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: "s"})
	_, errs["ListSnapshots"] = c.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: "s", SourceVolumeId: "v"})
	_, errs["GetCapacity"] = c.GetCapacity(ctx, &csi.GetCapacityRequest{})
	_, errs["ControllerGetVolumeHealth"] = c.ControllerGetVolumeHealth(ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: "v"})
	_, errs["CreateVolumeGroupSnapshot"] = g.CreateVolumeGroupSnapshot(ctx, &csi.CreateVolumeGroupSnapshotRequest{
		Name: "g", SourceVolumeIds: []string{"v"}})
	return errs
}

// What CSI does not allow does not get out; the error says what it was.
func TestAnswersOfABackendAreChecked(t *testing.T) {
	t.Parallel()
	for call, err := range askAll(t, honest()) {
		expect(t, "the truth: "+call, err, codes.OK)
	}
	long := strings.Repeat("x", 129)
	large := map[string]string{"k": strings.Repeat("x", 4<<10)}
	for name, test := range map[string]struct {
		change func(*liar)
		text   string
		calls  string
	}{
		"no volume id":      {func(l *liar) { l.volume.ID = "" }, "the volume id has 0 bytes", "CreateVolume ListVolumes"},
		"long volume id":    {func(l *liar) { l.volume.ID = long }, "the volume id has 129 bytes", "CreateVolume ListVolumes"},
		"other volume":      {func(l *liar) { l.volume.ID = "w" }, "asked was for", "ControllerGetVolume ControllerExpandVolume ControllerGetVolumeHealth"},
		"negative size":     {func(l *liar) { l.volume.CapacityBytes = -1 }, "negative", "CreateVolume ControllerGetVolume ListVolumes"},
		"not grown":         {func(l *liar) { l.volume.CapacityBytes = 1 << 20 }, "after expansion", "ControllerExpandVolume"},
		"large context":     {func(l *liar) { l.volume.Context = large }, "the volume context has 4097 bytes", "CreateVolume ControllerGetVolume ListVolumes"},
		"two sources":       {func(l *liar) { l.volume.Source = &csikit.ContentSource{VolumeID: "a", SnapshotID: "b"} }, "source", "CreateVolume ControllerGetVolume"},
		"empty topology":    {func(l *liar) { l.volume.Topology = []csikit.Topology{{}} }, "without segments", "CreateVolume ListVolumes"},
		"bad topology key":  {func(l *liar) { l.volume.Topology = []csikit.Topology{{"Ex/zone": "a"}} }, "topology key", "CreateVolume"},
		"bad topology":      {func(l *liar) { l.volume.Topology = []csikit.Topology{{"ex/zone": "a b"}} }, "topology value", "CreateVolume"},
		"twin topology":     {func(l *liar) { l.volume.Topology = []csikit.Topology{{"zone": "a", "Zone": "b"}} }, "twice", "CreateVolume"},
		"publish context":   {func(l *liar) { l.context = large }, "the publish context", "ControllerPublishVolume"},
		"too many entries":  {func(l *liar) { l.next = long }, "the next token", "ListVolumes ListSnapshots"},
		"token to itself":   {func(l *liar) { l.next = "t" }, "the one that was given", "ListVolumes"},
		"no snapshot id":    {func(l *liar) { l.snapshot.ID = "" }, "the snapshot id", "CreateSnapshot GetSnapshot ListSnapshots"},
		"other snapshot":    {func(l *liar) { l.snapshot.ID = "x" }, "asked was for", "GetSnapshot ListSnapshots"},
		"no source":         {func(l *liar) { l.snapshot.SourceVolumeID = "" }, "the source volume id", "CreateSnapshot GetSnapshot"},
		"other source":      {func(l *liar) { l.snapshot.SourceVolumeID = "w" }, "asked was for volume v", "ListSnapshots"},
		"no time":           {func(l *liar) { l.snapshot.CreatedAt = time.Time{} }, "time of creation", "CreateSnapshot GetSnapshot"},
		"snapshot size":     {func(l *liar) { l.snapshot.SizeBytes = -1 }, "negative", "CreateSnapshot"},
		"no group id":       {func(l *liar) { l.group.ID = "" }, "the group snapshot id", "CreateVolumeGroupSnapshot"},
		"empty group":       {func(l *liar) { l.group.Snapshots = nil }, "no snapshots", "CreateVolumeGroupSnapshot"},
		"of another group":  {func(l *liar) { l.group.Snapshots[0].GroupID = "h" }, "says it is of h", "CreateVolumeGroupSnapshot"},
		"negative capacity": {func(l *liar) { l.capacity.AvailableBytes = -1 }, "negative", "GetCapacity"},
		"unknown health":    {func(l *liar) { l.health = []node.HealthCondition{{Status: "SICK", Reason: "R"}} }, "SICK", "ControllerGetVolumeHealth"},
		"no reason":         {func(l *liar) { l.health = []node.HealthCondition{{Status: node.HealthDegraded}} }, "reason", "ControllerGetVolumeHealth"},
	} {
		l := honest()
		test.change(l)
		errs := askAll(t, l)
		for _, call := range strings.Fields(test.calls) {
			expect(t, name+": "+call, errs[call], codes.Internal, "the backend's answer: ", test.text)
		}
	}
}

func TestWhatABackendNeedNotKnow(t *testing.T) {
	t.Parallel()
	l := honest()
	l.volume.CapacityBytes = 0 // a folder of a share has no size
	l.group.Snapshots = append(l.group.Snapshots, csikit.Snapshot{ID: "s2", SourceVolumeID: "v2", CreatedAt: time.Now()})
	twice := node.HealthCondition{Status: node.HealthDegraded, Reason: "Slow", Message: strings.Repeat("é", 100)}
	l.health = []node.HealthCondition{twice, twice}
	driver, err := csikit.New(csikit.Config{Name: "test.example.com", Version: "1", Backend: l})
	if err != nil {
		t.Fatal(err)
	}
	c := driver.Services().Controller
	if _, err := c.CreateVolume(within(t), createRequest("v", writer())); err != nil {
		t.Errorf("CreateVolume: %v", err)
	}
	grown, err := c.ControllerExpandVolume(within(t), &csi.ControllerExpandVolumeRequest{
		VolumeId: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 7 << 30}})
	if err != nil || grown.GetCapacityBytes() != 7<<30 {
		t.Errorf("ControllerExpandVolume: %v %v, want the size that was asked for", grown, err)
	}
	capacity, err := c.GetCapacity(within(t), &csi.GetCapacityRequest{})
	if err != nil || capacity.GetMaximumVolumeSize() != nil || capacity.GetMinimumVolumeSize() != nil {
		t.Errorf("GetCapacity: %v %v, want no limits", capacity, err)
	}
	health, err := c.ControllerGetVolumeHealth(within(t), &csi.ControllerGetVolumeHealthRequest{VolumeId: "v"})
	statuses := health.GetVolumeHealth().GetHealthStatuses()
	if err != nil || len(statuses) != 1 || statuses[0].GetMessage() != strings.Repeat("é", 64) {
		t.Errorf("ControllerGetVolumeHealth: %v %v, want one entry with 128 bytes of text", health, err)
	}
	group, err := driver.Services().GroupController.CreateVolumeGroupSnapshot(within(t), &csi.CreateVolumeGroupSnapshotRequest{
		Name: "g", SourceVolumeIds: []string{"v2", "v"}})
	snapshots := group.GetGroupSnapshot().GetSnapshots()
	if err != nil || group.GetGroupSnapshot().GetReadyToUse() || len(snapshots) != 2 || snapshots[1].GetGroupSnapshotId() != "g" {
		t.Errorf("CreateVolumeGroupSnapshot: %v %v, want it not ready, as one of it is not", group, err)
	}
}

// A topology needs the capability, or Kubernetes does not look at it.
func TestATopologyWithoutCapabilityIsADefect(t *testing.T) {
	t.Parallel()
	l := honest()
	l.volume.Topology = []csikit.Topology{{"zone": "a"}}
	driver, err := csikit.New(csikit.Config{Name: "test.example.com", Version: "1", Backend: least{l}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = driver.Services().Controller.CreateVolume(within(t), createRequest("v", writer()))
	expect(t, "CreateVolume", err, codes.Internal, "NodeTopology")
}

// A backend that lacks an interface says so, and is not asked.
func TestWhatTheBackendCannotDoIsUnimplemented(t *testing.T) {
	t.Parallel()
	b := newBed(t, least{kittest.NewBackend()}, leastNode{kittest.NewBackend()})
	ctx := within(t)
	source := func(t *csi.VolumeContentSource) *csi.CreateVolumeRequest {
		r := createRequest("v", writer())
		r.VolumeContentSource = t
		return r
	}
	type call struct {
		name string
		code codes.Code
		do   func() error
	}
	for _, c := range []call{
		{"ListVolumes", codes.Unimplemented, func() error { _, err := b.controller.ListVolumes(ctx, &csi.ListVolumesRequest{}); return err }},
		{"ListSnapshots", codes.Unimplemented, func() error {
			_, err := b.controller.ListSnapshots(ctx, &csi.ListSnapshotsRequest{})
			return err
		}},
		{"GetCapacity", codes.Unimplemented, func() error { _, err := b.controller.GetCapacity(ctx, &csi.GetCapacityRequest{}); return err }},
		{"CreateSnapshot", codes.Unimplemented, func() error {
			_, err := b.controller.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v"})
			return err
		}},
		{"CreateVolumeGroupSnapshot", codes.Unimplemented, func() error {
			_, err := b.groups.CreateVolumeGroupSnapshot(ctx, &csi.CreateVolumeGroupSnapshotRequest{Name: "g", SourceVolumeIds: []string{"v"}})
			return err
		}},
		{"NodeGetStorageHealth", codes.Unimplemented, func() error {
			_, err := b.nodes.NodeGetStorageHealth(ctx, &csi.NodeGetStorageHealthRequest{})
			return err
		}},
		{"volume from a snapshot", codes.InvalidArgument, func() error {
			_, err := b.controller.CreateVolume(ctx, source(&csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
				Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: "s"}}}))
			return err
		}},
		{"volume from a volume", codes.InvalidArgument, func() error {
			_, err := b.controller.CreateVolume(ctx, source(&csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
				Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: "v"}}}))
			return err
		}},
	} {
		expect(t, c.name, c.do(), c.code)
	}
}

// Pages lead through the whole list, each entry once.
func TestPages(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, nil)
	for i := range 5 {
		b.create(t, fmt.Sprintf("v%d", i))
	}
	seen, token := map[string]bool{}, ""
	pages := 1
	for ; pages < 10; pages++ {
		page, err := b.controller.ListVolumes(within(t), &csi.ListVolumesRequest{MaxEntries: 2, StartingToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range page.GetEntries() {
			seen[entry.GetVolume().GetVolumeId()] = true
		}
		if token = page.GetNextToken(); token == "" {
			break
		}
	}
	if len(seen) != 5 || pages != 3 {
		t.Errorf("%d volumes on %d pages, want 5 on 3", len(seen), pages)
	}
	_, err := b.controller.ListVolumes(within(t), &csi.ListVolumesRequest{StartingToken: "nonsense"})
	expect(t, "a token nobody gave", err, codes.Aborted)
	_, err = b.controller.ListVolumes(within(t), &csi.ListVolumesRequest{MaxEntries: -1})
	expect(t, "a negative number", err, codes.InvalidArgument, "max_entries")
}
