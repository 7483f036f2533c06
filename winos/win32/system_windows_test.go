package win32

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc/mgr"
)

const (
	testAccess = FileListDir | FileReadAttr | Synchronize
	testShare  = ShareRead | ShareWrite
)

func openDir(t *testing.T, path string) Handle {
	t.Helper()
	h, err := System().CreateFile(t.Context(), path, Open{Access: testAccess, Share: testShare, Directory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := System().CloseHandle(h); err != nil {
			t.Error(err)
		}
	})
	return h
}

func wantCode(t *testing.T, err error, codes ...uint32) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || !slices.Contains(codes, e.Code) {
		t.Errorf("error %v, want one of %d", err, codes)
	}
}

func TestSystemFiles(t *testing.T) {
	api, folder := System(), t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "File.txt"), []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := openDir(t, folder)
	h, err := api.OpenAt(t.Context(), root, "FILE.TXT", Open{Access: testAccess, Share: testShare})
	if err != nil {
		t.Fatal(err)
	}
	info, err := api.Info(t.Context(), h)
	if err != nil || info.SizeBytes != 10 || info.Attributes&AttrDirectory != 0 || info.ReparseTag != 0 {
		t.Errorf("info = %+v, %v", info, err)
	}
	buffer := make([]byte, 4)
	if n, err := api.ReadAt(t.Context(), h, buffer, 3); err != nil || string(buffer[:n]) != "3456" {
		t.Errorf("read %q, %v", buffer[:n], err)
	}
	_, err = api.ReadAt(t.Context(), h, buffer, 100)
	wantCode(t, err, ErrHandleEOF)
	path, err := api.FinalPath(t.Context(), h)
	if err != nil || !strings.HasSuffix(path, `\File.txt`) || !strings.HasPrefix(path, `\\?\`) {
		t.Errorf("path %q, %v", path, err)
	}
	if err := api.CloseHandle(h); err != nil {
		t.Error(err)
	}
	_, err = api.CreateFile(t.Context(), filepath.Join(folder, "File.txt"), Open{Access: testAccess, Share: testShare, Directory: true})
	wantCode(t, err, ErrDirectory)
}

func TestSystemFolders(t *testing.T) {
	api, folder := System(), t.TempDir()
	root := openDir(t, folder)
	create := Open{Access: testAccess, Share: testShare, Create: true, Directory: true}
	sub, err := api.OpenAt(t.Context(), root, "sub", create)
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.OpenAt(t.Context(), root, "SUB", create)
	wantCode(t, err, ErrAlreadyExists, ErrFileExists)
	var want []string
	for _, name := range []string{"one", "two", strings.Repeat("l", 200), "ünï"} {
		h, err := api.OpenAt(t.Context(), sub, name, create)
		if err != nil {
			t.Fatal(err)
		}
		if err := api.CloseHandle(h); err != nil {
			t.Error(err)
		}
		want = append(want, name)
	}
	names, err := api.ReadDir(t.Context(), sub)
	slices.Sort(names)
	slices.Sort(want)
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("names %q, %v", names, err)
	}
	if err := api.CloseHandle(sub); err != nil {
		t.Error(err)
	}
	remove := Open{Access: testAccess | AccessDelete, Share: testShare}
	sub, err = api.OpenAt(t.Context(), root, "sub", remove)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, api.Delete(t.Context(), sub), ErrDirNotEmpty)
	one, err := api.OpenAt(t.Context(), sub, "one", remove)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(api.Delete(t.Context(), one), api.CloseHandle(one), api.CloseHandle(sub)); err != nil {
		t.Error(err)
	}
	_, err = api.OpenAt(t.Context(), root, "one", remove)
	wantCode(t, err, ErrFileNotFound)
}

// Names that the native calls would take for something else than one component.
func TestSystemOpenAtRefuses(t *testing.T) {
	api, root := System(), openDir(t, t.TempDir())
	for _, name := range []string{"", ".", "..", `a\b`, "a/b", "file:stream", "nul\x00byte"} {
		_, err := api.OpenAt(t.Context(), root, name, Open{Access: testAccess, Share: testShare})
		wantCode(t, err, ErrInvalidName)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := api.OpenAt(ctx, root, "x", Open{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after the end of the context", err)
	}
}

// While a folder is held it cannot be renamed, and nor can those above it.
func TestSystemHeldFoldersStayPut(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	openDir(t, filepath.Join(folder, "a", "b"))
	if err := os.Rename(filepath.Join(folder, "a", "b"), filepath.Join(folder, "a", "c")); err == nil {
		t.Error("a held folder was renamed")
	}
}

func TestSystemVolumes(t *testing.T) {
	api := System()
	volumes, err := api.FindVolumes(t.Context())
	if err != nil || len(volumes) == 0 {
		t.Fatalf("volumes %q, %v", volumes, err)
	}
	var mounts []string
	for _, volume := range volumes {
		paths, err := api.VolumePathNames(t.Context(), volume)
		if err != nil {
			t.Errorf("%s: %v", volume, err)
		}
		mounts = append(mounts, paths...)
	}
	if !slices.Contains(mounts, `C:\`) {
		t.Errorf("mounts %q", mounts)
	}
	total, free, err := api.DiskFreeSpace(t.Context(), `C:\`)
	if err != nil || total == 0 || free > total {
		t.Errorf("space %d, %d, %v", total, free, err)
	}
	info, err := api.VolumeInformation(t.Context(), `C:\`)
	if err != nil || info.FileSystem == "" {
		t.Errorf("volume %+v, %v", info, err)
	}
	attributes, err := api.FileAttributes(t.Context(), `C:\`)
	if err != nil || attributes&AttrDirectory == 0 {
		t.Errorf("attributes %X, %v", attributes, err)
	}
	_, err = api.FileAttributes(t.Context(), `C:\no such file`)
	wantCode(t, err, ErrFileNotFound)
	if directory := strings.ToLower(api.SystemDirectory()); directory != `c:\windows\system32` {
		t.Errorf("system directory %s", directory)
	}
}

func TestSystemDevices(t *testing.T) {
	api := System()
	_, err := api.CreateFile(t.Context(), `\\.\PhysicalDrive97`, Open{Share: testShare})
	wantCode(t, err, ErrFileNotFound)
	root := openDir(t, t.TempDir())
	_, err = api.DeviceIoControl(t.Context(), root, FsctlGetReparsePoint, nil, make([]byte, ReparseBufferMaxBytes))
	wantCode(t, err, ErrNotAReparsePoint, ErrInvalidFunction, ErrNotSupported)
}

func TestSystemServices(t *testing.T) {
	api := System()
	config, status, err := api.QueryService(t.Context(), "Spooler")
	if err != nil || config.DisplayName == "" || config.StartType > 4 || status.State == 0 {
		t.Errorf("%+v, %+v, %v", config, status, err)
	}
	_, _, err = api.QueryService(t.Context(), "no such service")
	wantCode(t, err, ErrServiceNotExist)
	wantCode(t, api.StartService(t.Context(), "no such service"), ErrServiceNotExist)
	wantCode(t, api.StopService(t.Context(), "no such service"), ErrServiceNotExist)
	if _, err := api.RunningDependents(t.Context(), "RpcSs"); err != nil {
		t.Error(err)
	}
}

// A service whose description does not fit into the first buffer.
func TestSystemLongService(t *testing.T) {
	manager, err := mgr.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Disconnect()
	const name, shown = "csi-win32-test", "A service with much to say"
	service, err := manager.CreateService(name, `C:\`+strings.Repeat(`folder\`, 300)+"x.exe", mgr.Config{DisplayName: shown, StartType: mgr.StartDisabled})
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	defer service.Delete()
	config, status, err := System().QueryService(t.Context(), name)
	if err != nil || config.DisplayName != shown || config.StartType != mgr.StartDisabled || status.State != 1 {
		t.Errorf("%+v, %+v, %v", config, status, err)
	}
	wantCode(t, System().StartService(t.Context(), name), ErrServiceDisabled)
	wantCode(t, System().StopService(t.Context(), name), ErrServiceNotActive)
}

func TestSplitMultiSZ(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		units string
		want  []string
	}{
		{"", nil}, {"\x00", nil}, {"C:\\\x00D:\\\x00\x00", []string{`C:\`, `D:\`}}, {"no end", []string{"no end"}},
	} {
		var units []uint16
		for _, c := range tt.units {
			units = append(units, uint16(c))
		}
		if got := splitMultiSZ(units); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.units, got, tt.want)
		}
	}
}

// The privileges that the process has are switched on; those that it lacks, such as one
// that does not exist, do no harm.
func TestSystemPrivileges(t *testing.T) {
	for _, number := range []uint32{backupPrivilege, restorePrivilege} { // Wine knows no other of ours
		setPrivilege(t, number, 0)
		if hasPrivilege(t, number) {
			t.Fatalf("privilege %d cannot be switched off", number)
		}
	}
	enablePrivileges(99)
	System()
	for _, number := range []uint32{backupPrivilege, restorePrivilege} {
		if !hasPrivilege(t, number) {
			t.Errorf("privilege %d is off", number)
		}
	}
}

func setPrivilege(t *testing.T, number, attributes uint32) {
	t.Helper()
	var own windows.Token
	if err := windows.OpenProcessToken(windows.CurrentProcess(), windows.TOKEN_ADJUST_PRIVILEGES, &own); err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	change := windows.Tokenprivileges{PrivilegeCount: 1}
	change.Privileges[0] = windows.LUIDAndAttributes{Luid: windows.LUID{LowPart: number}, Attributes: attributes}
	if err := windows.AdjustTokenPrivileges(own, false, &change, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
}

// hasPrivilege reports whether a privilege is on.
func hasPrivilege(t *testing.T, number uint32) bool {
	t.Helper()
	var size uint32
	buffer := make([]uint64, 512) // aligned
	err := windows.GetTokenInformation(windows.GetCurrentProcessToken(), windows.TokenPrivileges,
		(*byte)(unsafe.Pointer(&buffer[0])), 4096, &size)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range (*windows.Tokenprivileges)(unsafe.Pointer(&buffer[0])).AllPrivileges() {
		if p.Luid.LowPart == number {
			return p.Attributes&windows.SE_PRIVILEGE_ENABLED != 0
		}
	}
	return false
}
