package wire_test

import (
	"slices"
	"strings"
	"testing"

	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta2"
	filesystemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	filesystemv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	volumev1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// serve starts a server over a recording host.
func serve(t *testing.T, h *wiretest.Host) pipe.Place {
	t.Helper()
	place := wiretest.Place(t)
	wiretest.Serve(t, wire.ServerConfig{Host: h, Node: &wiretest.Node{}, Place: place})
	return place
}

// wantCalls compares what the host was asked, and forgets it.
func wantCalls(t *testing.T, h *wiretest.Host, want ...string) {
	t.Helper()
	if got := h.Calls(); !slices.Equal(got, want) {
		t.Errorf("the host was asked %q, want %q", got, want)
	}
	h.Reset()
}

// wantCode compares the code of a call's error.
func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("code %s (%v), want %s", got, err, want)
	}
}

// Without its transform, disk "319" reads as disk 0.
func TestT1DiskNumberInText(t *testing.T) {
	t.Parallel()
	h := &wiretest.Host{}
	place := serve(t, h)
	disk := diskv1beta2.NewDiskClient(dial(t, place, wire.API{Group: "disk", Version: "v1beta2"}))
	volume := volumev1alpha1.NewVolumeClient(dial(t, place, wire.API{Group: "volume", Version: "v1alpha1"}))
	calls := map[string]func(text string) error{
		"PartitionDisk": func(s string) error {
			_, err := disk.PartitionDisk(t.Context(), &diskv1beta2.PartitionDiskRequest{DiskID: s})
			return err
		},
		"DiskStats": func(s string) error {
			_, err := disk.DiskStats(t.Context(), &diskv1beta2.DiskStatsRequest{DiskID: s})
			return err
		},
		"SetAttachState": func(s string) error {
			_, err := disk.SetAttachState(t.Context(), &diskv1beta2.SetAttachStateRequest{DiskID: s, IsOnline: true})
			return err
		},
		"GetAttachState": func(s string) error {
			_, err := disk.GetAttachState(t.Context(), &diskv1beta2.GetAttachStateRequest{DiskID: s})
			return err
		},
		"ListVolumesOnDisk": func(s string) error {
			_, err := volume.ListVolumesOnDisk(t.Context(), &volumev1alpha1.ListVolumesOnDiskRequest{DiskId: s})
			return err
		},
	}
	want := map[string]string{
		"PartitionDisk": "PartitionDisk(319)", "DiskStats": "GetDiskStats(319)", "SetAttachState": "SetDiskState(319, true)",
		"GetAttachState": "GetDiskState(319)", "ListVolumesOnDisk": "ListVolumesOnDisk(319, 0)",
	}
	for name, call := range calls {
		if err := call("319"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantCalls(t, h, want[name])
		// 4294967296 is 2^32, which upstream cuts to disk 0.
		for _, bad := range []string{"", "-1", "+1", " 1", "1 ", "0x1", "1_0", "4294967296", "18446744073709551616", "1.0", "１", "disk 1"} {
			err := call(bad)
			wantCode(t, err, codes.InvalidArgument)
			field := "v1beta2." + name + "Request.diskID"
			if name == "ListVolumesOnDisk" {
				field = "v1alpha1.ListVolumesOnDiskRequest.disk_id"
			}
			if !strings.Contains(status.Convert(err).Message(), field) {
				t.Errorf("%s(%q): error %q does not name %s", name, bad, err, field)
			}
			wantCalls(t, h)
		}
		if err := call("4294967295"); err != nil {
			t.Errorf("%s: the largest disk number: %v", name, err)
		}
		h.Reset()
	}
}

// Without its transform, the driver sees one location with an empty key.
func TestT2LocationsKeyedByText(t *testing.T) {
	t.Parallel()
	h := &wiretest.Host{Locations: map[uint32]host.DiskLocation{0: {LUNID: "0"}, 7: {LUNID: "7"}}}
	client := diskv1alpha1.NewDiskClient(dial(t, serve(t, h), wire.API{Group: "disk", Version: "v1alpha1"}))
	answer, err := client.ListDiskLocations(t.Context(), &diskv1alpha1.ListDiskLocationsRequest{})
	if err != nil || len(answer.DiskLocations) != 2 || answer.DiskLocations["0"].GetLUNID() != "0" || answer.DiskLocations["7"].GetLUNID() != "7" {
		t.Errorf("got %v, %v", answer, err)
	}
}

// Both identifiers are always there, even when they are empty.
func TestT3IdentifiersByName(t *testing.T) {
	t.Parallel()
	h := &wiretest.Host{IDs: map[uint32]host.DiskIDs{7: {}}}
	client := diskv1beta2.NewDiskClient(dial(t, serve(t, h), wire.API{Group: "disk", Version: "v1beta2"}))
	answer, err := client.ListDiskIDs(t.Context(), &diskv1beta2.ListDiskIDsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	identifiers := answer.DiskIDs["7"].GetIdentifiers()
	for _, key := range []string{"page83", "serialNumber"} {
		if value, ok := identifiers[key]; !ok || value != "" {
			t.Errorf("identifier %s is %q, there: %t", key, value, ok)
		}
	}
	if len(identifiers) != 2 {
		t.Errorf("identifiers %v, want two", identifiers)
	}
}

// GetDiskNumberByName exists in v1alpha1 only and answers in text.
func TestT4DiskNumberByName(t *testing.T) {
	t.Parallel()
	h := &wiretest.Host{IDs: map[uint32]host.DiskIDs{4: {Page83: "a"}, 12: {Page83: "b"}, 13: {Page83: "twin"}, 14: {Page83: "twin"}, 15: {}}}
	client := diskv1alpha1.NewDiskClient(dial(t, serve(t, h), wire.API{Group: "disk", Version: "v1alpha1"}))
	for _, c := range []struct {
		name, want string
		code       codes.Code
	}{
		{"b", "12", codes.OK}, {"c", "", codes.NotFound}, {"", "", codes.InvalidArgument}, {"twin", "", codes.FailedPrecondition},
	} {
		answer, err := client.GetDiskNumberByName(t.Context(), &diskv1alpha1.GetDiskNumberByNameRequest{DiskName: c.name})
		wantCode(t, err, c.code)
		if answer.GetDiskNumber() != c.want {
			t.Errorf("%q: disk %q, want %q", c.name, answer.GetDiskNumber(), c.want)
		}
	}
}

// Without its transform, the context POD reads as force: a plain remove becomes a
// recursive one, and the real force is lost.
func TestT5RmdirContextIsNotForce(t *testing.T) {
	t.Parallel()
	h := &wiretest.Host{}
	place := serve(t, h)
	alpha := filesystemv1alpha1.NewFilesystemClient(dial(t, place, wire.API{Group: "filesystem", Version: "v1alpha1"}))
	beta := filesystemv1beta1.NewFilesystemClient(dial(t, place, wire.API{Group: "filesystem", Version: "v1beta1"}))
	for _, c := range []struct {
		context int32
		force   bool
		want    string
	}{
		{1, false, `Rmdir("C:\\x", false)`}, {0, true, `Rmdir("C:\\x", true)`}, {1, true, `Rmdir("C:\\x", true)`}, {0, false, `Rmdir("C:\\x", false)`},
	} {
		_, err := alpha.Rmdir(t.Context(), &filesystemv1alpha1.RmdirRequest{Path: `C:\x`, Context: filesystemv1alpha1.PathContext(c.context), Force: c.force})
		wantCode(t, err, codes.OK)
		_, err = beta.Rmdir(t.Context(), &filesystemv1beta1.RmdirRequest{Path: `C:\x`, Context: filesystemv1beta1.PathContext(c.context), Force: c.force})
		wantCode(t, err, codes.OK)
		wantCalls(t, h, c.want, c.want)
	}
}

// Without its transform, the driver always reads false.
func TestT6ResultInSecondField(t *testing.T) {
	t.Parallel()
	for _, want := range []bool{true, false} {
		h := &wiretest.Host{Exists: want, Symlink: want}
		client := filesystemv1beta1.NewFilesystemClient(dial(t, serve(t, h), wire.API{Group: "filesystem", Version: "v1beta1"}))
		exists, err := client.PathExists(t.Context(), &filesystemv1beta1.PathExistsRequest{Path: `C:\x`, Context: filesystemv1beta1.PathContext_POD})
		if err != nil || exists.Exists != want || exists.Error != "" {
			t.Errorf("PathExists: %v, %v, want %t", exists, err, want)
		}
		link, err := client.IsMountPoint(t.Context(), &filesystemv1beta1.IsMountPointRequest{Path: `C:\x`})
		if err != nil || link.IsMountPoint != want || link.Error != "" {
			t.Errorf("IsMountPoint: %v, %v, want %t", link, err, want)
		}
	}
}

// A missing portal crashes upstream's process.
func TestNilPortalIsInvalid(t *testing.T) {
	t.Parallel()
	h := &wiretest.Host{}
	client := iscsiv1alpha2.NewIscsiClient(dial(t, serve(t, h), wire.API{Group: "iscsi", Version: "v1alpha2"}))
	for name, call := range map[string]func() error{
		"AddTargetPortal": func() error {
			_, err := client.AddTargetPortal(t.Context(), &iscsiv1alpha2.AddTargetPortalRequest{})
			return err
		},
		"DiscoverTargetPortal": func() error {
			_, err := client.DiscoverTargetPortal(t.Context(), &iscsiv1alpha2.DiscoverTargetPortalRequest{})
			return err
		},
		"RemoveTargetPortal": func() error {
			_, err := client.RemoveTargetPortal(t.Context(), &iscsiv1alpha2.RemoveTargetPortalRequest{})
			return err
		},
		"ConnectTarget": func() error {
			_, err := client.ConnectTarget(t.Context(), &iscsiv1alpha2.ConnectTargetRequest{Iqn: "iqn.x"})
			return err
		},
		"DisconnectTarget": func() error {
			_, err := client.DisconnectTarget(t.Context(), &iscsiv1alpha2.DisconnectTargetRequest{Iqn: "iqn.x"})
			return err
		},
		"GetTargetDisks": func() error {
			_, err := client.GetTargetDisks(t.Context(), &iscsiv1alpha2.GetTargetDisksRequest{Iqn: "iqn.x"})
			return err
		},
	} {
		err := call()
		wantCode(t, err, codes.InvalidArgument)
		if !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "target_portal") {
			t.Errorf("%s: error %q does not say what is missing", name, err)
		}
	}
	wantCalls(t, h)
}
