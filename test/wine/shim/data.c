// Reading, flushing and controlling objects of the node.
#include "shim.h"

#include "../standin/c/diskshim.h"

#include <winioctl.h>

#define CHUNK (1u << 20) // of a read; far below what a frame can hold

// read_at reads until the buffer is full or the node has no more.
static DWORD read_at(ULONGLONG object, ULONGLONG offset, BYTE *buffer, DWORD size, DWORD *count) {
	*count = 0;
	for (;;) {
		DWORD want = size - *count < CHUNK ? size - *count : CHUNK, got = 0;
		csi_buffer request = {0};
		csi_answer answer;
		csi_put_u64(&request, object);
		csi_put_u64(&request, offset + *count);
		csi_put_u32(&request, want);
		DWORD error = ask(CSI_READ_AT, &request, &answer);
		const BYTE *data = error ? NULL : csi_get_bytes(&answer.body, &got);
		error = checked(error, &answer);
		if (!error && got > want) error = ERROR_INVALID_DATA;
		if (!error) CopyMemory(buffer + *count, data, got);
		csi_answer_free(&answer);
		if (error == ERROR_HANDLE_EOF && *count > 0) return 0; // the end is told when nothing was read
		if (error) return error;
		*count += got;
		if (got < want || *count == size) return 0;
	}
}

// The node's files have no position of their own; csi-proxy says where to read.
BOOL WINAPI my_ReadFile(HANDLE h, LPVOID buffer, DWORD size, LPDWORD count, LPOVERLAPPED at) {
	ULONGLONG object = object_of(h);
	if (!object) return ReadFile(h, buffer, size, count, at);
	if (!at) return finished(ERROR_INVALID_PARAMETER);
	DWORD got;
	DWORD error = read_at(object, (ULONGLONG)at->OffsetHigh << 32 | at->Offset, buffer, size, &got);
	at->InternalHigh = got;
	if (count) *count = got;
	return finished(error);
}

BOOL WINAPI my_FlushFileBuffers(HANDLE h) {
	ULONGLONG object = object_of(h);
	if (!object) return FlushFileBuffers(h);
	csi_buffer request = {0};
	csi_put_u64(&request, object);
	return finished(want_nothing(CSI_FLUSH, &request));
}

// is_symlink tells a request to make a symbolic link, whose buffer begins with the tag.
static BOOL is_symlink(DWORD code, const void *in, DWORD inSize) {
	return code == FSCTL_SET_REPARSE_POINT && in && inSize >= sizeof(DWORD) && *(const DWORD *)in == IO_REPARSE_TAG_SYMLINK;
}

BOOL WINAPI my_DeviceIoControl(HANDLE h, DWORD code, LPVOID in, DWORD inSize, LPVOID out, DWORD outSize, LPDWORD count,
							   LPOVERLAPPED at) {
	ULONGLONG object = object_of(h);
	if (!object && !at && csi_is_device(h)) return csi_device_control(h, code, in, inSize, out, outSize, count);
	if (!object) return DeviceIoControl(h, code, in, inSize, out, outSize, count, at);
	if (is_symlink(code, in, inSize) && !may_make_symlink()) return finished(ERROR_PRIVILEGE_NOT_HELD);
	csi_buffer request = {0};
	csi_answer answer;
	csi_put_u64(&request, object);
	csi_put_u32(&request, code);
	csi_put_bytes(&request, in, in ? inSize : 0);
	csi_put_u32(&request, out ? outSize : 0);
	DWORD error = ask(CSI_DEVICE_IO_CONTROL, &request, &answer), got = 0;
	// Bytes come with success, and with the errors that tell of a short buffer.
	const BYTE *data = error && error != ERROR_MORE_DATA && error != ERROR_INSUFFICIENT_BUFFER
						   ? NULL
						   : csi_get_bytes(&answer.body, &got);
	error = checked(error, &answer);
	if (!error && got > outSize) error = ERROR_INVALID_DATA;
	if (data && got <= outSize) CopyMemory(out, data, got);
	if (count) *count = got;
	csi_answer_free(&answer);
	return finished(error);
}
