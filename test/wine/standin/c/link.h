// The stand-in link, client side: what the stand-ins for parts of Windows ask the
// node server. It is linked into DLLs, a service and a kernel driver of Wine,
// so it allocates from the process heap, keeps no state that needs a
// constructor, and opens nothing before the first call.
//
// A call writes a request, sends it, and reads the answer:
//
//	csi_buffer in = {0};
//	csi_put_text(&in, L"root\\cimv2", -1);
//	csi_answer out;
//	if (!csi_call(CSI_NAMESPACE, &in, &out)) return the error of a server that died;
//	... out.status, csi_get_u32(&out.body) ...
//	csi_answer_free(&out);
//
// Putting never fails on the spot: a buffer without memory is marked, and csi_call
// fails. Getting never reads beyond the answer: it yields zeros, and marks the
// reader as failed, which the caller checks once at the end.
#ifndef CSI_LINK_H
#define CSI_LINK_H

#include <winsock2.h>
#include <windows.h>

// Operations. The numbers and bodies are those of the Go package test/wine/standin.
enum {
	CSI_QUERY = 1,
	CSI_CLASS = 2,
	CSI_EXEC = 3,
	CSI_NAMESPACE = 4,

	CSI_CREATE_FILE = 16,
	CSI_OPEN_AT = 17,
	CSI_CLOSE_HANDLE = 18,
	CSI_INFO = 19,
	CSI_READ_DIR = 20,
	CSI_DELETE = 21,
	CSI_FINAL_PATH = 22,
	CSI_READ_AT = 24,
	CSI_FLUSH = 25,
	CSI_DEVICE_IO_CONTROL = 26,
	CSI_FIND_VOLUMES = 27,
	CSI_VOLUME_PATH_NAMES = 28,
	CSI_SET_VOLUME_MOUNT_POINT = 29,
	CSI_DELETE_VOLUME_MOUNT_POINT = 30,
	CSI_VOLUME_INFORMATION = 31,
	CSI_DISK_FREE_SPACE = 32,
	CSI_FILE_ATTRIBUTES = 33,
	CSI_CREATE_DIRECTORY = 34,
	CSI_WRITE_AT = 35,

	CSI_DEVICES = 48,
	CSI_DEVICES_READY = 49,
	CSI_PROGRAM = 50, // sent by link.c itself, for each connection

	CSI_SERVICE_STARTED = 64,
	CSI_SERVICE_STOPPED = 65,

	CSI_CREATE_DISK = 80,
	CSI_ATTACH_DISK = 81,
	CSI_DETACH_DISK = 82,
	CSI_PHYSICAL_PATH = 83,
	CSI_CLOSE_DISK = 84,
	CSI_OPEN_DISK = 85,
	CSI_RESIZE_DISK = 86,
};

// csi_buffer is a request that is being written; it begins as all zeros.
typedef struct {
	BYTE *data;
	SIZE_T size, capacity;
	BOOL failed; // no memory, or a text that cannot be converted
} csi_buffer;

void csi_put_u8(csi_buffer *b, BYTE value);
void csi_put_u16(csi_buffer *b, WORD value);
void csi_put_u32(csi_buffer *b, DWORD value);
void csi_put_u64(csi_buffer *b, ULONGLONG value);
void csi_put_raw(csi_buffer *b, const void *data, SIZE_T size);    // without a count
void csi_put_bytes(csi_buffer *b, const void *data, SIZE_T size);  // count and bytes
// csi_put_text writes `count` UTF-16 units, or those before the NUL when count is -1;
// a null pointer is the empty text.
void csi_put_text(csi_buffer *b, const WCHAR *text, int count);
void csi_buffer_free(csi_buffer *b);

// csi_reader is an answer that is being read.
typedef struct {
	const BYTE *data;
	SIZE_T size, at;
	BOOL failed; // something was read that is not there
} csi_reader;

BYTE csi_get_u8(csi_reader *r);
WORD csi_get_u16(csi_reader *r);
DWORD csi_get_u32(csi_reader *r);
ULONGLONG csi_get_u64(csi_reader *r);
// csi_get_raw returns a pointer into the answer, NULL when there is less left.
const BYTE *csi_get_raw(csi_reader *r, SIZE_T size);
// csi_get_bytes is csi_get_raw of a count that stands before the bytes.
const BYTE *csi_get_bytes(csi_reader *r, DWORD *size);
// csi_get_text returns a text with a NUL at its end, to be freed with csi_free.
// length, which may be NULL, is its number of UTF-16 units. It returns NULL when
// the text is not there whole, or there is no memory.
WCHAR *csi_get_text(csi_reader *r, DWORD *length);
// csi_get_count returns the count of a list whose items take at least itemSize bytes
// each; a list that cannot be there whole marks the reader and counts 0.
DWORD csi_get_count(csi_reader *r, DWORD itemSize);

// csi_answer is an answer; body lies in memory that csi_answer_free frees.
typedef struct {
	DWORD status;
	csi_reader body;
	BYTE *memory;
} csi_answer;

// csi_active reports whether the lab is active for this process: the environment
// variable CSI_STANDIN or the registry value HKLM\Software\csi-windows-lab\Address
// gives the address of a node server, as 127.0.0.1:PORT. Once active it stays so.
// Not to be called from DllMain.
BOOL csi_active(void);

// csi_call sends a request, frees it, and waits for the answer, however long that
// takes. On FALSE there is nothing to free; answer->status then says how far the
// request got: CSI_UNREACHABLE, nobody has it, or CSI_LOST, the server ended
// the connection instead of answering. Calls of several threads go over several
// connections.
enum { CSI_UNREACHABLE = 0, CSI_LOST = 1 };
BOOL csi_call(WORD operation, csi_buffer *request, csi_answer *answer);
void csi_answer_free(csi_answer *answer);

// csi_begin, csi_wait and csi_finish are csi_call in steps, for callers that do not
// wait forever. After csi_begin has returned TRUE, csi_finish or csi_abandon must be
// called once.
typedef struct {
	SOCKET connection;
} csi_pending;

BOOL csi_begin(WORD operation, csi_buffer *request, csi_pending *pending);
// csi_wait reports whether csi_finish will not have to wait; it waits for that for
// some milliseconds, or INFINITE.
BOOL csi_wait(const csi_pending *pending, DWORD milliseconds);
BOOL csi_finish(csi_pending *pending, csi_answer *answer);
void csi_abandon(csi_pending *pending);

// csi_disconnect closes the connections that are kept. For a library that is unloaded.
void csi_disconnect(void);

// Memory of the process heap; csi_alloc returns zeros, or NULL.
void *csi_alloc(SIZE_T size);
void csi_free(void *memory);

#endif
