package files

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// The native call answers with a status, which Windows turns into an error number:
// every number that opening can fail with comes through.
func TestErrorsOfTheNativeCall(t *testing.T) {
	l := open(t)
	folder := l.on(l.path(), holdAccess)
	for _, code := range []uint32{
		win32.ErrInvalidFunction, win32.ErrFileNotFound, win32.ErrPathNotFound, win32.ErrAccessDenied, win32.ErrInvalidHandle,
		win32.ErrNotEnoughMemory, win32.ErrInvalidDrive, win32.ErrWriteProtect, win32.ErrNotReady, win32.ErrSharingViolation,
		win32.ErrNotSupported, win32.ErrBadNetPath, win32.ErrUnexpNetErr, win32.ErrNetnameDeleted, win32.ErrNetworkAccessDenied,
		win32.ErrBadNetName, win32.ErrInvalidParameter, 112, win32.ErrSemTimeout, win32.ErrInvalidName, win32.ErrDirNotEmpty,
		win32.ErrAlreadyExists, 206, win32.ErrDirectory, 995, 1392, 1450, win32.ErrUnrecognizedVolume, win32.ErrIODevice,
		win32.ErrDevNotConnected, win32.ErrLogonFailure, 1920, 1921,
	} {
		l.OK(l.Control.AddFault(t.Context(), sim.Fault{Call: "win32.OpenAt", Win32: code}))
		_, err := l.api.OpenAt(t.Context(), folder, "x", win32.Open{Access: lookAccess, Share: anyShare})
		l.WantCode(err, code)
	}
}

// calls are all calls of the API on the test's folder, by name; each must fail when the
// node, its link or the context does.
func (l *lab) calls() map[string]func(ctx context.Context) error {
	l.Helper()
	h, path := l.on(l.path(), holdAccess), l.path()
	look := win32.Open{Access: lookAccess, Share: anyShare}
	folder := win32.Open{Access: lookAccess, Share: anyShare, Create: true, Directory: true}
	return map[string]func(ctx context.Context) error{
		"CreateFile":      func(ctx context.Context) error { return second(l.api.CreateFile(ctx, path, look)) },
		"CreateDirectory": func(ctx context.Context) error { return second(l.api.CreateFile(ctx, path+`\x`, folder)) },
		"OpenAt":          func(ctx context.Context) error { return second(l.api.OpenAt(ctx, h, "x", look)) },
		"Info":            func(ctx context.Context) error { return second(l.api.Info(ctx, h)) },
		"ReadDir":         func(ctx context.Context) error { return second(l.api.ReadDir(ctx, h)) },
		"Delete":          func(ctx context.Context) error { return l.api.Delete(ctx, h) },
		"FinalPath":       func(ctx context.Context) error { return second(l.api.FinalPath(ctx, h)) },
		"CreateSymlink":   func(ctx context.Context) error { return l.api.CreateSymlink(ctx, h, "x", `C:\x`, true) },
		"ReadAt":          func(ctx context.Context) error { return second(l.api.ReadAt(ctx, h, make([]byte, 1), 0)) },
		"DeviceIoControl": func(ctx context.Context) error {
			return second(l.api.DeviceIoControl(ctx, h, win32.FsctlGetReparsePoint, nil, make([]byte, 8)))
		},
		"FlushFileBuffers":       func(ctx context.Context) error { return l.api.FlushFileBuffers(ctx, h) },
		"FindVolumes":            func(ctx context.Context) error { return second(l.api.FindVolumes(ctx)) },
		"VolumePathNames":        func(ctx context.Context) error { return second(l.api.VolumePathNames(ctx, noVolume)) },
		"SetVolumeMountPoint":    func(ctx context.Context) error { return l.api.SetVolumeMountPoint(ctx, path+`\`, noVolume) },
		"DeleteVolumeMountPoint": func(ctx context.Context) error { return l.api.DeleteVolumeMountPoint(ctx, path+`\`) },
		"VolumeInformation":      func(ctx context.Context) error { return second(l.api.VolumeInformation(ctx, `\\?\C:\`)) },
		"DiskFreeSpace": func(ctx context.Context) error {
			_, _, err := l.api.DiskFreeSpace(ctx, `\\?\C:\`)
			return err
		},
		"FileAttributes":    func(ctx context.Context) error { return second(l.api.FileAttributes(ctx, path)) },
		"QueryService":      func(ctx context.Context) error { _, _, err := l.api.QueryService(ctx, "x"); return err },
		"StartService":      func(ctx context.Context) error { return l.api.StartService(ctx, "x") },
		"StopService":       func(ctx context.Context) error { return l.api.StopService(ctx, "x") },
		"RunningDependents": func(ctx context.Context) error { return second(l.api.RunningDependents(ctx, "x")) },
	}
}

func second[T any](_ T, err error) error { return err }

// A call whose context has ended asks Windows nothing.
func TestEndedContext(t *testing.T) {
	l := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	calls := l.calls()
	l.OK(l.Control.RecordCalls(t.Context(), true))
	cancel()
	for name, call := range calls {
		if err := call(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	log, err := l.Control.CallLog(t.Context())
	l.OK(errors.Join(err, l.Control.RecordCalls(t.Context(), false)))
	if len(log) != 0 {
		t.Errorf("the node was asked %v", log)
	}
}

// The server of the lab ends the connection instead of answering, and answers again
// the next time: the call fails as with a device that was pulled.
func TestNodeDiesInACall(t *testing.T) {
	l := open(t)
	calls := l.calls()
	for name, op := range map[string]string{
		"CreateFile": "CreateFile", "CreateDirectory": "CreateDirectory", "OpenAt": "OpenAt", "Info": "Info", "ReadDir": "ReadDir",
		"Delete": "Delete", "FinalPath": "FinalPath", "CreateSymlink": "OpenAt", "ReadAt": "ReadAt", "DeviceIoControl": "DeviceIoControl",
		"FlushFileBuffers": "Flush", "FindVolumes": "FindVolumes", "VolumePathNames": "VolumePathNames",
		"SetVolumeMountPoint": "SetVolumeMountPoint", "DeleteVolumeMountPoint": "DeleteVolumeMountPoint",
		"VolumeInformation": "VolumeInformation", "DiskFreeSpace": "DiskFreeSpace", "FileAttributes": "FileAttributes",
	} {
		l.Post("fault", fmt.Sprintf(`{"op":%q,"kind":"die"}`, op))
		if code := l.CodeOf(calls[name](t.Context())); code != win32.ErrDevNotConnected {
			t.Errorf("%s: Windows error %d, want %d", name, code, win32.ErrDevNotConnected)
		}
	}
	if _, err := l.api.Info(t.Context(), l.on(l.path(), lookAccess)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A call that hangs holds up no other, not even on the same folder.
func TestHungCall(t *testing.T) {
	l := open(t)
	h, other := l.on(l.path(), holdAccess), l.on(l.path(), holdAccess)
	l.Post("fault", `{"op":"ReadDir","kind":"hang"}`)
	hung := make(chan error, 1)
	go func() { _, err := l.api.ReadDir(context.Background(), h); hung <- err }()
	for end := time.Now().Add(waitMax); l.stats().Hanging == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the call does not hang")
		}
	}
	for range 20 {
		_, err := l.api.ReadDir(t.Context(), other)
		l.OK(err)
		_, err = l.api.Info(t.Context(), h)
		l.OK(err)
		_, err = names(l, l.api, l.path())
		l.OK(err)
	}
	select {
	case err := <-hung:
		t.Fatalf("the call ended by itself: %v", err)
	default:
	}
	l.Reset()
	l.WantCode(<-hung, win32.ErrDevNotConnected)
}

// Many threads at once, each with handles of its own, and no handle mixed up.
func TestManyAtOnce(t *testing.T) {
	l := open(t)
	const workers, rounds = 8, 40
	failures := make(chan error, workers)
	for w := range workers {
		l.write(l.below(fmt.Sprint(w), "file"), fmt.Sprint(w))
		go func() { failures <- l.work(w, rounds) }()
	}
	for range workers {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}

// work opens, reads and lists what worker w has, over and over.
func (l *lab) work(w, rounds int) error {
	ctx, buffer := context.Background(), make([]byte, 8)
	for range rounds {
		folder, err := l.api.CreateFile(ctx, l.path(fmt.Sprint(w)), win32.Open{Access: holdAccess, Share: anyShare})
		if err != nil {
			return err
		}
		list, listErr := l.api.ReadDir(ctx, folder)
		file, err := l.api.OpenAt(ctx, folder, "file", win32.Open{Access: holdAccess, Share: anyShare})
		if err != nil {
			return errors.Join(err, listErr, l.api.CloseHandle(folder))
		}
		n, err := l.api.ReadAt(ctx, file, buffer, 0)
		if string(buffer[:n]) != fmt.Sprint(w) || fmt.Sprint(list) != "[file]" {
			err = errors.Join(err, fmt.Errorf("worker %d read %q, listed %q", w, buffer[:n], list))
		}
		if err := errors.Join(err, listErr, l.api.CloseHandle(file), l.api.CloseHandle(folder)); err != nil {
			return err
		}
	}
	return nil
}

// Info asks Windows three times. A file system that has no 128-bit file ids fails the
// last; the identity is then made of the older numbers.
func TestInfoInParts(t *testing.T) {
	l := open(t)
	want := l.info(l.path())
	h := l.on(l.path(), lookAccess)
	l.OK(l.Control.AddFault(t.Context(), sim.Fault{Call: "win32.Info", Nth: 2, Win32: win32.ErrIODevice}))
	_, err := l.api.Info(t.Context(), h)
	l.WantCode(err, win32.ErrIODevice)
	l.Reset()
	l.OK(l.Control.AddFault(t.Context(), sim.Fault{Call: "win32.Info", Nth: 3, Win32: win32.ErrInvalidParameter}))
	got, err := l.api.Info(t.Context(), h)
	clear(want.FileID[8:]) // 64 bits of the file id, and 32 of the volume's serial number
	want.VolumeSerial &= 0xFFFFFFFF
	if err != nil || got != want {
		t.Errorf("without file ids: %+v, %v; want %+v", got, err, want)
	}
	l.Reset()
	// A folder that cannot be looked at is not opened as one.
	l.OK(l.Control.AddFault(t.Context(), sim.Fault{Call: "win32.Info", Win32: win32.ErrIODevice}))
	_, err = l.api.CreateFile(t.Context(), l.path(), win32.Open{Access: lookAccess, Share: anyShare, Directory: true})
	l.WantCode(err, win32.ErrIODevice)
}

// What no name of Windows can be is refused before Windows is asked.
func TestImpossibleNames(t *testing.T) {
	l := open(t)
	const nul = "C:\\a\x00b"
	folder := l.on(l.path(), holdAccess)
	look := win32.Open{Access: lookAccess, Share: anyShare}
	ctx := t.Context()
	for name, err := range map[string]error{
		"CreateFile":                 second(l.api.CreateFile(ctx, nul, look)),
		"OpenAt":                     second(l.api.OpenAt(ctx, folder, nul, look)),
		"OpenAt, too long":           second(l.api.OpenAt(ctx, folder, strings.Repeat("n", 40000), look)),
		"VolumePathNames":            second(l.api.VolumePathNames(ctx, nul)),
		"SetVolumeMountPoint":        l.api.SetVolumeMountPoint(ctx, nul, noVolume),
		"SetVolumeMountPoint volume": l.api.SetVolumeMountPoint(ctx, `C:\x\`, nul),
		"DeleteVolumeMountPoint":     l.api.DeleteVolumeMountPoint(ctx, nul),
		"VolumeInformation":          second(l.api.VolumeInformation(ctx, nul)),
		"FileAttributes":             second(l.api.FileAttributes(ctx, nul)),
		"StartService":               l.api.StartService(ctx, nul),
		"DiskFreeSpace":              func() error { _, _, err := l.api.DiskFreeSpace(ctx, nul); return err }(),
	} {
		if got := l.CodeOf(err); got != win32.ErrInvalidName {
			t.Errorf("%s: Windows error %d, want %d", name, got, win32.ErrInvalidName)
		}
	}
}
