package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/test/upstream"
)

// smallDisk is the size of disks whose every byte is compared; a GPT needs 32 MiB.
const smallDisk = 40 * stack.MiB

// signature is what gives somebody's data away.
type signature struct {
	name        string
	offsetBytes int64
	bytes       string
}

// signatures are those of what is found on disks of mixed clusters, and of data
// nobody can name.
func signatures() []signature {
	return []signature{
		{"ext4", 1080, "\x53\xef"}, {"XFS", 0, "XFSB"}, {"LUKS", 0, "LUKS\xba\xbe\x00\x02"}, {"LVM", 512, "LABELONE"},
		{"Btrfs", 65600, "_BHRfS_M"}, {"swap", 4086, "SWAPSPACE2"}, {"unknown data", 300000, "x"}, {"data in the first byte", 0, "\x01"},
	}
}

// foreignDisk attaches a disk with somebody's data on the whole of it.
func foreignDisk(s *stack.Stack, mark signature) uint32 {
	s.Helper()
	number := s.Attach(sim.DiskSpec{Bus: "NVMe", Serial: mark.name, SizeBytes: smallDisk})
	s.OK(s.Node.CorruptDisk(context.Background(), number, mark.offsetBytes, []byte(mark.bytes)))
	return number
}

// foreignVolume attaches a disk with somebody's data in its only data partition.
func foreignVolume(s *stack.Stack, mark signature) (disk uint32, id string) {
	s.Helper()
	disk, id = s.Volume(smallDisk)
	partitions, err := s.OS.Partitions(context.Background(), disk)
	s.OK(err)
	at := partitions[len(partitions)-1].OffsetBytes + mark.offsetBytes
	s.OK(s.Node.CorruptDisk(context.Background(), disk, at, []byte(mark.bytes)))
	return disk, id
}

// Invariant 1 and C014: whatever callers of whatever version ask, at once and across
// power cuts, what holds data keeps every byte.
func TestC014_Invariant1_DataIsNeverFormattedOrPartitioned(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	sums, volumes := map[uint32]string{}, map[uint32]string{}
	for _, mark := range signatures() {
		sums[foreignDisk(s, mark)] = ""
		disk, id := foreignVolume(s, mark)
		sums[disk], volumes[disk] = "", id
	}
	for _, fs := range []string{"NTFS", "ReFS", "exFAT", "FAT32"} {
		disk, id := s.Volume(64 * stack.MiB)
		s.OK(s.OS.FormatVolume(context.Background(), id, host.FormatOptions{FileSystem: fs}))
		sums[disk], volumes[disk] = "", id
	}
	for disk := range sums {
		sums[disk] = s.ImageSum(disk)
	}
	for round := range 2 {
		s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "*", Nth: 150 * (round + 1), Hook: func() { _ = s.Node.PowerCut(context.Background()) }}))
		askAll(s, sums, volumes)
		s.PowerCycle()
		for disk, sum := range sums {
			if s.ImageSum(disk) != sum {
				t.Errorf("round %d: disk %d has changed", round, disk)
			}
		}
	}
	for _, mark := range signatures() {
		_, id := foreignVolume(s, mark)
		eachCase("FormatVolume IsVolumeFormatted", func(c upstream.Case) {
			s.Refused(codes.FailedPrecondition, c.Group, c.Version, c.Method, fmt.Sprintf(`{"volume_id":%q}`, id))
		})
	}
}

// askAll asks at once, in every version, to partition every disk and to format every
// volume.
func askAll(s *stack.Stack, disks map[uint32]string, volumes map[uint32]string) {
	var all sync.WaitGroup
	ask := func(c upstream.Case, request string) {
		all.Go(func() {
			_, err := s.Call(c.Group, c.Version, c.Method, request)
			if code := status.Code(err); code == codes.Unknown || code == codes.DeadlineExceeded {
				s.Errorf("%s %s: %v", c.Name(), request, err)
			}
		})
	}
	for disk := range disks {
		eachCase("PartitionDisk", func(c upstream.Case) {
			if c.Version == "v1" || c.Version == "v1beta3" {
				ask(c, fmt.Sprintf(`{"disk_number":%d}`, disk))
			} else {
				ask(c, fmt.Sprintf(`{"diskID":"%d"}`, disk))
			}
		})
	}
	for _, id := range volumes {
		eachCase("FormatVolume", func(c upstream.Case) { ask(c, fmt.Sprintf(`{"volume_id":%q}`, id)) })
	}
	all.Wait()
}

// C014: a volume of which something cannot be read is not an empty one. Every single
// call that formatting makes fails once, on a volume with foreign data and on one with
// a file system of Windows; both keep every byte.
func TestC014_WhatCannotBeReadIsNotEmpty(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	blankDisk, blank := s.Volume(64 * stack.MiB)
	request := func(id string) string { return fmt.Sprintf(`{"volume_id":%q}`, id) }
	calls := s.Calls(func() { s.Must("volume", "v1", "FormatVolume", request(blank)) })
	foreignDisk, foreign := foreignVolume(s, signatures()[0])
	for _, volume := range []struct {
		name, id string
		disk     uint32
	}{{"foreign", foreign, foreignDisk}, {"NTFS", blank, blankDisk}} {
		before := s.ImageSum(volume.disk)
		for name, times := range countNames(calls) {
			for nth := 1; nth <= times; nth++ {
				for _, method := range []string{"IsVolumeFormatted", "FormatVolume"} {
					s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: name, Nth: nth, Win32: 1117}))
					answer, err := s.Call("volume", "v1", method, request(volume.id))
					s.OK(s.Node.ClearFaults(context.Background()))
					if err == nil && (volume.name == "foreign" || method == "IsVolumeFormatted" && answer == `{}`) {
						t.Errorf("%s of %s answers %s when call %d of %s fails", method, volume.name, answer, nth, name)
					}
				}
			}
		}
		if s.ImageSum(volume.disk) != before {
			t.Errorf("the %s volume has changed", volume.name)
		}
	}
}

// countNames counts the calls of each name, but for those that close handles: Windows
// has closed a handle or never opened it.
func countNames(calls []string) map[string]int {
	counts := map[string]int{}
	for _, call := range calls {
		words := strings.Fields(call)
		name := words[0]
		if strings.HasPrefix(name, "cim.") || name == "win32.DeviceIoControl" {
			name += " " + words[1]
		}
		counts[name]++
	}
	delete(counts, "win32.CloseHandle")
	return counts
}
