package e2e_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// mountPath is where the cases of the upstream table mount.
const mountPath = stack.Root + `\m`

// volumeWords put a volume and its disk in place of those of the upstream table.
func volumeWords(disk uint32, id string) []string {
	const both = `["\\\\?\\Volume{a}\\","\\\\?\\Volume{b}\\"]`
	return []string{
		both, `["` + stack.Quoted(id) + `"]`, `\\\\?\\Volume{a}\\`, stack.Quoted(id),
		"319", fmt.Sprint(disk), "4294967295", fmt.Sprint(disk),
	}
}

func volumeWorlds() map[string]func(*stack.Stack) world {
	formatted := func(s *stack.Stack) world {
		disk, id := s.Formatted(64 * stack.MiB)
		return world{volumeWords(disk, id), untouched(s)}
	}
	return map[string]func(*stack.Stack) world{
		"ListVolumesOnDisk": formatted, "IsVolumeFormatted": formatted, "GetDiskNumberFromVolumeID": formatted,
		"MountVolume": freeVolume, "UnmountVolume": mountedVolume, "FormatVolume": rawVolume,
		"ResizeVolume": grownVolume, "GetVolumeStats": filledVolume, "WriteVolumeCache": dirtyVolume,
		"GetVolumeIDFromTargetPath": locatedVolume, "GetClosestVolumeIDFromTargetPath": locatedVolume,
	}
}

// freeVolume is a volume that is mounted nowhere.
func freeVolume(s *stack.Stack) world {
	disk, id := s.Formatted(64 * stack.MiB)
	return world{volumeWords(disk, id), func() {
		mustBeMounted(s, id, mountPath)
		s.WriteFile(mountPath+`\file`, "written below the mount")
		s.Holds(id+"file", "written below the mount")
	}}
}

func mustBeMounted(s *stack.Stack, id string, at ...string) {
	s.Helper()
	paths := s.MountPaths(id)
	for i := range paths {
		paths[i] = strings.TrimSuffix(paths[i], `\`)
	}
	if !slices.Equal(paths, at) {
		s.Errorf("%s is mounted at %q, want %q", id, paths, at)
	}
}

// mountedVolume is a volume with a file that is still in the cache.
func mountedVolume(s *stack.Stack) world {
	disk, id := s.Mounted(mountPath)
	s.WriteFile(mountPath+`\file`, "dirty")
	return world{volumeWords(disk, id), func() {
		mustBeMounted(s, id)
		if names := s.Names(mountPath); !slices.Equal(names, []string{}) {
			s.Errorf("the folder that was mounted on holds %q", names)
		}
		s.PowerCycle() // loses what is not on the disk
		s.Holds(id+"file", "dirty")
	}}
}

// rawVolume is a volume without a file system.
func rawVolume(s *stack.Stack) world {
	disk, id := s.Volume(64 * stack.MiB)
	return world{volumeWords(disk, id), func() {
		partitions, err := s.OS.Partitions(context.Background(), disk)
		s.OK(err)
		data := partitions[len(partitions)-1]
		if name := imageText(s, disk, data.OffsetBytes+3, 8); name != "NTFS    " {
			s.Errorf("the boot sector is that of %q", name)
		}
	}}
}

// imageText reads the bytes of a disk's medium.
func imageText(s *stack.Stack, disk uint32, offsetBytes int64, length int) string {
	s.Helper()
	file, err := os.Open(s.Disk(disk).Spec.Image)
	s.OK(err)
	defer file.Close()
	text := make([]byte, length)
	_, err = file.ReadAt(text, offsetBytes)
	s.OK(err)
	return string(text)
}

// grownVolume is a volume on a disk that has grown.
func grownVolume(s *stack.Stack) world {
	const wantBytes = 5 << 30 // the size the table asks for
	disk, id := s.Formatted(1 << 30)
	s.WriteFile(id+"file", "before")
	s.OK(s.Node.GrowDisk(context.Background(), disk, 8<<30))
	return world{volumeWords(disk, id), func() {
		partitions, err := s.OS.Partitions(context.Background(), disk)
		s.OK(err)
		if size := partitions[len(partitions)-1].SizeBytes; size != wantBytes {
			s.Errorf("the partition has %d bytes, want %d", size, int64(wantBytes))
		}
		total, _, err := s.Node.DiskFreeSpace(context.Background(), id)
		s.OK(err)
		if total > wantBytes || total < wantBytes-wantBytes/50 {
			s.Errorf("the file system has %d bytes, want about %d", total, int64(wantBytes))
		}
		s.Holds(id+"file", "before")
	}}
}

// filledVolume is a volume with a file on it.
func filledVolume(s *stack.Stack) world {
	disk, id := s.Formatted(64 * stack.MiB)
	s.WriteFile(id+"file", strings.Repeat("x", 3<<20))
	total, free, err := s.Node.DiskFreeSpace(context.Background(), id)
	s.OK(err)
	if used := total - free; used < 3<<20 {
		s.Fatalf("the node says that %d bytes are used", used)
	}
	words := append(volumeWords(disk, id), "2199023255552", fmt.Sprint(total), "8589934592", fmt.Sprint(total-free))
	return world{words, untouched(s)}
}

// dirtyVolume has a file in the cache which a power cut would lose.
func dirtyVolume(s *stack.Stack) world {
	disk, id := s.Mounted(mountPath)
	s.WriteFile(mountPath+`\file`, "dirty")
	return world{volumeWords(disk, id), func() {
		mustBeMounted(s, id, mountPath)
		s.PowerCycle()
		s.Holds(mountPath+`\file`, "dirty")
	}}
}

// locatedVolume is mounted, with another one beside it, and has a file.
func locatedVolume(s *stack.Stack) world {
	disk, id := s.Mounted(mountPath)
	s.Mounted(stack.Root + `\n`)
	s.WriteFile(mountPath+`\f`, "inside")
	return world{volumeWords(disk, id), untouched(s)}
}

// A second look at what a world may not show: partition numbers select, and each
// volume is listed once, in every version.
func twoPartitions(s *stack.Stack) (disk uint32, first, second string) {
	s.Helper()
	ctx := context.Background()
	number := s.Attach(sim.DiskSpec{Bus: "NVMe", SizeBytes: 512 * stack.MiB})
	s.OK(s.OS.InitializeDisk(ctx, number))
	s.OK(s.OS.CreateDataPartition(ctx, number))
	first = s.Disk(number).Volumes[0]
	s.OK(s.OS.FormatVolume(ctx, first, host.FormatOptions{FileSystem: "NTFS"}))
	s.OK(s.Node.GrowDisk(ctx, number, 1<<30))
	s.OK(s.OS.Rescan(ctx))
	s.OK(s.OS.CreateDataPartition(ctx, number))
	for _, id := range s.Disk(number).Volumes {
		if id != first {
			second = id
		}
	}
	return number, first, second
}
