// Stand-in for virtdisk.dll: virtual disks of the simulated node, as far as a test needs
// them to make a scratch disk of its own. Without an active lab there is no provider,
// which is what a Windows without the feature says.
//
// A handle is the writing end of a pipe. CloseHandle on it ends the read that a thread
// of ours waits in, and so tells the node, as the last handle of a virtual disk does on
// Windows. What differs from there: the disk goes a moment after CloseHandle has returned.
// The disks of a process that ends without closing them go with its link (see link.c).
// windows.h would declare the functions below as ones to import, and one structure wrongly.
#define _INC_VIRTDISK
#include "link.h"

#include <stddef.h>

#define NO_PROVIDER 0xC03A0014u // ERROR_VIRTDISK_PROVIDER_NOT_FOUND
#define PIPE_BYTES 16

// Flags. Source: virtdisk.h.
#define ATTACH_READ_ONLY 0x1u
#define ATTACH_PERMANENT_LIFETIME 0x4u

// createParameters is CREATE_VIRTUAL_DISK_PARAMETERS of version 2, 128 bytes. The one in
// the headers of mingw-w64 before version 12 lacks a member.
typedef struct {
	DWORD version;
	GUID uniqueID;
	ULONGLONG maximumSize;
	ULONG blockSizeInBytes, sectorSizeInBytes, physicalSectorSizeInBytes;
	const WCHAR *parentPath, *sourcePath;
	DWORD openFlags;
	struct {
		ULONG deviceID;
		GUID vendorID;
	} parentType, sourceType;
	GUID resiliencyGUID;
} createParameters;
_Static_assert(sizeof(createParameters) == 128, "CREATE_VIRTUAL_DISK_PARAMETERS");
_Static_assert(offsetof(createParameters, parentPath) == 48, "CREATE_VIRTUAL_DISK_PARAMETERS");

// disk is a virtual disk that is open.
typedef struct disk {
	struct disk *next;
	HANDLE handle, watched; // the ends of the pipe: the program's, and ours
	ULONGLONG id;           // at the node
	BOOL permanent;         // stays attached when the handle is closed
} disk;

static SRWLOCK lock;
static disk *disks; // the newest first: a closed handle may be given out again before we know

static DWORD call(WORD operation, csi_buffer *in, csi_answer *out) {
	return csi_call(operation, in, out) ? out->status : NO_PROVIDER;
}

// callID sends a request that is the id of a disk alone.
static DWORD callID(WORD operation, ULONGLONG id, csi_answer *out) {
	csi_buffer in = {0};
	csi_put_u64(&in, id);
	return call(operation, &in, out);
}

// --- handles

static DWORD find(HANDLE handle, ULONGLONG *id) {
	AcquireSRWLockShared(&lock);
	disk *d = disks;
	while (d && d->handle != handle) d = d->next;
	if (d) *id = d->id;
	ReleaseSRWLockShared(&lock);
	return d ? ERROR_SUCCESS : ERROR_INVALID_HANDLE;
}

static void makePermanent(HANDLE handle) {
	AcquireSRWLockExclusive(&lock);
	for (disk *d = disks; d; d = d->next) {
		if (d->handle != handle) continue;
		d->permanent = TRUE;
		break;
	}
	ReleaseSRWLockExclusive(&lock);
}

static void removeDisk(disk *gone) {
	AcquireSRWLockExclusive(&lock);
	disk **at = &disks;
	while (*at != gone) at = &(*at)->next;
	*at = gone->next;
	ReleaseSRWLockExclusive(&lock);
}

static DWORD WINAPI watch(void *argument) {
	disk *d = argument;
	BYTE byte;
	DWORD n;
	while (ReadFile(d->watched, &byte, sizeof byte, &n, NULL)) {} // nobody writes
	removeDisk(d);
	csi_answer out = {0};
	if (!d->permanent) callID(CSI_CLOSE_DISK, d->id, &out);
	csi_answer_free(&out);
	CloseHandle(d->watched);
	csi_free(d);
	HMODULE self;
	GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
					   (const WCHAR *)&watch, &self);
	FreeLibraryAndExitThread(self, 0); // the hold that open took
}

// give makes the handle of a disk that the node has opened.
static DWORD give(ULONGLONG id, HANDLE *handle) {
	HMODULE self;
	disk *d = csi_alloc(sizeof *d);
	if (!d || !CreatePipe(&d->watched, &d->handle, NULL, PIPE_BYTES)) {
		csi_free(d);
		return ERROR_NOT_ENOUGH_MEMORY;
	}
	d->id = id;
	*handle = d->handle;
	AcquireSRWLockExclusive(&lock);
	d->next = disks;
	disks = d;
	ReleaseSRWLockExclusive(&lock);
	// The thread holds the library, so that it is not unloaded below it.
	GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, (const WCHAR *)&watch, &self);
	HANDLE thread = CreateThread(NULL, 0, watch, d, 0, NULL);
	if (!thread) {
		removeDisk(d);
		FreeLibrary(self);
		CloseHandle(d->handle);
		CloseHandle(d->watched);
		csi_free(d);
		return ERROR_NOT_ENOUGH_MEMORY;
	}
	CloseHandle(thread);
	return ERROR_SUCCESS;
}

// open asks the node for a disk and makes its handle.
static DWORD open(WORD operation, csi_buffer *in, HANDLE *handle) {
	csi_answer out = {0};
	DWORD error = call(operation, in, &out);
	ULONGLONG id = error ? 0 : csi_get_u64(&out.body);
	csi_answer_free(&out);
	if (error) return error;
	error = give(id, handle);
	if (error) callID(CSI_CLOSE_DISK, id, &out);
	csi_answer_free(&out);
	return error;
}

// --- the functions of virtdisk.dll

// Version 2 takes no access rights: VIRTUAL_DISK_ACCESS_NONE is the only mask. Source:
// CreateVirtualDisk.
__declspec(dllexport) DWORD WINAPI CreateVirtualDisk(const void *type, const WCHAR *path, DWORD access, void *security,
													 DWORD flags, ULONG providerFlags, const createParameters *parameters,
													 OVERLAPPED *overlapped, HANDLE *handle) {
	(void)security, (void)flags, (void)providerFlags;
	const ULONGLONG smallest = 3 << 20;
	if (!type || !path || !parameters || !handle || overlapped || parameters->version != 2 || access != 0 ||
		parameters->maximumSize % 512 != 0 || parameters->maximumSize < smallest) {
		return ERROR_INVALID_PARAMETER;
	}
	csi_buffer in = {0};
	csi_put_u64(&in, parameters->maximumSize);
	csi_put_text(&in, path, -1);
	return open(CSI_CREATE_DISK, &in, handle);
}

__declspec(dllexport) DWORD WINAPI OpenVirtualDisk(const void *type, const WCHAR *path, DWORD access, DWORD flags,
												   const void *parameters, HANDLE *handle) {
	(void)access, (void)flags, (void)parameters;
	if (!type || !path || !handle) return ERROR_INVALID_PARAMETER;
	csi_buffer in = {0};
	csi_put_text(&in, path, -1);
	return open(CSI_OPEN_DISK, &in, handle);
}

__declspec(dllexport) DWORD WINAPI AttachVirtualDisk(HANDLE handle, void *security, DWORD flags, ULONG providerFlags,
													 const void *parameters, OVERLAPPED *overlapped) {
	(void)security, (void)providerFlags, (void)parameters;
	ULONGLONG id;
	if (overlapped) return ERROR_INVALID_PARAMETER;
	if (flags & ATTACH_READ_ONLY) return ERROR_NOT_SUPPORTED;
	DWORD error = find(handle, &id);
	if (error) return error;
	csi_answer out = {0};
	error = callID(CSI_ATTACH_DISK, id, &out);
	csi_answer_free(&out);
	if (!error && flags & ATTACH_PERMANENT_LIFETIME) makePermanent(handle);
	return error;
}

__declspec(dllexport) DWORD WINAPI DetachVirtualDisk(HANDLE handle, DWORD flags, ULONG providerFlags) {
	(void)flags, (void)providerFlags;
	ULONGLONG id;
	DWORD error = find(handle, &id);
	if (error) return error;
	csi_answer out = {0};
	error = callID(CSI_DETACH_DISK, id, &out);
	csi_answer_free(&out);
	return error;
}

// The parameters are RESIZE_VIRTUAL_DISK_PARAMETERS of version 1: version, new size.
__declspec(dllexport) DWORD WINAPI ResizeVirtualDisk(HANDLE handle, DWORD flags, const DWORD *parameters, OVERLAPPED *overlapped) {
	ULONGLONG id;
	if (flags || !parameters || parameters[0] != 1 || overlapped) return ERROR_INVALID_PARAMETER;
	DWORD error = find(handle, &id);
	if (error) return error;
	csi_buffer in = {0};
	csi_answer out = {0};
	csi_put_u64(&in, *(const ULONGLONG *)(parameters + 2));
	csi_put_u64(&in, id);
	error = call(CSI_RESIZE_DISK, &in, &out);
	csi_answer_free(&out);
	return error;
}

// GetVirtualDiskPhysicalPath gives `\\.\PhysicalDriveN`; a buffer that is too small
// gets nothing, and *size becomes what is needed.
__declspec(dllexport) DWORD WINAPI GetVirtualDiskPhysicalPath(HANDLE handle, ULONG *size, WCHAR *path) {
	ULONGLONG id;
	if (!size) return ERROR_INVALID_PARAMETER;
	DWORD error = find(handle, &id);
	if (error) return error;
	csi_answer out = {0};
	error = callID(CSI_PHYSICAL_PATH, id, &out);
	WCHAR *text = error ? NULL : csi_get_text(&out.body, NULL);
	csi_answer_free(&out);
	if (error || !text) return error ? error : ERROR_NOT_ENOUGH_MEMORY;
	ULONG need = (ULONG)((lstrlenW(text) + 1) * sizeof *text);
	if (*size < need || !path) {
		error = ERROR_INSUFFICIENT_BUFFER;
	} else {
		lstrcpyW(path, text);
	}
	*size = need;
	csi_free(text);
	return error;
}
