// csidisk.sys: disks and volumes of the simulated node as devices of Wine.
//
// The driver has two halves that share no Windows header, as those for drivers and
// those for programs contradict each other: disk.c speaks to Wine's I/O manager,
// diskwork.c to the node server. This file is what they say to each other, in types
// that both kinds of headers have.
#ifndef CSI_DISK_H
#define CSI_DISK_H

// Two control codes of our own, which the shim sends over a device it has opened or is
// about to close. Wine opens a device without waiting for the driver's answer,
// and keeps the rights of the handle to itself; it closes one without waiting either.
// After DISK_OPEN (in: u32 access, u32 share; out: u32 Windows error number) the node
// has the handle open with the program's rights, or has refused it; after DISK_CLOSE it
// is closed at the node. A program that sends neither gets the device with every
// right, at its first call.
// They are CTL_CODE(FILE_DEVICE_DISK, 0xC50 and 0xC51, METHOD_BUFFERED, FILE_ANY_ACCESS).
#define DISK_OPEN 0x73140
#define DISK_CLOSE 0x73144

// What a device can be asked.
enum { ASK_READ, ASK_WRITE, ASK_FLUSH, ASK_CONTROL, ASK_CLOSE };

typedef struct diskFile diskFile;

// diskRequest is one call on an open device, and its answer.
typedef struct diskRequest {
	struct diskRequest *next;
	void *irp; // what diskAnswered completes
	diskFile *file;
	int kind;
	ULONG code; // of ASK_CONTROL
	ULONGLONG offset; // of ASK_READ and ASK_WRITE
	// One buffer serves for what goes in and what comes out, as METHOD_BUFFERED has it.
	UCHAR *buffer;
	ULONG inSize, outSize;
	// The answer: a Win32 error number and the bytes that are in the buffer.
	ULONG error, count;
} diskRequest;

// diskStart starts the thread that follows the node's list of devices. diskStop
// ends all threads. One that hangs in a call of the node is left behind, and keeps the
// image of the driver in memory.
BOOLEAN diskStart(void);
void diskStop(void);

// diskOpened makes the file of a device that a program has opened; NULL without memory.
diskFile *diskOpened(const WCHAR *name, ULONG share);

// diskAsk hands a request to a thread of its own, so that one that hangs stops no
// other. A request of kind ASK_CLOSE ends its file; all others come back through
// diskAnswered. diskNewRequest returns NULL without memory.
diskRequest *diskNewRequest(diskFile *file, int kind);
void diskAsk(diskRequest *request);
void diskAnswered(diskRequest *request); // in disk.c; frees nothing
void diskFreeRequest(diskRequest *request);

// Devices, by the names of their links; only one thread calls these. A device that is
// removed while programs have it open is no longer found by its name; deviceDelete, to be
// called now and then, deletes it when nobody has it open any more. Times are milliseconds.
BOOLEAN deviceAdd(const WCHAR *name);
void deviceKeepOnly(const WCHAR *const *names, ULONG count, ULONGLONG now);
void deviceDelete(ULONGLONG now);

#endif
