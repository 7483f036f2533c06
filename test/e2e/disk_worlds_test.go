package e2e_test

import (
	"context"
	"fmt"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// dataDisk attaches the disk that is number 319 in the upstream table. It is on a
// shared bus, so it comes offline and read-only.
func dataDisk(s *stack.Stack, change ...func(*sim.DiskSpec)) (number uint32, words []string) {
	s.Helper()
	location := "Integrated : Adapter 4 : Port 3 : Target 2 : LUN 7"
	spec := sim.DiskSpec{Bus: "SAS", Location: &location, IDs: []sim.DeviceID{{CodeSet: 2, Type: 8, ID: []byte("eui.0025")}}}
	for _, c := range change {
		c(&spec)
	}
	number = s.Attach(spec)
	return number, []string{
		`"319":{"LUNID":"7"}`, fmt.Sprintf(`"%d":{"Adapter":"4","Bus":"3","Target":"2","LUNID":"7"}`, number),
		"319", fmt.Sprint(number),
	}
}

// untouched returns a check that the disk of the operating system is as it was: a
// call that goes wrong with its disk number lands there.
func untouched(s *stack.Stack) func() {
	s.Helper()
	before := fmt.Sprint(s.Disk(0))
	return func() {
		s.Helper()
		if after := fmt.Sprint(s.Disk(0)); after != before {
			s.Errorf("disk 0 was %s and is %s", before, after)
		}
	}
}

func diskWorlds() map[string]func(*stack.Stack) world {
	return map[string]func(*stack.Stack) world{
		"ListDiskLocations": func(s *stack.Stack) world {
			_, words := dataDisk(s)
			// "Integrated : Adapter 11 : Port 0 : Target 0 : LUN 0" is what the node
			// says of its system disk.
			words = append(words, `"0","Bus":"1","Target":"2","LUNID":"3"`, `"11","Bus":"0","Target":"0","LUNID":"0"`)
			return world{words, untouched(s)}
		},
		"ListDiskIDs":         identifiedDisks,
		"GetDiskNumberByName": identifiedDisks,
		"PartitionDisk": func(s *stack.Stack) world {
			number, words := dataDisk(s)
			systemDisk := untouched(s)
			return world{words, func() {
				d := s.Disk(number)
				if d.Style != "GPT" || d.Partitions != 2 || len(d.Volumes) != 1 || d.Offline || d.ReadOnly {
					s.Errorf("after PartitionDisk the disk is %+v", d)
				}
				systemDisk()
			}}
		},
		"Rescan":       rescannedDisk,
		"GetDiskStats": sizedDisk,
		"SetDiskState": func(s *stack.Stack) world {
			number, words := dataDisk(s)
			if d := s.Disk(number); !d.Offline || !d.ReadOnly {
				s.Fatalf("a new shared disk is %+v", d)
			}
			systemDisk := untouched(s)
			return world{words, func() {
				if d := s.Disk(number); d.Offline {
					s.Errorf("the disk is still offline: %+v", d)
				}
				systemDisk()
			}}
		},
		"GetDiskState": func(s *stack.Stack) world {
			number, words := dataDisk(s)
			s.OK(s.OS.SetDiskOnline(context.Background(), number, true))
			return world{words, untouched(s)}
		},
	}
}

func identifiedDisks(s *stack.Stack) world {
	_, words := dataDisk(s)
	return world{append(words, "naa.600a", "", "S-0", "SIMSYSTEM0"), untouched(s)}
}

func sizedDisk(s *stack.Stack) world {
	const sizeBytes = 3 << 30
	_, words := dataDisk(s, func(spec *sim.DiskSpec) { spec.SizeBytes = sizeBytes })
	return world{append(words, "1099511627776", fmt.Sprint(sizeBytes)), untouched(s)}
}

// rescannedDisk has a disk that has grown, which the node sees after a rescan.
func rescannedDisk(s *stack.Stack) world {
	number, words := dataDisk(s)
	s.OK(s.OS.SetDiskOnline(context.Background(), number, true))
	s.OK(s.Node.GrowDisk(context.Background(), number, 256*stack.MiB))
	if size := s.Disk(number).SizeBytes; size != 64*stack.MiB {
		s.Fatalf("the node sees %d bytes before the rescan", size)
	}
	return world{words, func() {
		if size := s.Disk(number).SizeBytes; size != 256*stack.MiB {
			s.Errorf("the node sees %d bytes after the rescan", size)
		}
	}}
}
