// See diskshim.h.
#include "diskshim.h"

#include <winternl.h>

#include "disk.h"

// The handles of devices. Wine gives handles out from 4 upwards in steps of 4.
#define HANDLES_MAX (1 << 16)
static BYTE devices[HANDLES_MAX];

static BYTE *mark(HANDLE handle) {
	ULONG_PTR number = (ULONG_PTR)handle / 4;
	return number < HANDLES_MAX ? &devices[number] : NULL;
}

BOOL csi_is_device(HANDLE handle) {
	BYTE *known = mark(handle);
	return known && *known;
}

// behind gives what follows a prefix, compared without case; NULL without the prefix.
static const WCHAR *behind(const WCHAR *path, const WCHAR *prefix) {
	for (; *prefix; path++, prefix++) {
		if ((*path | 0x20) != (*prefix | 0x20)) return NULL;
	}
	return path;
}

static BOOL isDevicePath(const WCHAR *path) {
	if (path[0] != '\\' || path[1] != '\\' || (path[2] != '.' && path[2] != '?') || path[3] != '\\') return FALSE;
	if (!behind(path + 4, L"PhysicalDrive") && !behind(path + 4, L"Volume{")) return FALSE;
	for (path += 4; *path; path++) {
		if (*path == '\\') return FALSE; // a folder or a file on the volume
	}
	return TRUE;
}

// control is DeviceIoControl for handles of either kind, synchronous or not. As
// NtDeviceIoControlFile it reaches the driver with every code: Wine answers some codes
// of file systems by itself when they come as NtFsControlFile.
static DWORD control(HANDLE device, DWORD code, void *in, DWORD inSize, void *out, DWORD outSize, DWORD *count) {
	IO_STATUS_BLOCK io = {0};
	HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL);
	if (!event) return ERROR_NOT_ENOUGH_MEMORY;
	NTSTATUS status = NtDeviceIoControlFile(device, event, NULL, NULL, &io, code, in, inSize, out, outSize);
	if (status == (NTSTATUS)STATUS_PENDING) {
		WaitForSingleObject(event, INFINITE);
		status = io.Status;
	}
	CloseHandle(event);
	*count = (DWORD)io.Information;
	return status == 0 ? ERROR_SUCCESS : RtlNtStatusToDosError(status);
}

BOOL csi_device_control(HANDLE device, DWORD code, void *in, DWORD inSize, void *out, DWORD outSize, DWORD *count) {
	DWORD unused;
	DWORD error = control(device, code, in, inSize, out, outSize, count ? count : &unused);
	SetLastError(error);
	return error == ERROR_SUCCESS;
}

HANDLE csi_device_opened(HANDLE device, const WCHAR *path, DWORD access, DWORD share) {
	DWORD rights[2] = {access, share}, error = 0, count;
	BYTE *known = mark(device);
	if (device == INVALID_HANDLE_VALUE || !isDevicePath(path) || !known) return device;
	// A device of Wine's own does not know the code.
	if (control(device, DISK_OPEN, rights, sizeof rights, &error, sizeof error, &count)) return device;
	if (error) {
		CloseHandle(device);
		device = INVALID_HANDLE_VALUE;
	} else {
		*known = TRUE;
	}
	SetLastError(error);
	return device;
}

void csi_device_closing(HANDLE handle) {
	DWORD count, error = GetLastError();
	if (!csi_is_device(handle)) return;
	*mark(handle) = FALSE;
	control(handle, DISK_CLOSE, NULL, 0, NULL, 0, &count);
	SetLastError(error);
}
