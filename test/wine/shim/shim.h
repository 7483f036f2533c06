// What the parts of the shim share; shim.c says what the shim is.
//
// The functions of the program under test are named after those they stand in
// for, with the prefix my_. Each calls the one it replaces by its plain name:
// the replaced entry is the program's, this library's own imports are Windows'.
#ifndef CSI_SHIM_H
#define CSI_SHIM_H

#include "../standin/c/link.h"
#include <winternl.h>

// --- handles.c

// handle_of makes a handle for an object that the node has open: a handle that Windows
// gives to nobody else while it is open. isRoot says that the object is the root
// folder of a volume. On failure it closes the object and returns NULL.
HANDLE handle_of(ULONGLONG object, BOOL isRoot);
// object_of returns the node's object of a handle, and 0 for every other handle.
ULONGLONG object_of(HANDLE h);
BOOL is_root(HANDLE h);

// listing is how far the listing of a folder has come.
typedef struct {
	csi_answer names; // being read; memory is NULL before the first look
	DWORD left;       // names that were not read yet
	int dots;         // entries "." and ".." that are still to come
	WCHAR *next;      // a name that was read but did not fit
} listing;

// lock_listing returns the listing of a handle, which stays with the caller until
// unlock_listing. NULL when there is no memory.
listing *lock_listing(HANDLE h);
void unlock_listing(HANDLE h);
void clear_listing(listing *list);

// --- calls.c

// is_node_path tells paths of files and volumes of the node: \\?\X:\… and
// \\?\Volume{guid}\…. A volume without the backslash is a device, whose driver answers.
BOOL is_node_path(const WCHAR *path);
// is_remote_path tells \\server\share…, also as \\?\UNC\server\share….
BOOL is_remote_path(const WCHAR *path);

// ask sends a request to the node and returns the error number of its answer, 0
// for none. The answer is to be freed in every case.
DWORD ask(WORD operation, csi_buffer *request, csi_answer *answer);
// ask_text and ask_object ask about a single text or object, and want_nothing is for
// questions whose answer is no more than the error number.
DWORD ask_text(WORD operation, const WCHAR *text, csi_answer *answer);
DWORD ask_object(WORD operation, ULONGLONG object, csi_answer *answer);
DWORD want_nothing(WORD operation, csi_buffer *request);
// finished sets the error number of the thread, and returns whether there is none.
BOOL finished(DWORD error);
// checked is error, or that of an answer which could not be read.
DWORD checked(DWORD error, const csi_answer *answer);

// --- status.c

// status_of is the NTSTATUS that Windows turns into an error number.
NTSTATUS status_of(DWORD error);

// --- the stand-ins: files.c, info.c, folder.c, data.c, privilege.c, volumes.c

HANDLE WINAPI my_CreateFileW(LPCWSTR, DWORD, DWORD, LPSECURITY_ATTRIBUTES, DWORD, DWORD, HANDLE);
BOOL WINAPI my_CreateDirectoryW(LPCWSTR, LPSECURITY_ATTRIBUTES);
NTSTATUS WINAPI my_NtCreateFile(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES, PIO_STATUS_BLOCK, PLARGE_INTEGER, ULONG, ULONG, ULONG,
								ULONG, PVOID, ULONG);
BOOL WINAPI my_CloseHandle(HANDLE);
DWORD WINAPI my_GetFileAttributesW(LPCWSTR);

BOOL WINAPI my_GetFileInformationByHandle(HANDLE, LPBY_HANDLE_FILE_INFORMATION);
BOOL WINAPI my_GetFileInformationByHandleEx(HANDLE, FILE_INFO_BY_HANDLE_CLASS, LPVOID, DWORD);
BOOL WINAPI my_SetFileInformationByHandle(HANDLE, FILE_INFO_BY_HANDLE_CLASS, LPVOID, DWORD);
DWORD WINAPI my_GetFinalPathNameByHandleW(HANDLE, LPWSTR, DWORD, DWORD);
// list_folder fills a buffer with FILE_FULL_DIR_INFO entries; it returns an error number.
DWORD list_folder(HANDLE h, ULONGLONG object, BOOL restart, BYTE *buffer, DWORD size);

BOOL WINAPI my_ReadFile(HANDLE, LPVOID, DWORD, LPDWORD, LPOVERLAPPED);
BOOL WINAPI my_FlushFileBuffers(HANDLE);
BOOL WINAPI my_DeviceIoControl(HANDLE, DWORD, LPVOID, DWORD, LPVOID, DWORD, LPDWORD, LPOVERLAPPED);

BOOL WINAPI my_AdjustTokenPrivileges(HANDLE, BOOL, PTOKEN_PRIVILEGES, DWORD, PTOKEN_PRIVILEGES, PDWORD);
// may_make_symlink says whether the process has the privilege for that switched on.
BOOL may_make_symlink(void);

HANDLE WINAPI my_FindFirstVolumeW(LPWSTR, DWORD);
BOOL WINAPI my_FindNextVolumeW(HANDLE, LPWSTR, DWORD);
BOOL WINAPI my_FindVolumeClose(HANDLE);
BOOL WINAPI my_GetVolumePathNamesForVolumeNameW(LPCWSTR, LPWCH, DWORD, PDWORD);
BOOL WINAPI my_SetVolumeMountPointW(LPCWSTR, LPCWSTR);
BOOL WINAPI my_DeleteVolumeMountPointW(LPCWSTR);
BOOL WINAPI my_GetVolumeInformationW(LPCWSTR, LPWSTR, DWORD, LPDWORD, LPDWORD, LPDWORD, LPWSTR, DWORD);
BOOL WINAPI my_GetDiskFreeSpaceExW(LPCWSTR, PULARGE_INTEGER, PULARGE_INTEGER, PULARGE_INTEGER);

// --- services.c

SC_HANDLE WINAPI my_OpenServiceW(SC_HANDLE, LPCWSTR, DWORD);
BOOL WINAPI my_CloseServiceHandle(SC_HANDLE);
BOOL WINAPI my_EnumDependentServicesW(SC_HANDLE, DWORD, LPENUM_SERVICE_STATUSW, DWORD, LPDWORD, LPDWORD);
BOOL WINAPI my_ControlService(SC_HANDLE, DWORD, LPSERVICE_STATUS);

#endif
