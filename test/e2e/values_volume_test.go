package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/test/upstream"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// unknownVolume is the id of a volume no node has.
const unknownVolume = `\\?\Volume{00000000-1111-2222-3333-444444444444}\`

// eachCase goes over the cases of the upstream table whose operation is one of ops.
func eachCase(ops string, do func(c upstream.Case)) {
	for _, c := range upstream.Cases() {
		op, _, _ := strings.Cut(c.Call, "(")
		if strings.Contains(" "+ops+" ", " "+op+" ") {
			do(c)
		}
	}
}

// eachField goes over the string fields of those cases, and calls do with a function
// that makes the call with a value in the field.
func eachField(s *stack.Stack, words []string, ops string, do func(f stringField, call func(value string) error)) {
	s.Helper()
	fields, err := stringFields(strings.NewReplacer(words...))
	s.OK(err)
	for _, f := range fields {
		op, _, _ := strings.Cut(f.Call, "(")
		if strings.Contains(" "+ops+" ", " "+op+" ") {
			do(f, func(value string) error { return invoke(s, f, value) })
		}
	}
}

// volumeOps are the operations that name a volume.
const volumeOps = "MountVolume UnmountVolume IsVolumeFormatted FormatVolume ResizeVolume GetVolumeStats GetDiskNumberFromVolumeID WriteVolumeCache"

// An empty or malformed volume id is refused before the node is asked anything, in
// every method of every version; an unknown one is not found.
func TestVolumeIDs(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	disk, id := s.Mounted(mountPath)
	guid := strings.TrimSuffix(strings.TrimPrefix(id, `\\?\Volume`), `\`)
	methods := 0
	eachField(s, volumeWords(disk, id), volumeOps, func(f stringField, call func(string) error) {
		if f.path[0].Name() != "volume_id" {
			return
		}
		methods++
		for _, bad := range []string{"", `C:\`, `\\?\Volume{a}\`, `\\?\Volume` + guid + `x\`, `\\.\Volume` + guid + `\`, guid, id + `file`, id + `\`, `\\?\PhysicalDrive0`} {
			var err error
			calls := s.Calls(func() { err = call(bad) })
			if status.Code(err) != codes.InvalidArgument || len(calls) > 0 {
				t.Errorf("%s = %q: %v, and the node was asked %q", f, bad, err, calls)
			}
		}
		want := codes.NotFound
		if worldOf(f.Case) == "UnmountVolume" {
			want = codes.FailedPrecondition // another volume is mounted there
		}
		if err := call(unknownVolume); status.Code(err) != want {
			t.Errorf("%s = an unknown volume: %v, want %v", f, err, want)
		}
	})
	if methods != 44 {
		t.Errorf("%d methods were looked at", methods)
	}
	mustBeMounted(s, id, mountPath)
}

// A volume is named with or without its final backslash, in any case.
func TestVolumeIDSpellings(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	_, id := s.Formatted(64 * stack.MiB)
	bare := strings.TrimSuffix(id, `\`)
	for i, spelling := range []string{bare, strings.ToUpper(id), strings.ToLower(bare), `\\?\VOLUME` + strings.TrimPrefix(id, `\\?\Volume`)} {
		path := fmt.Sprintf(`%s\%d`, stack.Root, i)
		request := fmt.Sprintf(`{"volume_id":%q,"target_path":%q}`, spelling, path)
		s.Must("volume", "v1", "MountVolume", request)
		mustBeMounted(s, id, path)
		s.Must("volume", "v1", "UnmountVolume", request)
		mustBeMounted(s, id)
	}
}

// The paths of the volume group are confined like all others. Unchecked, a driver
// could mount anywhere on the node and learn of any path.
func TestVolumePathsAreConfined(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.Canaries()
	disk, id := s.Mounted(mountPath)
	outside, methods := s.Outside(), 0
	eachField(s, volumeWords(disk, id), "MountVolume UnmountVolume GetVolumeIDFromTargetPath GetClosestVolumeIDFromTargetPath", func(f stringField, call func(string) error) {
		if f.path[0].Name() == "volume_id" {
			return
		}
		methods++
		for _, path := range outsidePaths() {
			if err := call(path); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%s = %q: %v", f, path, err)
			}
		}
	})
	if methods != 18 {
		t.Errorf("%d methods were looked at", methods)
	}
	mustBeMounted(s, id, mountPath)
	if s.Outside() != outside {
		t.Error("outside the working folder something has changed")
	}
}

// outsidePaths are paths that are not below the working folder, whatever they look like.
func outsidePaths() []string {
	return []string{
		"", `C:\`, `C:\outside`, `C:\k-x`, `C:\k-x\y`, `C:\k2`, `C:\kk\x`, `C:\k.`, `C:\k \x`, `C:\k.\x`, `D:\k\x`, `C:k\x`, `k\x`, `x`,
		`C:\k\..\outside`, `C:\k\x\..\..\outside`, `C:\k\..`, `C:/k/../x`, `\outside`, `\\srv\share`, `\\?\C:\outside`, `\\?\C:\k\..\outside`, `\\.\C:\k\x`,
		`\\?\Volume{00000000-1111-2222-3333-444444444444}\x`, `\\?\GLOBALROOT\x`, `C:\k\nul`, `C:\k\x:stream`, "C:\\k\\a\x00", "C:\\k\\a\nb",
	}
}

// C011: a gain up to 100 MiB is not worth a resize, nor is a smaller size; a
// negative size is refused, 0 is as large as possible, and more than there is room
// for is said so.
func TestC011_ResizeVolumeOverTheWire(t *testing.T) {
	t.Parallel()
	const threshold = 100 * stack.MiB
	s := stack.New(t)
	disk, id := s.Formatted(1 << 30)
	s.OK(s.Node.GrowDisk(context.Background(), disk, 4<<30))
	size := func() int64 {
		partitions, err := s.OS.Partitions(context.Background(), disk)
		s.OK(err)
		return partitions[len(partitions)-1].SizeBytes
	}
	resize := func(version, field string, bytes int64) error {
		_, err := s.Call("volume", version, "ResizeVolume", fmt.Sprintf(`{"volume_id":%q,"%s":"%d"}`, id, field, bytes))
		return err
	}
	versions := [][2]string{{"v1alpha1", "size"}, {"v1beta1", "size"}, {"v1beta2", "size"}, {"v1beta3", "size_bytes"}, {"v1", "size_bytes"}, {"v2alpha1", "size_bytes"}}
	for _, v := range versions {
		before := size()
		for _, bytes := range []int64{1, before / 2, before - 1, before, before + threshold - 1, before + threshold} {
			calls := s.Calls(func() {
				if err := resize(v[0], v[1], bytes); err != nil {
					t.Errorf("%s: resize from %d to %d bytes: %v", v[0], before, bytes, err)
				}
			})
			if n := countPrefix(calls, "cim.Exec MSFT_Partition.Resize"); n != 0 || size() != before {
				t.Errorf("%s: resize from %d to %d bytes was carried out", v[0], before, bytes)
			}
		}
		for _, bytes := range []int64{-1, -1 << 63} {
			if err := resize(v[0], v[1], bytes); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%s: resize to %d bytes: %v", v[0], bytes, err)
			}
		}
		if err := resize(v[0], v[1], 1<<40); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s: resize to 1 TiB: %v", v[0], err)
		}
		calls := s.Calls(func() { s.OK(resize(v[0], v[1], before+threshold+stack.MiB)) })
		if n := countPrefix(calls, "cim.Exec MSFT_Partition.Resize"); n != 1 || size() != before+threshold+stack.MiB {
			t.Errorf("%s: %d resize calls, size %d", v[0], n, size())
		}
	}
	s.OK(resize("v1", "size_bytes", 0))
	if got := size(); got < 4<<30-32*stack.MiB {
		t.Errorf("grown to the maximum, the partition has %d bytes", got)
	}
	last := size()
	s.OK(resize("v1", "size_bytes", 0))
	if size() != last {
		t.Error("a second growth to the maximum changed the size")
	}
}

func countPrefix(list []string, prefix string) int {
	n := 0
	for _, text := range list {
		if strings.HasPrefix(text, prefix) {
			n++
		}
	}
	return n
}

// C011: the sizes of the report. A maximum a little above the present size, and 0 as
// the size asked for, is success without a resize.
func TestC011_MaximumALittleAbove(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	disk, id := s.Formatted(3204382720)
	s.OK(s.Node.GrowDisk(context.Background(), disk, 3204382720+48640*512))
	s.OK(s.OS.Rescan(context.Background()))
	calls := s.Calls(func() { s.Must("volume", "v1beta1", "ResizeVolume", fmt.Sprintf(`{"volume_id":%q}`, id)) })
	if n := countPrefix(calls, "cim.Exec MSFT_Partition.Resize"); n != 0 {
		t.Errorf("%d resize calls", n)
	}
}

// C013: a node that does not say how large a partition can be is not taken to have
// said 0.
func TestC013_UnknownMaximumOverTheWire(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	disk, id := s.Formatted(1 << 30)
	s.OK(s.Node.GrowDisk(context.Background(), disk, 4<<30))
	s.OK(s.Node.SetService(context.Background(), sim.Service{Name: "defragsvc", StartType: 4, State: serviceStopped, DependsOn: []string{"RpcSs"}}))
	before, err := s.OS.Partitions(context.Background(), disk)
	s.OK(err)
	_, err = s.Call("volume", "v1", "ResizeVolume", fmt.Sprintf(`{"volume_id":%q}`, id))
	after, partitionsErr := s.OS.Partitions(context.Background(), disk)
	s.OK(partitionsErr)
	grown := after[len(after)-1].SizeBytes - before[len(before)-1].SizeBytes
	switch {
	case err == nil && grown < 2<<30:
		t.Errorf("the call succeeded and the partition has grown by %d bytes", grown)
	case err != nil && (status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "defragsvc") || grown != 0):
		t.Errorf("got %v, grown by %d bytes; want Unavailable that names defragsvc", err, grown)
	}
}

// The old names of the volume group keep the code and the reason of a failure, as
// the newest ones give them.
func TestOldVolumeMethodsKeepTheError(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	_, id := s.Volume(64 * stack.MiB)
	s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "cim.Exec MSFT_Volume.Format", Count: -1, CIM: &cim.Error{HRESULT: cim.AccessDenied}}))
	texts := map[string]bool{}
	eachCase("FormatVolume", func(c upstream.Case) {
		texts[s.Refused(codes.PermissionDenied, c.Group, c.Version, c.Method, fmt.Sprintf(`{"volume_id":%q}`, id))] = true
	})
	if len(texts) != 1 {
		t.Errorf("the versions say %d different things: %v", len(texts), texts)
	}
	eachCase("GetDiskNumberFromVolumeID GetVolumeStats WriteVolumeCache", func(c upstream.Case) {
		s.Refused(codes.NotFound, c.Group, c.Version, c.Method, fmt.Sprintf(`{"volume_id":%q}`, unknownVolume))
	})
	for _, m := range [][3]string{{"v1beta1", "GetVolumeIDFromMount", "mount"}, {"v1beta2", "GetVolumeIDFromMount", "mount"}, {"v1", "GetVolumeIDFromTargetPath", "target_path"}} {
		s.Refused(codes.NotFound, "volume", m[0], m[1], fmt.Sprintf(`{"%s":%q}`, m[2], stack.Root+`\missing`))
		s.Refused(codes.FailedPrecondition, "volume", m[0], m[1], fmt.Sprintf(`{"%s":%q}`, m[2], stack.Root))
	}
}
