// The half of csidisk.sys that speaks to Wine's I/O manager; see disk.h.
//
// A driver of Wine runs in winedevice.exe, which is an ordinary process, so the other
// half can use sockets and threads. Requests are marked pending here, on the one
// thread on which Wine delivers all of them, and completed by other threads.
#include <ntddk.h>

#include "disk.h"

#define NAME_UNITS 64
#define DEVICE_PREFIX L"\\Device\\Csi"
#define LINK_PREFIX L"\\??\\"

// device is what a DEVICE_OBJECT carries.
typedef struct device {
	struct device *next;
	DEVICE_OBJECT *object;
	WCHAR name[NAME_UNITS]; // of the link, without LINK_PREFIX
	LONG files;             // that are open
	ULONGLONG gone;         // when it lost its name, in milliseconds
} device;

// How long a device without a name is kept: a program may have opened it, and Wine not
// have told us yet.
#define KEEP_MILLISECONDS 2000

static DRIVER_OBJECT *driver;
static device *devices;  // those that have their names
static device *nameless; // those that went away
static ULONG devicesMade;

// --- texts

static ULONG lengthOf(const WCHAR *text) {
	ULONG n = 0;
	while (text[n]) n++;
	return n;
}

static BOOLEAN same(const WCHAR *a, const WCHAR *b) {
	while (*a && *a == *b) a++, b++;
	return *a == *b;
}

// join writes a prefix and a name into to, which has room for both.
static UNICODE_STRING join(WCHAR *to, const WCHAR *prefix, const WCHAR *name) {
	WCHAR *end = to;
	while (*prefix) *end++ = *prefix++;
	while (*name) *end++ = *name++;
	*end = 0;
	UNICODE_STRING joined;
	RtlInitUnicodeString(&joined, to);
	return joined;
}

// --- devices

static BOOLEAN makeLink(device *d, UNICODE_STRING *target) {
	WCHAR text[NAME_UNITS + 8];
	UNICODE_STRING link = join(text, LINK_PREFIX, d->name);
	if (NT_SUCCESS(IoCreateSymbolicLink(&link, target))) return TRUE;
	// Wine gives the disks of the machine such names, too; in the lab they are the node's.
	IoDeleteSymbolicLink(&link);
	return NT_SUCCESS(IoCreateSymbolicLink(&link, target));
}

BOOLEAN deviceAdd(const WCHAR *name) {
	for (device *d = devices; d; d = d->next) {
		if (same(d->name, name)) return TRUE;
	}
	if (lengthOf(name) >= NAME_UNITS) return FALSE;
	// The directory \Device is flat in Wine, and the names of links are not for it.
	WCHAR number[12], text[NAME_UNITS];
	UNICODE_STRING digits = {0, sizeof number, number};
	RtlIntegerToUnicodeString(++devicesMade, 10, &digits);
	number[digits.Length / sizeof(WCHAR)] = 0;
	UNICODE_STRING target = join(text, DEVICE_PREFIX, number);
	DEVICE_OBJECT *object;
	if (!NT_SUCCESS(IoCreateDevice(driver, sizeof(device), &target, FILE_DEVICE_DISK, 0, FALSE, &object))) return FALSE;
	device *d = object->DeviceExtension;
	*d = (device){.next = devices, .object = object};
	join(d->name, L"", name);
	object->Flags |= DO_BUFFERED_IO;
	object->Flags &= ~DO_DEVICE_INITIALIZING;
	if (!makeLink(d, &target)) {
		IoDeleteDevice(object);
		return FALSE;
	}
	devices = d;
	return TRUE;
}

void deviceKeepOnly(const WCHAR *const *names, ULONG count, ULONGLONG now) {
	for (device **at = &devices; *at;) {
		device *d = *at;
		BOOLEAN wanted = FALSE;
		for (ULONG i = 0; i < count && !wanted; i++) wanted = same(d->name, names[i]);
		if (wanted) {
			at = &d->next;
			continue;
		}
		WCHAR text[NAME_UNITS + 8];
		UNICODE_STRING link = join(text, LINK_PREFIX, d->name);
		IoDeleteSymbolicLink(&link);
		*at = d->next;
		d->next = nameless;
		d->gone = now;
		nameless = d;
	}
}

void deviceDelete(ULONGLONG now) {
	for (device **at = &nameless; *at;) {
		device *d = *at;
		if (d->files > 0 || now < d->gone + KEEP_MILLISECONDS) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		IoDeleteDevice(d->object);
	}
}

// deleteAll is for the unloading of the driver: whoever still has a device open finds it
// gone.
static void deleteAll(void) {
	deviceKeepOnly(NULL, 0, 0);
	for (device *d = nameless; d; d = d->next) d->files = 0;
	deviceDelete(KEEP_MILLISECONDS + (ULONGLONG)-1 / 2);
}

// --- error numbers

// statusOf gives the NTSTATUS that the storage stack of Windows has for a Win32 error
// number, and that becomes this number again in the program. Source: ntstatus.h,
// RtlNtStatusToDosError. An NTSTATUS of facility 1 carries any other number.
static NTSTATUS statusOf(ULONG error) {
	static const struct {
		ULONG error;
		NTSTATUS status;
	} known[] = {
		{0, STATUS_SUCCESS},
		{1, STATUS_INVALID_DEVICE_REQUEST},
		{2, STATUS_OBJECT_NAME_NOT_FOUND},
		{5, STATUS_ACCESS_DENIED},
		{6, STATUS_INVALID_HANDLE},
		{8, STATUS_NO_MEMORY},
		{19, STATUS_MEDIA_WRITE_PROTECTED},
		{21, STATUS_DEVICE_NOT_READY},
		{23, STATUS_CRC_ERROR},
		{27, STATUS_NONEXISTENT_SECTOR},
		{32, STATUS_SHARING_VIOLATION},
		{38, STATUS_END_OF_FILE},
		{50, STATUS_NOT_SUPPORTED},
		{55, STATUS_DEVICE_DOES_NOT_EXIST},
		{87, STATUS_INVALID_PARAMETER},
		{112, STATUS_DISK_FULL},
		{121, STATUS_IO_TIMEOUT},
		{122, STATUS_BUFFER_TOO_SMALL},
		{170, STATUS_DEVICE_BUSY},
		{234, STATUS_BUFFER_OVERFLOW}, // a warning: the bytes that fit are handed on
		{1005, STATUS_UNRECOGNIZED_VOLUME},
		{1117, STATUS_IO_DEVICE_ERROR},
		{1167, STATUS_DEVICE_NOT_CONNECTED},
		{1168, STATUS_NOT_FOUND},
	};
	for (ULONG i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (known[i].error == error) return known[i].status;
	}
	return (NTSTATUS)(0xC0010000 | (error & 0xFFFF));
}

// --- requests

static NTSTATUS complete(IRP *irp, NTSTATUS status, ULONG count) {
	irp->IoStatus.Status = status;
	irp->IoStatus.Information = count;
	IoCompleteRequest(irp, IO_NO_INCREMENT);
	return status;
}

void diskAnswered(diskRequest *request) {
	complete(request->irp, statusOf(request->error), request->count);
}

static NTSTATUS NTAPI create(DEVICE_OBJECT *object, IRP *irp) {
	IO_STACK_LOCATION *stack = IoGetCurrentIrpStackLocation(irp);
	device *d = object->DeviceExtension;
	stack->FileObject->FsContext = diskOpened(d->name, stack->Parameters.Create.ShareAccess);
	if (!stack->FileObject->FsContext) return complete(irp, STATUS_NO_MEMORY, 0);
	InterlockedIncrement(&d->files);
	return complete(irp, STATUS_SUCCESS, 0);
}

static NTSTATUS NTAPI close(DEVICE_OBJECT *object, IRP *irp) {
	IO_STACK_LOCATION *stack = IoGetCurrentIrpStackLocation(irp);
	diskFile *file = stack->FileObject->FsContext;
	stack->FileObject->FsContext = NULL;
	complete(irp, STATUS_SUCCESS, 0);
	if (!file) return STATUS_SUCCESS;
	diskRequest *request = diskNewRequest(file, ASK_CLOSE);
	if (request) diskAsk(request);
	InterlockedDecrement(&((device *)object->DeviceExtension)->files);
	return STATUS_SUCCESS;
}

// fill puts what the request is about into it.
static void fill(diskRequest *request, IRP *irp, const IO_STACK_LOCATION *stack) {
	request->irp = irp;
	request->buffer = irp->AssociatedIrp.SystemBuffer;
	switch (request->kind) {
	case ASK_READ:
		request->offset = (ULONGLONG)stack->Parameters.Read.ByteOffset.QuadPart;
		request->outSize = stack->Parameters.Read.Length;
		break;
	case ASK_WRITE:
		request->offset = (ULONGLONG)stack->Parameters.Write.ByteOffset.QuadPart;
		request->inSize = stack->Parameters.Write.Length;
		break;
	case ASK_CONTROL:
		request->code = stack->Parameters.DeviceIoControl.IoControlCode;
		request->inSize = stack->Parameters.DeviceIoControl.InputBufferLength;
		request->outSize = stack->Parameters.DeviceIoControl.OutputBufferLength;
		break;
	}
	if (!request->buffer) request->inSize = request->outSize = 0;
}

static int kindOf(const IO_STACK_LOCATION *stack) {
	switch (stack->MajorFunction) {
	case IRP_MJ_READ:
		return ASK_READ;
	case IRP_MJ_WRITE:
		return ASK_WRITE;
	case IRP_MJ_FLUSH_BUFFERS:
		return ASK_FLUSH;
	}
	return ASK_CONTROL;
}

static NTSTATUS NTAPI ask(DEVICE_OBJECT *object, IRP *irp) {
	(void)object;
	IO_STACK_LOCATION *stack = IoGetCurrentIrpStackLocation(irp);
	diskFile *file = stack->FileObject ? stack->FileObject->FsContext : NULL;
	if (!file) return complete(irp, STATUS_INVALID_HANDLE, 0);
	diskRequest *request = diskNewRequest(file, kindOf(stack));
	if (!request) return complete(irp, STATUS_NO_MEMORY, 0);
	fill(request, irp, stack);
	IoMarkIrpPending(irp);
	diskAsk(request);
	return STATUS_PENDING;
}

static void NTAPI unload(DRIVER_OBJECT *object) {
	(void)object;
	diskStop();
	deleteAll();
}

// DriverEntry is the entry point of the driver. Wine calls that of an image which
// imports from kernel32 also as DllMain, whose second parameter is a small number.
NTSTATUS NTAPI DriverEntry(DRIVER_OBJECT *object, UNICODE_STRING *path) {
	if ((ULONG_PTR)path <= 3) return TRUE;
	driver = object;
	object->MajorFunction[IRP_MJ_CREATE] = create;
	object->MajorFunction[IRP_MJ_CLOSE] = close;
	object->MajorFunction[IRP_MJ_READ] = ask;
	object->MajorFunction[IRP_MJ_WRITE] = ask;
	object->MajorFunction[IRP_MJ_FLUSH_BUFFERS] = ask;
	object->MajorFunction[IRP_MJ_DEVICE_CONTROL] = ask;
	object->MajorFunction[IRP_MJ_FILE_SYSTEM_CONTROL] = ask;
	object->DriverUnload = unload;
	return diskStart() ? STATUS_SUCCESS : STATUS_UNSUCCESSFUL;
}
