package csikit_test

import (
	"context"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/csikit/kittest"
)

// What is asked for is turned down before the backend hears of it.
func TestBadRequestsDoNotReachTheBackend(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, nil)
	b.backend.Before = func(_ context.Context, method, _ string) error {
		if method != "Probe" {
			t.Errorf("the backend was asked to %s", method)
		}
		return nil
	}
	const secret = "password=hunter2"
	multi := capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, "")
	for name, test := range map[string]struct {
		change func(*csi.CreateVolumeRequest)
		code   codes.Code
		text   string
	}{
		"C067 raw block": {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = append(r.VolumeCapabilities, block()) },
			codes.InvalidArgument, "Windows cannot hand a raw block device to a container"},
		"C069 ext4": {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].GetMount().FsType = "ext4" },
			codes.InvalidArgument, "fs_type"},
		"file system of the class": {func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{csikit.ContextFileSystem: "xfs"} },
			codes.InvalidArgument, "parameters[" + csikit.ContextFileSystem + "]"},
		"cluster size": {func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{csikit.ContextClusterBytes: "5000"} },
			codes.InvalidArgument, csikit.ContextClusterBytes},
		"mount flag": {func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities[0].GetMount().MountFlags = []string{"ro", secret}
		},
			codes.InvalidArgument, `mount_flags[1]: Windows knows no such mount flag, only "ro" and "rw"`},
		"many nodes":        {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0] = multi }, codes.InvalidArgument, "MULTI_NODE_MULTI_WRITER"},
		"unknown mode":      {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].AccessMode.Mode = 99 }, codes.InvalidArgument, "access_mode"},
		"no access type":    {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].AccessType = nil }, codes.InvalidArgument, "access_type"},
		"limit < required":  {func(r *csi.CreateVolumeRequest) { r.CapacityRange.LimitBytes = 1 }, codes.InvalidArgument, "limit_bytes"},
		"unknown parameter": {func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"x": "y"} }, codes.InvalidArgument, "x"},
		"mutable parameter": {func(r *csi.CreateVolumeRequest) { r.MutableParameters = map[string]string{"x": "y"} }, codes.InvalidArgument, "x"},
	} {
		request := createRequest("volume", writer())
		test.change(request)
		_, err := b.controller.CreateVolume(within(t), request)
		expect(t, name, err, test.code, test.text)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the value of a mount flag is in %v", name, err)
		}
	}
}

func TestC069_FileSystemsOfWindowsInAnyCase(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, nil)
	for _, name := range []string{"", "NTFS", "ntfs", "ReFS", "refs", "exFAT", "EXFAT", "fat32"} {
		request := createRequest("volume-"+name, capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, name))
		if _, err := b.controller.CreateVolume(within(t), request); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"ext4", "xfs", "btrfs", "NTFS ", "cifs"} {
		request := createRequest("other-"+name, capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, name))
		_, err := b.controller.CreateVolume(within(t), request)
		expect(t, name, err, codes.InvalidArgument, "NTFS, ReFS, exFAT and FAT32")
	}
}

func TestC068_AVolumeOfTheNameIsComparedAndNeverDeleted(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, nil)
	ctx := within(t)
	first, err := b.controller.CreateVolume(ctx, createRequest("v", writer()))
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.controller.CreateVolume(ctx, createRequest("v", writer()))
	if err != nil || again.GetVolume().GetVolumeId() != first.GetVolume().GetVolumeId() {
		t.Errorf("the second time: %v %v, want %v", again, err, first)
	}
	source := b.create(t, "source")
	for name, change := range map[string]func(*csi.CreateVolumeRequest){
		"larger":  func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 2 << 30 },
		"smaller": func(r *csi.CreateVolumeRequest) { r.CapacityRange = &csi.CapacityRange{LimitBytes: 1 << 20} },
		"from a volume": func(r *csi.CreateVolumeRequest) {
			r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
				Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: source}}}
		},
		"elsewhere": func(r *csi.CreateVolumeRequest) {
			r.AccessibilityRequirements = &csi.TopologyRequirement{
				Requisite: []*csi.Topology{{Segments: map[string]string{kittest.TopologyKey: "z2"}}}}
		},
	} {
		request := createRequest("v", writer())
		change(request)
		_, err := b.controller.CreateVolume(ctx, request)
		expect(t, name, err, codes.AlreadyExists, "name", first.GetVolume().GetVolumeId())
	}
	if got := b.backend.Volumes(); got != 2 {
		t.Errorf("%d volumes are there, want the 2 that were made", got)
	}
	_, err = b.controller.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: first.GetVolume().GetVolumeId()})
	expect(t, "the volume", err, codes.OK)
}

func TestC068_WhatIsGoneIsDeletedAndDetached(t *testing.T) {
	t.Parallel()
	b := newBed(t, absent{kittest.NewBackend()}, nil)
	ctx := within(t)
	for range 2 {
		_, err := b.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "none"})
		expect(t, "DeleteVolume", err, codes.OK)
		_, err = b.controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: "none", NodeId: "node-1"})
		expect(t, "ControllerUnpublishVolume", err, codes.OK)
		_, err = b.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: "none"})
		expect(t, "DeleteSnapshot", err, codes.OK)
		_, err = b.groups.DeleteVolumeGroupSnapshot(ctx, &csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: "none", SnapshotIds: []string{"s"}})
		expect(t, "DeleteVolumeGroupSnapshot", err, codes.OK)
	}
}

// absent answers ErrNotFound where success is meant: many backends do.
type absent struct{ *kittest.Backend }

func (absent) DeleteVolume(context.Context, csikit.VolumeRequest) error { return csikit.ErrNotFound }
func (absent) DetachVolume(context.Context, csikit.DetachRequest) error { return csikit.ErrNotFound }
func (absent) DeleteSnapshot(context.Context, csikit.SnapshotRequest) error {
	return csikit.ErrNotFound
}
func (absent) DeleteGroupSnapshot(context.Context, csikit.GroupSnapshotRequest) error {
	return csikit.ErrNotFound
}

func TestC067_ExpandOfABlockVolumeWantsNothingOfTheNode(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, nil)
	id := b.create(t, "v")
	for name, test := range map[string]struct {
		capability *csi.VolumeCapability
		want       bool
	}{"block": {block(), false}, "file system": {writer(), true}, "not said": {nil, true}} {
		answer, err := b.controller.ControllerExpandVolume(within(t), &csi.ControllerExpandVolumeRequest{
			VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 30}, VolumeCapability: test.capability})
		if err != nil || answer.GetNodeExpansionRequired() != test.want || answer.GetCapacityBytes() != 2<<30 {
			t.Errorf("%s: %v %v, want node_expansion_required=%t", name, answer, err, test.want)
		}
	}
}

func TestAttachmentsAreSaid(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, nil)
	ctx, id := within(t), b.create(t, "v")
	attach := &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: "node-1", VolumeCapability: writer()}
	for range 2 {
		answer, err := b.controller.ControllerPublishVolume(ctx, attach)
		if err != nil || answer.GetPublishContext()["disk"] == "" {
			t.Fatalf("attach: %v %v", answer, err)
		}
	}
	volume, err := b.controller.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: id})
	if err != nil || strings.Join(volume.GetStatus().GetPublishedNodeIds(), " ") != "node-1" {
		t.Errorf("ControllerGetVolume: %v %v", volume, err)
	}
	list, err := b.controller.ListVolumes(ctx, &csi.ListVolumesRequest{})
	if err != nil || strings.Join(list.GetEntries()[0].GetStatus().GetPublishedNodeIds(), " ") != "node-1" {
		t.Errorf("ListVolumes: %v %v", list, err)
	}
	other := &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: "node-2", VolumeCapability: writer()}
	_, err = b.controller.ControllerPublishVolume(ctx, other)
	expect(t, "on another node", err, codes.FailedPrecondition, "node-1")
	_, err = b.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	expect(t, "delete in use", err, codes.FailedPrecondition)
	// A flag for reading only is as good as the field.
	attach.VolumeCapability = capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "", "ro")
	_, err = b.controller.ControllerPublishVolume(ctx, attach)
	expect(t, "read-only where it is writable", err, codes.AlreadyExists)
}

func TestOnlyWhatFitsIsConfirmed(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, nil)
	request := createRequest("v", writer())
	request.Parameters = map[string]string{csikit.ContextLabel: "data"}
	made, err := b.controller.CreateVolume(within(t), request)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*csi.ValidateVolumeCapabilitiesRequest)
		text   string // of the refusal, "" when it fits
	}{
		"fits": {func(*csi.ValidateVolumeCapabilitiesRequest) {}, ""},
		"keys of Kubernetes": {func(r *csi.ValidateVolumeCapabilitiesRequest) {
			r.VolumeContext = map[string]string{csikit.ContextLabel: "data", "storage.kubernetes.io/csiProvisionerIdentity": "x"}
		}, ""},
		"other context": {func(r *csi.ValidateVolumeCapabilitiesRequest) {
			r.VolumeContext = map[string]string{csikit.ContextLabel: "others"}
		}, "volume_context"},
		"more context": {func(r *csi.ValidateVolumeCapabilitiesRequest) {
			r.VolumeContext = map[string]string{csikit.ContextLabel: "data", "more": "1"}
		}, "volume_context"},
		"block": {func(r *csi.ValidateVolumeCapabilitiesRequest) { r.VolumeCapabilities[0] = block() }, "raw block"},
		"parameters": {func(r *csi.ValidateVolumeCapabilitiesRequest) {
			r.Parameters = map[string]string{"no": "such"}
		}, "no"},
		"mutable parameters": {func(r *csi.ValidateVolumeCapabilitiesRequest) {
			r.MutableParameters = map[string]string{"no": "such"}
		}, "no"},
	} {
		r := &csi.ValidateVolumeCapabilitiesRequest{
			VolumeId: made.GetVolume().GetVolumeId(), VolumeCapabilities: []*csi.VolumeCapability{writer()}}
		test.change(r)
		answer, err := b.controller.ValidateVolumeCapabilities(within(t), r)
		isConfirmed := answer.GetConfirmed() != nil
		if err != nil || isConfirmed != (test.text == "") || !strings.Contains(answer.GetMessage(), test.text) {
			t.Errorf("%s: %v %v", name, answer, err)
		}
	}
	_, err = b.controller.ValidateVolumeCapabilities(within(t), &csi.ValidateVolumeCapabilitiesRequest{
		VolumeId: "none", VolumeCapabilities: []*csi.VolumeCapability{writer()}})
	expect(t, "no such volume", err, codes.NotFound)
}
