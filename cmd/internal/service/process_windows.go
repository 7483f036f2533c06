package service

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc/mgr"
)

// lockName is the object that exists while an installer of this machine is at work.
const lockName = `Global\csi-proxy-installer`

// Lock implements Manager. Nobody waits for the object, so its being there is the
// lock; Windows removes it with the process that has it open.
//
// Source: CreateMutexW, ERROR_ALREADY_EXISTS.
func (Windows) Lock() (release func(), err error) {
	name, err := windows.UTF16PtrFromString(lockName)
	if err != nil {
		return nil, err
	}
	handle, err := windows.CreateMutex(nil, false, name)
	if handle == 0 {
		return nil, worded("keep other installers away", err)
	}
	if err != nil {
		return nil, errors.Join(ErrBusy, windows.CloseHandle(handle))
	}
	return func() { _ = windows.CloseHandle(handle) }, nil
}

// killTime bounds the end of a process.
const killTime = 10 * time.Second

// Kill implements Manager. A process that other services share is left alone.
func (Windows) Kill(name string) error {
	return with(name, windows.SERVICE_QUERY_STATUS, func(service *mgr.Service) error {
		status, err := processOf(service)
		if err != nil || status.ProcessId == 0 {
			return worded("query the status", err)
		}
		if status.ServiceType&windows.SERVICE_WIN32_OWN_PROCESS == 0 {
			return fmt.Errorf("its process %d belongs to other services too", status.ProcessId)
		}
		what := fmt.Sprintf("end process %d", status.ProcessId)
		process, err := windows.OpenProcess(windows.PROCESS_TERMINATE|windows.SYNCHRONIZE, false, status.ProcessId)
		if errors.Is(err, windows.ERROR_INVALID_PARAMETER) { // it has ended, see hasEnded
			return nil
		}
		if err != nil {
			return worded(what, err)
		}
		defer func() { _ = windows.CloseHandle(process) }()
		// An id can be given to another process before it is opened.
		if now, err := processOf(service); err != nil || now.ProcessId != status.ProcessId {
			return worded("query the status", err)
		}
		if err := windows.TerminateProcess(process, uint32(windows.ERROR_PROCESS_ABORTED)); err != nil {
			return worded(what, err)
		}
		if event, err := windows.WaitForSingleObject(process, uint32(killTime.Milliseconds())); err != nil || event != windows.WAIT_OBJECT_0 {
			return errors.Join(fmt.Errorf("%s: it is still there after %s", what, killTime), err)
		}
		return nil
	})
}

// processOf is what the manager says of a service and its process.
func processOf(service *mgr.Service) (status windows.SERVICE_STATUS_PROCESS, err error) {
	var needed uint32
	err = windows.QueryServiceStatusEx(service.Handle, windows.SC_STATUS_PROCESS_INFO,
		(*byte)(unsafe.Pointer(&status)), uint32(unsafe.Sizeof(status)), &needed)
	return status, err
}
