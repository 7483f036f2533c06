package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// volumeAt asks the newest version for the volume at a path, or for the closest one.
func volumeAt(s *stack.Stack, method, path string) string {
	s.Helper()
	answer := s.Must("volume", "v2alpha1", method, fmt.Sprintf(`{"target_path":%q}`, path))
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(answer, `{"volumeId":"`), `"}`), `\\`, `\`)
}

// C015: the sizes are those of the volume that is mounted, also behind a link, and
// never those of the system drive; a plain folder is no volume; what lies on a file
// server is said so, and one that does not answer is Unavailable in time.
func TestC015_SizesAreThoseOfTheMountedVolume(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	_, id := s.Mounted(mountPath)
	s.OK(s.Node.MakeLink(context.Background(), linkPath, mountPath))
	s.MakeDir(objectPath)
	for _, path := range []string{mountPath, linkPath} {
		if got := volumeAt(s, "GetVolumeIDFromTargetPath", path); !strings.EqualFold(got, id) {
			t.Errorf("the volume at %s is %s, want %s", path, got, id)
		}
	}
	total, free, err := s.Node.DiskFreeSpace(context.Background(), id)
	s.OK(err)
	want := fmt.Sprintf(`{"totalBytes":"%d","usedBytes":"%d"}`, total, total-free)
	if got := s.Must("volume", "v1", "GetVolumeStats", fmt.Sprintf(`{"volume_id":%q}`, id)); got != want || total > 64<<20 {
		t.Errorf("stats are %s, want %s", got, want)
	}
	text := s.Refused(codes.FailedPrecondition, "volume", "v1beta1", "GetVolumeIDFromMount", fmt.Sprintf(`{"mount":%q}`, objectPath))
	if !strings.Contains(text, "mounted") {
		t.Errorf("%q does not say that nothing is mounted", text)
	}
	s.Share("u", "pw")
	s.Must("smb", "v1", "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, stack.Root+`\share`, "u", "pw"))
	s.Refused(codes.FailedPrecondition, "volume", "v1", "GetVolumeIDFromTargetPath", fmt.Sprintf(`{"target_path":%q}`, stack.Root+`\share`))
	s.Restart(func(cfg *stack.Config) { cfg.Policy.ProbeTimeout = 50 * time.Millisecond })
	s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "win32.FileAttributes", Count: -1, Latency: time.Hour}))
	started := time.Now()
	s.Refused(codes.Unavailable, "filesystem", "v1", "PathExists", fmt.Sprintf(`{"path":%q}`, stack.Root+`\share\x`))
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// C017 and C019: the tree of the report. The closest volume is found through links,
// chains of links and links relative to their own folder, and the look ends at a
// volume instead of failing with too many links.
func TestC017_C019_ClosestVolumeOverTheWire(t *testing.T) {
	t.Parallel()
	s := stack.New(t, func(cfg *stack.Config) { cfg.Policy.Roots = []string{`C:\`} })
	_, b := s.Mounted(`C:\mnt\volume`)
	_, c := s.Mounted(`C:\mnt\single`)
	system := s.Disk(0).Volumes[0]
	for _, volume := range s.Disk(0).Volumes {
		if slices.Contains(s.MountPaths(volume), `C:\`) {
			system = volume
		}
	}
	for _, folder := range []string{`C:\mnt\volume\a\b`, `C:\mnt\single\q`, `C:\foo`, `C:\disks`} {
		s.MakeDir(folder)
	}
	for path, target := range map[string]string{
		`C:\disks\x`: `C:\mnt\volume\a\b`, `C:\disks\chain`: `C:\disks\x`, `C:\disks\relative`: `..\mnt\single`, `C:\disks\byid`: b, `C:\disks\rooted`: `\mnt\single`,
		`C:\disks\loop`: `C:\disks\pool`, `C:\disks\pool`: `C:\disks\loop`, `C:\disks\self`: `C:\disks\self`,
	} {
		s.OK(s.Node.MakeLink(context.Background(), path, target))
	}
	for path, want := range map[string]string{
		`C:\disks\x`: b, `C:\mnt\single\q`: c, `C:\foo`: system, `C:\disks\chain`: b, `C:\disks\relative`: c, `C:\disks\relative\q`: c, `C:\disks\byid`: b,
		`C:\disks\byid\a`: b, `C:\disks\rooted\q`: c, `C:\mnt\volume`: b, `c:/MNT/volume/a`: b,
	} {
		if got := volumeAt(s, "GetClosestVolumeIDFromTargetPath", path); !strings.EqualFold(got, want) {
			t.Errorf("closest(%s) = %s, want %s", path, got, want)
		}
	}
	for _, path := range []string{`C:\disks\loop`, `C:\disks\pool\x`, `C:\disks\self`} {
		s.Refused(codes.FailedPrecondition, "volume", "v2alpha1", "GetClosestVolumeIDFromTargetPath", fmt.Sprintf(`{"target_path":%q}`, path))
	}
	s.Refused(codes.NotFound, "volume", "v2alpha1", "GetClosestVolumeIDFromTargetPath", `{"target_path":"C:\\foo\\none"}`)
	for path, want := range map[string]string{`C:\mnt\volume`: `{"isSymlink":true}`, `C:\disks\x`: `{"isSymlink":true}`, `C:\foo`: `{}`} {
		if got := s.Must("filesystem", "v1", "IsSymlink", fmt.Sprintf(`{"path":%q}`, path)); got != want {
			t.Errorf("IsSymlink(%s) = %s, want %s", path, got, want)
		}
	}
}

// C020: a volume without a drive letter is mounted, linked and found by its own name,
// and no path with a NUL or another control character gets to the node.
func TestC020_VolumesWithoutALetter(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	_, id := s.Formatted(64 * stack.MiB)
	s.Must("volume", "v1beta1", "MountVolume", fmt.Sprintf(`{"volume_id":%q,"path":%q}`, id, mountPath))
	s.Must("filesystem", "v1beta1", "LinkPath", fmt.Sprintf(`{"source_path":%q,"target_path":%q}`, mountPath, linkPath))
	s.WriteFile(linkPath+`\file`, "through the link")
	s.Holds(id+"file", "through the link")
	eachField(s, nil, filesystemOps+" MountVolume UnmountVolume GetVolumeIDFromTargetPath GetClosestVolumeIDFromTargetPath", func(f stringField, call func(string) error) {
		if f.path[0].Name() == "volume_id" {
			return
		}
		for _, control := range []string{"\x00", "\x01", "\t", "\n", "\r", "\x1f", "\x7f", "\u0085"} {
			for _, path := range []string{control + `:\x`, `C:\k\a` + control + `b`, `C:\k\` + control, `C:\k\x` + control} {
				var err error
				calls := s.Calls(func() { err = call(path) })
				if code := status.Code(err); code != codes.InvalidArgument || len(calls) > 0 {
					t.Errorf("%s = %q: %v, and the node was asked %q", f, path, err, calls)
				}
			}
		}
	})
}

// C021: the cache is written back before the mount point goes; when that fails, the
// mount stays and the call fails; what is unmounted already is not written back again.
func TestC021_FlushThenUnmountOverTheWire(t *testing.T) {
	t.Parallel()
	for version, names := range map[string][2]string{
		"v1alpha1": {"DismountVolume", "path"}, "v1beta2": {"DismountVolume", "path"}, "v1": {"UnmountVolume", "target_path"}, "v2alpha1": {"UnmountVolume", "target_path"},
	} {
		s := stack.New(t)
		_, id := s.Mounted(mountPath)
		method, field := names[0], names[1]
		request := fmt.Sprintf(`{"volume_id":%q,"%s":%q}`, id, field, mountPath)
		s.WriteFile(mountPath+`\file`, "dirty")
		for _, flush := range []string{"win32.FlushFileBuffers", "cim.Exec MSFT_Volume.Flush"} {
			s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: flush, Count: -1, Win32: 1117}))
		}
		if _, err := s.Call("volume", version, method, request); err == nil {
			t.Errorf("%s: the volume was unmounted although it cannot be flushed", version)
		}
		mustBeMounted(s, id, mountPath)
		s.OK(s.Node.ClearFaults(context.Background()))
		calls := s.Calls(func() {
			for range 3 {
				s.Must("volume", version, method, request)
			}
		})
		flushed := slices.IndexFunc(calls, isFlush)
		removed := slices.IndexFunc(calls, isUnmount)
		if flushed < 0 || removed < flushed {
			t.Errorf("%s: calls were %q", version, calls)
		}
		if n := len(slices.DeleteFunc(calls, func(c string) bool { return !isFlush(c) })); n != 1 {
			t.Errorf("%s: the volume was flushed %d times", version, n)
		}
		mustBeMounted(s, id)
	}
}

func isFlush(call string) bool {
	return strings.HasPrefix(call, "win32.FlushFileBuffers") || strings.HasPrefix(call, "cim.Exec MSFT_Volume.Flush")
}

func isUnmount(call string) bool { return strings.HasPrefix(call, "win32.DeleteVolumeMountPoint") }
