package devices

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/wine/standin"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// lengthOf asks an open device for its size.
func (l *lab) lengthOf(h win32.Handle) (int64, error) {
	out := make([]byte, 8)
	_, err := l.api.DeviceIoControl(l.ctx, h, win32.IoctlDiskGetLengthInfo, nil, out)
	return int64(binary.LittleEndian.Uint64(out)), err
}

// A disk that is pulled while it is open fails every call on it, is no longer found,
// and leaves nothing behind; another one of its number is another device.
func TestVanishingDisk(t *testing.T) {
	l := open(t)
	number := l.Attach(sim.DiskSpec{})
	h := l.on(drive(number), win32.GenericRead|win32.GenericWrite)
	if size, err := l.lengthOf(h); err != nil || size != 5*gib {
		t.Fatalf("length %d, %v", size, err)
	}
	l.OK(l.Control.DetachDisk(l.ctx, number))
	gone := func() {
		t.Helper()
		_, err := l.lengthOf(h)
		l.WantCode(err, win32.ErrDevNotConnected)
		_, err = l.api.ReadAt(l.ctx, h, make([]byte, 512), 0)
		l.WantCode(err, win32.ErrDevNotConnected)
		l.WantCode(l.api.FlushFileBuffers(l.ctx, h), win32.ErrDevNotConnected)
	}
	gone()
	_, err := l.api.CreateFile(l.ctx, drive(number), win32.Open{Share: both})
	l.WantCode(err, win32.ErrFileNotFound)

	again := l.Attach(sim.DiskSpec{SizeBytes: 3 * gib})
	if again != number {
		t.Fatalf("the next disk has number %d, want %d again", again, number)
	}
	gone()
	fresh := l.on(drive(number), win32.GenericRead)
	if size, err := l.lengthOf(fresh); err != nil || size != 3*gib {
		t.Errorf("length %d, %v", size, err)
	}
}

// A volume comes with its partition, and goes with its disk.
func TestVanishingVolume(t *testing.T) {
	l := open(t)
	disk, volume := l.volume(sim.DiskSpec{})
	h := l.on(device(volume), win32.GenericRead)
	if size, err := l.lengthOf(h); err != nil || size <= 4*gib {
		t.Fatalf("length %d, %v", size, err)
	}
	l.OK(l.Control.DetachDisk(l.ctx, disk))
	_, err := l.lengthOf(h)
	l.WantCode(err, win32.ErrDevNotConnected)
	_, err = l.api.CreateFile(l.ctx, device(volume), win32.Open{Share: both})
	l.WantCode(err, win32.ErrFileNotFound)
}

// Many disks that come and go: each is there as soon as it is attached, and not after.
func TestDisksComeAndGo(t *testing.T) {
	l := open(t)
	for round := range 3 {
		var numbers []uint32
		for i := range 12 {
			number := l.Attach(sim.DiskSpec{SizeBytes: int64(round*12+i+1) * mib})
			numbers = append(numbers, number)
			h, err := l.api.CreateFile(l.ctx, strings.ToUpper(drive(number)), win32.Open{Access: win32.GenericRead, Share: both})
			l.OK(err)
			if size, err := l.lengthOf(h); err != nil || size != int64(round*12+i+1)*mib {
				t.Errorf("disk %d: %d bytes, %v", number, size, err)
			}
			l.OK(l.api.CloseHandle(h))
		}
		for _, number := range numbers {
			l.OK(l.Control.DetachDisk(l.ctx, number))
			_, err := l.api.CreateFile(l.ctx, drive(number), win32.Open{Share: both})
			l.WantCode(err, win32.ErrFileNotFound)
		}
	}
}

func TestGrownDisk(t *testing.T) {
	l := open(t)
	disk := l.Attach(sim.DiskSpec{SizeBytes: gib})
	h := l.on(drive(disk), win32.GenericRead|win32.GenericWrite)
	l.OK(l.Control.GrowDisk(l.ctx, disk, 2*gib))
	if size, err := l.lengthOf(h); err != nil || size != gib {
		t.Errorf("%d bytes before Windows has looked, %v", size, err)
	}
	_, err := l.api.DeviceIoControl(l.ctx, h, win32.IoctlDiskUpdateProperties, nil, nil)
	l.OK(err)
	if size, err := l.lengthOf(h); err != nil || size != 2*gib {
		t.Errorf("%d bytes after Windows has looked, %v", size, err)
	}
}

// Raw reads give the bytes of the medium, at offsets beyond 4 GiB as well.
func TestRawReads(t *testing.T) {
	l := open(t)
	disk := l.Attach(sim.DiskSpec{SizeBytes: 6 * gib})
	h := l.on(drive(disk), win32.GenericRead)
	offsets := []int64{0, 512, 4096, gib + 512, 4 * gib, 5*gib + 4096, 6*gib - 4096}
	for i, offset := range offsets {
		data := bytes.Repeat(fmt.Appendf(nil, "place %d ", i), 600)[:4096]
		l.OK(l.Control.CorruptDisk(l.ctx, disk, offset, data))
	}
	for i, offset := range offsets {
		want := bytes.Repeat(fmt.Appendf(nil, "place %d ", i), 600)[:512]
		got := make([]byte, 512)
		if n, err := l.api.ReadAt(l.ctx, h, got, offset); err != nil || n != 512 || !bytes.Equal(got, want) {
			t.Errorf("at %d: %d bytes %q, %v", offset, n, got[:16], err)
		}
	}
	large := make([]byte, 4*mib)
	if n, err := l.api.ReadAt(l.ctx, h, large, gib); err != nil || n != len(large) || !bytes.HasPrefix(large[512:], []byte("place 3 ")) {
		t.Errorf("a large read: %d bytes, %v", n, err)
	}
	if n, err := l.api.ReadAt(l.ctx, h, large[:8192], 6*gib-4096); err != nil || n != 4096 {
		t.Errorf("a read over the end: %d bytes, %v", n, err)
	}
	_, err := l.api.ReadAt(l.ctx, h, large[:512], 6*gib)
	l.WantCode(err, 27) // ERROR_SECTOR_NOT_FOUND
	_, err = l.api.ReadAt(l.ctx, h, large[:512], 100)
	l.WantCode(err, win32.ErrInvalidParameter)
	if n, err := l.api.ReadAt(l.ctx, h, nil, 0); err != nil || n != 0 {
		t.Errorf("a read of nothing: %d bytes, %v", n, err)
	}
}

// A flush of a volume is the node's flush of this volume.
func TestFlushedVolume(t *testing.T) {
	l := open(t)
	_, volume := l.volume(sim.DiskSpec{})
	h := l.on(device(volume), win32.GenericRead|win32.GenericWrite)
	l.OK(l.Control.RecordCalls(l.ctx, true))
	l.OK(l.api.FlushFileBuffers(l.ctx, h))
	log, err := l.Control.CallLog(l.ctx)
	l.OK(err)
	if len(log) != 1 || log[0].Name != "win32.FlushFileBuffers" || log[0].Object != device(volume) {
		t.Errorf("calls of the node: %+v", log)
	}
}

// After the context's end no call begins.
func TestEndedContext(t *testing.T) {
	l := open(t)
	path := drive(l.Attach(sim.DiskSpec{}))
	h := l.on(path, win32.GenericRead|win32.GenericWrite)
	ended, cancel := context.WithCancel(l.ctx)
	cancel()
	for call, do := range map[string]func() error{
		"CreateFile": func() error {
			_, err := l.api.CreateFile(ended, path, win32.Open{Share: both})
			return err
		},
		"DeviceIoControl": func() error {
			_, err := l.api.DeviceIoControl(ended, h, win32.IoctlDiskIsWritable, nil, nil)
			return err
		},
		"ReadAt": func() error {
			_, err := l.api.ReadAt(ended, h, make([]byte, 512), 0)
			return err
		},
		"FlushFileBuffers": func() error { return l.api.FlushFileBuffers(ended, h) },
	} {
		if err := do(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", call, err)
		}
	}
	_, err := l.api.CreateFile(l.ctx, path+"\x00", win32.Open{Share: both})
	l.WantCode(err, win32.ErrInvalidName)
	l.WantCode(l.api.CloseHandle(h+4096), win32.ErrInvalidHandle)
}

// A link that breaks, or answers with nonsense, is an error of the one call.
func TestBrokenLink(t *testing.T) {
	l := open(t)
	path := drive(l.Attach(sim.DiskSpec{}))
	h := l.on(path, win32.GenericRead)
	const devNotExist, invalidData = 55, 13
	for kind, code := range map[string]uint32{standin.FaultDie: devNotExist, standin.FaultGarbage: invalidData} {
		for operation, do := range map[string]func() error{
			"DeviceIoControl": func() error {
				_, err := l.lengthOf(h)
				return err
			},
			"ReadAt": func() error {
				_, err := l.api.ReadAt(l.ctx, h, make([]byte, 512), 0)
				return err
			},
		} {
			l.Post("fault", fmt.Sprintf(`{"op":%q,"kind":%q}`, operation, kind))
			l.WantCode(do(), code)
			l.OK(do())
		}
	}
	for range 3 { // the list of devices as well
		l.Post("fault", `{"op":"Devices","kind":"die"}`)
		l.Post("fault", `{"op":"Devices","kind":"garbage"}`)
		path := drive(l.Attach(sim.DiskSpec{}))
		l.eventually("the driver finds its way back", func() bool {
			h, err := l.api.CreateFile(l.ctx, path, win32.Open{Share: both})
			return err == nil && l.api.CloseHandle(h) == nil
		})
		_, err := l.lengthOf(h)
		l.OK(err)
	}
}

// A control code that hangs stops no other call: none on its own handle, on another
// handle of its device, or on another device.
func TestHungControl(t *testing.T) {
	l := open(t)
	disk, other := l.Attach(sim.DiskSpec{}), l.Attach(sim.DiskSpec{})
	h, second, third := l.on(drive(disk), win32.GenericRead), l.on(drive(disk), win32.GenericRead), l.on(drive(other), win32.GenericRead)
	const hanging = 8
	l.OK(l.Control.AddFault(l.ctx, sim.Fault{Call: "win32.DeviceIoControl 0x2D1080", Hang: true, Count: hanging}))
	var hung sync.WaitGroup
	ended := make(chan error, hanging)
	for range hanging {
		hung.Go(func() {
			_, err := l.api.DeviceIoControl(l.ctx, h, win32.IoctlStorageGetDeviceNumber, nil, make([]byte, 12))
			ended <- err
		})
	}
	for range 50 {
		for _, h := range []win32.Handle{h, second, third} {
			_, err := l.lengthOf(h)
			l.OK(err)
			_, err = l.api.ReadAt(l.ctx, h, make([]byte, 512), 0)
			l.OK(err)
		}
	}
	if len(ended) != 0 {
		t.Errorf("%d calls that should hang have ended", len(ended))
	}
	l.OK(l.Control.ClearFaults(l.ctx))
	hung.Wait()
	for range hanging {
		l.OK(<-ended)
	}
}

// Closing a device ends it at the node before CloseHandle returns.
func TestCloseIsSeenAtOnce(t *testing.T) {
	l := open(t)
	disk := l.Attach(sim.DiskSpec{})
	for range 50 {
		h, err := l.api.CreateFile(l.ctx, drive(disk), win32.Open{Share: both})
		l.OK(err)
		if n, err := l.Control.HandleCount(l.ctx); n != 1 || err != nil {
			t.Fatalf("%d handles at the node, %v; want 1", n, err)
		}
		l.OK(l.api.CloseHandle(h))
		if n, err := l.Control.HandleCount(l.ctx); n != 0 || err != nil {
			t.Fatalf("%d handles at the node after the last was closed, %v", n, err)
		}
	}
}

// openAndAsk opens a device, sends a control code and closes it, n times.
func (l *lab) openAndAsk(path string, n int) {
	l.Helper()
	for range n {
		h, err := l.api.CreateFile(l.ctx, path, win32.Open{Access: win32.GenericRead, Share: both})
		l.OK(err)
		_, err = l.lengthOf(h)
		l.OK(err)
		l.OK(l.api.CloseHandle(h))
	}
}

// Handles of the process and of the node are as many after many calls as before.
func TestHandlesStayFlat(t *testing.T) {
	l := open(t)
	disk := l.Attach(sim.DiskSpec{})
	l.openAndAsk(drive(disk), 100)
	before := processHandles(t)
	begin := time.Now()
	const calls = 2000
	l.openAndAsk(drive(disk), calls)
	t.Logf("%v for an open, a control code and a close", time.Since(begin)/calls)
	if after := processHandles(t); after > before+5 {
		t.Errorf("%d handles before, %d after", before, after)
	}
	if n, err := l.Control.HandleCount(l.ctx); n != 0 || err != nil {
		t.Errorf("%d handles at the node, %v", n, err)
	}
}

func processHandles(t *testing.T) uint32 {
	t.Helper()
	var count uint32
	proc := windows.NewLazySystemDLL("kernel32.dll").NewProc("GetProcessHandleCount")
	ok, _, err := proc.Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&count)))
	if ok == 0 {
		t.Fatal(err)
	}
	return count
}
