package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// textNumbers are the methods that name a disk by a number in text, with the rest
// of their request.
var textNumbers = []struct{ group, versions, method, field, rest string }{
	{"disk", "v1alpha1 v1beta1 v1beta2", "PartitionDisk", "diskID", ""},
	{"disk", "v1beta1 v1beta2", "DiskStats", "diskID", ""},
	{"disk", "v1beta2", "SetAttachState", "diskID", `,"isOnline":true`},
	{"disk", "v1beta2", "GetAttachState", "diskID", ""},
	{"volume", "v1alpha1 v1beta1 v1beta2", "ListVolumesOnDisk", "disk_id", ""},
}

// eachTextNumber calls every method of textNumbers in each of its versions.
func eachTextNumber(number string, call func(group, version, method, request string)) {
	for _, m := range textNumbers {
		for _, version := range strings.Fields(m.versions) {
			call(m.group, version, m.method, fmt.Sprintf(`{"%s":"%s"%s}`, m.field, stack.Quoted(number), m.rest))
		}
	}
}

// A number in text that does not fit into 32 bits is refused. Cut to 32 bits,
// 4294967296 would be disk 0 and 4294967297 disk 1.
func TestDiskNumberIsNeverCut(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	disk, systemDisk := s.Attach(sim.DiskSpec{Bus: "SAS"}), untouched(s)
	before := s.Disk(disk)
	for _, number := range []string{
		"4294967296", "4294967297", "18446744073709551616", "18446744073709551617", "-1", "+1", " 1", "1 ", "1.0", "0x1", "1e0", "", "one", "１", "1\u0000",
	} {
		eachTextNumber(number, func(group, version, method, request string) {
			text := s.Refused(codes.InvalidArgument, group, version, method, request)
			if !strings.Contains(text, version+"."+method+"Request") {
				t.Errorf("%q does not name the request", text)
			}
		})
	}
	if after := s.Disk(disk); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("disk 1 was %+v and is %+v", before, after)
	}
	systemDisk()
	// Zeros in front are a number all the same.
	s.Must("disk", "v1beta2", "PartitionDisk", `{"diskID":"0001"}`)
	if d := s.Disk(disk); d.Style != "GPT" {
		t.Errorf("disk 1 is %+v", d)
	}
}

// "319" is disk 319. Read as the newest message, the number would be lost and the
// call would act on disk 0.
func TestDisk319IsNotDisk0(t *testing.T) {
	t.Parallel()
	const wanted = 319
	s := stack.New(t)
	for number := uint32(0); number != wanted; {
		number = s.Attach(sim.DiskSpec{Image: fmt.Sprintf("%s/%d", s.Drive, number), Bus: "SAS", Serial: fmt.Sprint(number)})
	}
	systemDisk, neighbour := untouched(s), s.Disk(31)
	eachTextNumber("319", func(group, version, method, request string) { s.Must(group, version, method, request) })
	if d := s.Disk(wanted); d.Style != "GPT" || d.Offline {
		t.Errorf("disk 319 is %+v", d)
	}
	if after := s.Disk(31); fmt.Sprint(after) != fmt.Sprint(neighbour) {
		t.Errorf("disk 31 was %+v and is %+v", neighbour, after)
	}
	systemDisk()
	answer := s.Must("disk", "v1beta2", "DiskStats", `{"diskID":"319"}`)
	if want := `{"diskSize":"67108864"}`; answer != want {
		t.Errorf("the size of disk 319 is %s, want %s", answer, want)
	}
	eachTextNumber("320", func(group, version, method, request string) {
		s.Refused(codes.NotFound, group, version, method, request)
	})
}

// A disk is found by its page 0x83 identifier in the oldest version; a name nobody
// has, or none, finds no disk, and least of all one that has no identifier.
func TestGetDiskNumberByName(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.Attach(sim.DiskSpec{}) // has no identifier
	s.Attach(sim.DiskSpec{IDs: []sim.DeviceID{{CodeSet: 1, Type: 3, ID: []byte{0x60, 0x0A, 0x09, 0x80}}}})
	if answer := s.Must("disk", "v1alpha1", "GetDiskNumberByName", `{"disk_name":"600a0980"}`); answer != `{"diskNumber":"2"}` {
		t.Errorf("the disk of the name is %s", answer)
	}
	s.Refused(codes.NotFound, "disk", "v1alpha1", "GetDiskNumberByName", `{"disk_name":"600a0981"}`)
	if _, err := s.Call("disk", "v1alpha1", "GetDiskNumberByName", `{"disk_name":""}`); err == nil {
		t.Error("an empty name finds a disk")
	}
}

// The state of a disk is told in both versions of the answer, and taken offline it
// is offline on the node.
func TestDiskStateBothWays(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	disk := s.Attach(sim.DiskSpec{Bus: "SAS"})
	for _, online := range []bool{true, false, true} {
		s.Must("disk", "v1beta2", "SetAttachState", fmt.Sprintf(`{"diskID":"1","isOnline":%t}`, online))
		if d := s.Disk(disk); d.Offline == online {
			t.Errorf("after SetAttachState(%t) the disk is %+v", online, d)
		}
		want := map[bool]string{true: `{"isOnline":true}`, false: `{}`}[online]
		for _, version := range []string{"v1beta3", "v1"} {
			if answer := s.Must("disk", version, "GetDiskState", `{"disk_number":1}`); answer != want {
				t.Errorf("%s: GetDiskState = %s, want %s", version, answer, want)
			}
		}
		if answer := s.Must("disk", "v1beta2", "GetAttachState", `{"diskID":"1"}`); answer != want {
			t.Errorf("GetAttachState = %s, want %s", answer, want)
		}
	}
	// The disk of the operating system stays online whoever asks.
	s.Refused(codes.FailedPrecondition, "disk", "v1beta2", "SetAttachState", `{"diskID":"0"}`)
	s.Refused(codes.FailedPrecondition, "disk", "v1", "SetDiskState", `{}`)
	if d := s.Disk(0); d.Offline {
		t.Error("the disk of the operating system is offline")
	}
}

// Partition 0 is all partitions of the disk, and any other number is that one.
func TestListVolumesOnDiskByPartition(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	disk, first, second := twoPartitions(s)
	list := func(ids ...string) string {
		for i := range ids {
			ids[i] = `"` + stack.Quoted(ids[i]) + `"`
		}
		return `{"volumeIds":[` + strings.Join(ids, ",") + `]}`
	}
	for _, version := range []string{"v1beta3", "v1", "v2alpha1"} {
		for partition, want := range map[int]string{0: list(first, second), 2: list(first), 3: list(second), 1: `{}`, 9: `{}`} {
			request := fmt.Sprintf(`{"disk_number":%d,"partition_number":%d}`, disk, partition)
			if answer := s.Must("volume", version, "ListVolumesOnDisk", request); answer != want {
				t.Errorf("%s: partition %d: %s, want %s", version, partition, answer, want)
			}
		}
	}
	for _, version := range []string{"v1alpha1", "v1beta1", "v1beta2"} {
		if answer := s.Must("volume", version, "ListVolumesOnDisk", fmt.Sprintf(`{"disk_id":"%d"}`, disk)); answer != list(first, second) {
			t.Errorf("%s: %s", version, answer)
		}
	}
	raw := s.Attach(sim.DiskSpec{Bus: "NVMe"})
	if answer := s.Must("volume", "v1", "ListVolumesOnDisk", fmt.Sprintf(`{"disk_number":%d}`, raw)); answer != `{}` {
		t.Errorf("a disk without a table has %s", answer)
	}
}

// C003: a disk with only the reserved partition gets one data partition; repeated,
// in any version, nothing happens. The listing never has an empty entry.
func TestC003_PartitionDiskOverTheWire(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	disk := s.Attach(sim.DiskSpec{Bus: "NVMe", SizeBytes: 256 * stack.MiB})
	s.OK(s.OS.InitializeDisk(context.Background(), disk))
	if d := s.Disk(disk); d.Partitions != 1 {
		t.Fatalf("an initialised disk is %+v", d)
	}
	s.Must("disk", "v1", "PartitionDisk", `{"disk_number":1}`)
	if d := s.Disk(disk); d.Partitions != 2 || len(d.Volumes) != 1 {
		t.Fatalf("the disk is %+v", d)
	}
	before := s.ImageSum(disk)
	for range 2 {
		eachTextNumber("1", func(group, version, method, request string) {
			if answer := s.Must(group, version, method, request); strings.Contains(answer, `""`) {
				t.Errorf("%s of %s answers %s", method, version, answer)
			}
		})
		s.Must("disk", "v1beta3", "PartitionDisk", `{"disk_number":1}`)
	}
	if after := s.ImageSum(disk); after != before {
		t.Error("a repeat has changed the disk")
	}
}
