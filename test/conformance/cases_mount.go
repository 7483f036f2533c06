package conformance

import (
	"context"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

func mountCases() []Case {
	disk := []Need{NeedDisk}
	return []Case{
		{"volume/mount", GroupVolume, disk, volumeMount},
		{"volume/mount-refuses", GroupVolume, disk, volumeMountRefuses},
		{"volume/unmount", GroupVolume, disk, volumeUnmount},
		{"volume/stale-mount", GroupVolume, disk, volumeStaleMount},
		{"volume/closest", GroupVolume, disk, volumeClosest},
	}
}

// A mounted volume is reached by its path, and every question about the path leads
// to it.
func volumeMount(ctx context.Context, s *scene) {
	mount, second := s.path("deep", "m"), s.path("second")
	_, id := s.formatted(ctx)
	for range 2 {
		s.must(s.host.MountVolume(ctx, id, mount), "MountVolume")
	}
	s.write(ctx, mount+`\file`, "on the volume")
	s.must(s.host.MountVolume(ctx, strings.TrimSuffix(id, `\`), second), "MountVolume at a second path")
	s.holds(ctx, second+`\file`, "on the volume")
	if got, err := s.host.GetVolumeIDFromTargetPath(ctx, mount); err != nil || !sameVolume(got, id) {
		s.Errorf("GetVolumeIDFromTargetPath = %q, %v; want %q", got, err, id)
	}
	s.isLink(ctx, mount, true)
	s.exists(ctx, mount+`\file`, true)
	info, err := s.host.GetLink(ctx, mount)
	if !s.unsupported(err, "GetLink") && (err != nil || info.Kind != host.LinkMountPoint || !sameVolume(info.Target, id)) {
		s.Errorf("GetLink of a mount point: %+v, %v", info, err)
	}
	s.hasStats(ctx, id, mount)
	s.isMountedAt(ctx, id, mount, second)
}

// hasStats makes the case fail unless a path has the sizes of its volume, and the
// folder around it none.
func (s *scene) hasStats(ctx context.Context, id, path string) {
	got, err := s.host.GetPathStats(ctx, path)
	if s.unsupported(err, "GetPathStats") {
		return
	}
	s.must(err, "GetPathStats")
	want, err := s.host.GetVolumeStats(ctx, id)
	s.must(err, "GetVolumeStats")
	if got.TotalBytes != want.TotalBytes || got.UsedBytes <= 0 || got.UsedBytes > got.TotalBytes {
		s.Errorf("GetPathStats = %+v, while the volume has %+v", got, want)
	}
	_, err = s.host.GetPathStats(ctx, s.folder)
	s.fails(err, "GetPathStats of a plain folder", host.KindPrecondition)
}

// isMountedAt makes the case fail unless the host lists a volume at just these
// paths. Drive letters are left out: the mount manager may give one by itself.
func (s *scene) isMountedAt(ctx context.Context, id string, want ...string) {
	mounts, err := s.host.ListMounts(ctx)
	if s.unsupported(err, "ListMounts") {
		return
	}
	s.must(err, "ListMounts")
	var listed []string
	for _, m := range mounts {
		if sameVolume(m.VolumeID, id) && !isDriveRoot(m.Path) {
			listed = append(listed, m.Path)
		}
	}
	if !samePaths(listed, want) {
		s.Errorf("ListMounts has the volume at %q, want %q", listed, want)
	}
	info, ok := s.volumeInfo(ctx, id)
	if paths := slices.DeleteFunc(info.MountPaths, isDriveRoot); ok && !samePaths(paths, want) {
		s.Errorf("GetVolume has the volume at %q, want %q", paths, want)
	}
}

// isDriveRoot reports whether a path is that of a drive letter.
func isDriveRoot(path string) bool { return len(strings.TrimRight(path, `\`)) == len("C:") }

// samePaths compares paths without regard to order, case and final backslashes.
func samePaths(a, b []string) bool {
	plain := func(paths []string) []string {
		out := make([]string, 0, len(paths))
		for _, p := range paths {
			out = append(out, strings.ToLower(strings.TrimRight(p, `\`)))
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(plain(a), plain(b))
}

// Nothing is mounted over something else.
func volumeMountRefuses(ctx context.Context, s *scene) {
	_, id := s.formatted(ctx)
	_, other := s.mounted(ctx, s.path("other"))
	s.write(ctx, s.path("other", "file"), "of the other")
	s.fails(s.host.MountVolume(ctx, id, s.path("other")), "MountVolume where another volume is", host.KindPrecondition)
	s.write(ctx, s.path("full", "file"), "x")
	s.fails(s.host.MountVolume(ctx, id, s.path("full")), "MountVolume at a folder with a file in it", host.KindPrecondition)
	s.fails(s.host.MountVolume(ctx, id, s.path("full", "file")), "MountVolume at a file", host.KindPrecondition, host.KindExists)
	s.fails(s.host.MountVolume(ctx, id, s.outside+`\m`), "MountVolume outside the working folders", host.KindInvalid)
	s.fails(s.host.UnmountVolume(ctx, id, s.path("other")), "UnmountVolume where another volume is", host.KindPrecondition)
	s.holds(ctx, s.path("other", "file"), "of the other")
	s.holds(ctx, s.path("full", "file"), "x")
	s.isMountedAt(ctx, id)
	s.isMountedAt(ctx, other, s.path("other"))
	if names := s.names(ctx, s.outside); len(names) > 0 {
		s.Errorf("outside the working folders there is %q", names)
	}
}

// Unmounted, the path leads to the volume no more; what was written is there when it
// is mounted again.
func volumeUnmount(ctx context.Context, s *scene) {
	mount := s.path("m")
	_, id := s.mounted(ctx, mount)
	s.write(ctx, mount+`\file`, "kept")
	for range 2 {
		s.must(s.host.UnmountVolume(ctx, id, mount), "UnmountVolume")
		s.exists(ctx, mount+`\file`, false)
	}
	if s.has(ctx, s.folder, "m") && s.has(ctx, mount, "file") {
		s.Errorf("the file is still below the path")
	}
	s.isMountedAt(ctx, id)
	s.must(s.host.MountVolume(ctx, id, mount), "MountVolume again")
	s.holds(ctx, mount+`\file`, "kept")
	s.must(s.host.Rmdir(ctx, mount, true), "Rmdir of a mount point")
	if s.has(ctx, s.folder, "m") {
		s.Errorf("Rmdir has left the mount point")
	}
	s.must(s.host.MountVolume(ctx, id, mount), "MountVolume after Rmdir")
	s.holds(ctx, mount+`\file`, "kept")
}

// A mount point whose volume has gone is replaced by the next volume.
func volumeStaleMount(ctx context.Context, s *scene) {
	mount := s.path("m")
	d, gone := s.mounted(ctx, mount)
	_, id := s.formatted(ctx)
	s.must(s.host.WriteVolumeCache(ctx, gone), "WriteVolumeCache")
	s.must(d.Remove(ctx), "remove the scratch disk")
	s.must(s.host.Rescan(ctx), "Rescan")
	for range 2 {
		s.must(s.host.MountVolume(ctx, id, mount), "MountVolume at the mount point of a volume that has gone")
	}
	s.write(ctx, mount+`\file`, "x")
	if got, err := s.host.GetVolumeIDFromTargetPath(ctx, mount); err != nil || !sameVolume(got, id) {
		s.Errorf("GetVolumeIDFromTargetPath = %q, %v; want %q", got, err, id)
	}
	s.isMountedAt(ctx, id, mount)
}

// The closest volume of a path is the one that holds it, links followed.
func volumeClosest(ctx context.Context, s *scene) {
	mount := s.path("m")
	_, id := s.mounted(ctx, mount)
	s.write(ctx, mount+`\a\b\file`, "x")
	s.must(s.env.Files.MakeLink(ctx, s.path("link"), mount+`\a`), "make a link")
	for _, path := range []string{mount, mount + `\a`, mount + `\a\b\file`, s.path("link", "b")} {
		if got, err := s.host.GetClosestVolumeIDFromTargetPath(ctx, path); err != nil || !sameVolume(got, id) {
			s.Errorf("GetClosestVolumeIDFromTargetPath of %s = %q, %v; want %q", path, got, err, id)
		}
	}
	node, err := s.host.GetClosestVolumeIDFromTargetPath(ctx, s.folder)
	s.must(err, "GetClosestVolumeIDFromTargetPath of the working folder")
	if sameVolume(node, id) || !isVolumeID(node) {
		s.Errorf("GetClosestVolumeIDFromTargetPath of the working folder = %q", node)
	}
	_, err = s.host.GetVolumeIDFromTargetPath(ctx, mount+`\a`)
	s.fails(err, "GetVolumeIDFromTargetPath of a plain folder", host.KindPrecondition, host.KindNotFound)
	_, err = s.host.GetClosestVolumeIDFromTargetPath(ctx, s.path("absent"))
	s.fails(err, "GetClosestVolumeIDFromTargetPath of nothing", host.KindNotFound)
	_, err = s.host.GetClosestVolumeIDFromTargetPath(ctx, s.outside)
	s.fails(err, "GetClosestVolumeIDFromTargetPath outside the working folders", host.KindInvalid)
}
