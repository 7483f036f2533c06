// Opening and making files and folders of the node.
#include "shim.h"

#include "../standin/c/diskshim.h"

// Options and dispositions of the native call. Source: winternl.h, ntifs.h.
#define OPEN_IT 1
#define MAKE_IT 2
#define OPTION_DIRECTORY 0x00000001
#define OPTION_SYNCHRONOUS 0x00000030 // ALERT and NONALERT
#define OPTION_REPARSE_POINT 0x00200000

#define STATUS_INVALID_PARAMETER_ ((NTSTATUS)0xC000000D)
#define STATUS_NOT_SUPPORTED_ ((NTSTATUS)0xC00000BB)

static void put_open(csi_buffer *request, DWORD access, DWORD share, BOOL create, BOOL directory) {
	csi_put_u32(request, access);
	csi_put_u32(request, share);
	csi_put_u8(request, (BYTE)create);
	csi_put_u8(request, (BYTE)directory);
}

// open sends a request that answers with an object, and makes a handle of it.
static DWORD open(WORD operation, csi_buffer *request, BOOL isRoot, HANDLE *h) {
	csi_answer answer;
	*h = NULL;
	DWORD error = ask(operation, request, &answer);
	ULONGLONG object = error ? 0 : csi_get_u64(&answer.body);
	error = checked(error, &answer);
	csi_answer_free(&answer);
	if (error) return error;
	*h = handle_of(object, isRoot);
	return *h ? 0 : GetLastError();
}

static BOOL is_root_path(const WCHAR *path) {
	const WCHAR *rest = path + 4;
	while (*rest != '\\') rest++;
	return rest[1] == 0;
}

HANDLE WINAPI my_CreateFileW(LPCWSTR path, DWORD access, DWORD share, LPSECURITY_ATTRIBUTES security, DWORD disposition,
							 DWORD flags, HANDLE template) {
	const DWORD itself = FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT;
	BOOL mayBeNode = path && path[0] == '\\' && path[1] == '\\' && csi_active(); // spares the others the question
	if (!mayBeNode) return CreateFileW(path, access, share, security, disposition, flags, template);
	if ((flags & itself) != itself || !is_node_path(path)) {
		HANDLE device = CreateFileW(path, access, share, security, disposition, flags, template);
		return csi_device_opened(device, path, access, share);
	}
	if (disposition != OPEN_EXISTING && disposition != CREATE_NEW) {
		SetLastError(ERROR_INVALID_PARAMETER); // the node has no other
		return INVALID_HANDLE_VALUE;
	}
	csi_buffer request = {0};
	csi_put_text(&request, path, -1);
	put_open(&request, access, share, disposition == CREATE_NEW, FALSE);
	HANDLE h;
	return finished(open(CSI_CREATE_FILE, &request, is_root_path(path), &h)) ? h : INVALID_HANDLE_VALUE;
}

BOOL WINAPI my_CreateDirectoryW(LPCWSTR path, LPSECURITY_ATTRIBUTES security) {
	if (!is_node_path(path) || !csi_active()) return CreateDirectoryW(path, security);
	csi_buffer request = {0};
	csi_put_text(&request, path, -1);
	return finished(want_nothing(CSI_CREATE_DIRECTORY, &request));
}

// open_at opens a name in a folder of the node.
static NTSTATUS open_at(ULONGLONG folder, PHANDLE h, ACCESS_MASK access, const UNICODE_STRING *name, PIO_STATUS_BLOCK io,
						ULONG share, ULONG disposition, ULONG options) {
	if ((disposition != OPEN_IT && disposition != MAKE_IT) || !(options & OPTION_REPARSE_POINT)) {
		return STATUS_NOT_SUPPORTED_; // the node opens things themselves, and has no other dispositions
	}
	// Source: NtCreateFile, CreateOptions.
	if ((options & OPTION_SYNCHRONOUS) && !(access & SYNCHRONIZE)) return STATUS_INVALID_PARAMETER_;
	csi_buffer request = {0};
	csi_put_u64(&request, folder);
	csi_put_text(&request, name->Buffer, name->Length / (int)sizeof(WCHAR));
	put_open(&request, access, share, disposition == MAKE_IT, options & OPTION_DIRECTORY);
	NTSTATUS status = status_of(open(CSI_OPEN_AT, &request, FALSE, h));
	if (status == 0) io->Information = disposition; // FILE_OPENED and FILE_CREATED have the same numbers
	return status;
}

NTSTATUS WINAPI my_NtCreateFile(PHANDLE h, ACCESS_MASK access, POBJECT_ATTRIBUTES attributes, PIO_STATUS_BLOCK io,
								PLARGE_INTEGER allocation, ULONG fileAttributes, ULONG share, ULONG disposition, ULONG options,
								PVOID ea, ULONG eaLength) {
	ULONGLONG folder = attributes && attributes->ObjectName ? object_of(attributes->RootDirectory) : 0;
	if (!folder) {
		return NtCreateFile(h, access, attributes, io, allocation, fileAttributes, share, disposition, options, ea, eaLength);
	}
	io->Status = open_at(folder, h, access, attributes->ObjectName, io, share, disposition, options);
	return io->Status;
}

// Of the calls by path without opening, csi-proxy makes this one, on shares.
DWORD WINAPI my_GetFileAttributesW(LPCWSTR path) {
	if ((!is_node_path(path) && !is_remote_path(path)) || !csi_active()) return GetFileAttributesW(path);
	csi_answer answer;
	DWORD error = ask_text(CSI_FILE_ATTRIBUTES, path, &answer);
	DWORD attributes = error ? 0 : csi_get_u32(&answer.body);
	error = checked(error, &answer);
	csi_answer_free(&answer);
	return finished(error) ? attributes : INVALID_FILE_ATTRIBUTES;
}
