package vhdx

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Flags of virtdisk.h. Without ATTACH_VIRTUAL_DISK_FLAG_PERMANENT_LIFETIME a disk
// goes when the last handle is closed, also when the process dies.
const (
	accessNone          = 0 // what version 2 of the parameters demands
	attachNoDriveLetter = 2
)

var (
	virtdisk            = windows.NewLazySystemDLL("virtdisk.dll")
	procCreate          = virtdisk.NewProc("CreateVirtualDisk")
	procAttach          = virtdisk.NewProc("AttachVirtualDisk")
	procDetach          = virtdisk.NewProc("DetachVirtualDisk")
	procResize          = virtdisk.NewProc("ResizeVirtualDisk")
	procGetPhysicalPath = virtdisk.NewProc("GetVirtualDiskPhysicalPath")
)

// call calls a function of virtdisk.dll, all of which return a Win32 error number.
// The arguments are kept where they are until it returns.
//
//go:uintptrescapes
func call(proc *windows.LazyProc, args ...uintptr) error {
	if err := proc.Find(); err != nil {
		return err
	}
	if code, _, _ := proc.Call(args...); code != 0 {
		return fmt.Errorf("%s: Windows error %d", proc.Name, uint32(code))
	}
	return nil
}

// createDisk makes a file for a disk of a size and opens it.
func createDisk(path string, sizeBytes int64) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	kind, parameters := storageType(), createParameters(sizeBytes)
	var handle windows.Handle
	err = call(procCreate, uintptr(unsafe.Pointer(&kind[0])), uintptr(unsafe.Pointer(name)), accessNone, 0, 0, 0,
		uintptr(unsafe.Pointer(&parameters[0])), 0, uintptr(unsafe.Pointer(&handle)))
	return handle, err
}

// attachDisk plugs the disk in, without a drive letter.
func attachDisk(disk windows.Handle) error {
	parameters := attachParameters()
	return call(procAttach, uintptr(disk), 0, attachNoDriveLetter, 0, uintptr(unsafe.Pointer(&parameters[0])), 0)
}

// detachDisk pulls the disk.
func detachDisk(disk windows.Handle) error { return call(procDetach, uintptr(disk), 0, 0) }

// resizeDisk makes the disk larger.
func resizeDisk(disk windows.Handle, sizeBytes int64) error {
	parameters := resizeParameters(sizeBytes)
	return call(procResize, uintptr(disk), 0, uintptr(unsafe.Pointer(&parameters[0])), 0)
}

// physicalNumber is the number of the attached disk, by its own handle.
func physicalNumber(disk windows.Handle) (uint32, error) {
	path := make([]uint16, windows.MAX_PATH)
	sizeBytes := uint32(len(path) * 2)
	if err := call(procGetPhysicalPath, uintptr(disk), uintptr(unsafe.Pointer(&sizeBytes)), uintptr(unsafe.Pointer(&path[0]))); err != nil {
		return 0, err
	}
	return diskNumber(windows.UTF16ToString(path))
}

// enableManageVolume switches on the privilege that attaching needs. Administrators
// have it, switched off. Source: AttachVirtualDisk, SE_MANAGE_VOLUME_NAME.
func enableManageVolume() error {
	name, err := windows.UTF16PtrFromString("SeManageVolumePrivilege")
	if err != nil {
		return err
	}
	privileges := windows.Tokenprivileges{PrivilegeCount: 1}
	privileges.Privileges[0].Attributes = windows.SE_PRIVILEGE_ENABLED
	if err := windows.LookupPrivilegeValue(nil, name, &privileges.Privileges[0].Luid); err != nil {
		return fmt.Errorf("LookupPrivilegeValue: %w", err)
	}
	var token windows.Token
	if err := windows.OpenProcessToken(windows.CurrentProcess(), windows.TOKEN_ADJUST_PRIVILEGES|windows.TOKEN_QUERY, &token); err != nil {
		return fmt.Errorf("OpenProcessToken: %w", err)
	}
	defer func() { _ = token.Close() }()
	if err := windows.AdjustTokenPrivileges(token, false, &privileges, 0, nil, nil); err != nil {
		return fmt.Errorf("AdjustTokenPrivileges: %w", err)
	}
	return nil
}
