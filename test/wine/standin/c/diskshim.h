// What a library inside a program does so that the program meets csidisk.sys as it would
// meet a disk of Windows. Wine's own calls lack three things: an open does not fail with
// the error of the driver and does not tell it the rights of the handle, a close does
// not wait for the driver, and some file system controls never reach it.
#ifndef CSI_DISKSHIM_H
#define CSI_DISKSHIM_H

#include <windows.h>

// csi_device_opened is to be called with what CreateFileW has returned, and returns what
// the program shall get; with INVALID_HANDLE_VALUE the last error is set. It does nothing
// to paths that are no `\\.\PhysicalDriveN` or `\\?\Volume{guid}`.
HANDLE csi_device_opened(HANDLE device, const WCHAR *path, DWORD access, DWORD share);

// csi_device_closing is to be called before CloseHandle. After it the node has closed
// the device.
void csi_device_closing(HANDLE handle);

// csi_is_device reports whether a handle is a device's, and csi_device_control has to take
// the place of DeviceIoControl when that is called without an OVERLAPPED.
BOOL csi_is_device(HANDLE handle);
BOOL csi_device_control(HANDLE device, DWORD code, void *in, DWORD inSize, void *out, DWORD outSize, DWORD *count);

#endif
