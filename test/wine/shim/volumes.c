// Volumes and mount points of the node. While the lab is active the list of volumes
// and all mount points are the node's; Wine has none worth the name.
#include "shim.h"

#define COMPONENT_MAX 255

// search is a walk over the names of all volumes; its address is the search handle,
// which Windows does not make a kernel handle either.
typedef struct {
	csi_answer names;
	DWORD left;
} search;

// give_text copies a text with its NUL into a buffer of so many units.
static DWORD give_text(const WCHAR *text, WCHAR *buffer, DWORD size, DWORD tooShort) {
	DWORD length = (DWORD)lstrlenW(text) + 1;
	if (length > size) return tooShort;
	CopyMemory(buffer, text, length * sizeof *text);
	return 0;
}

static DWORD next_name(search *s, WCHAR *buffer, DWORD size) {
	if (s->left == 0) return ERROR_NO_MORE_FILES;
	s->left--;
	WCHAR *name = csi_get_text(&s->names.body, NULL);
	if (!name) return ERROR_INVALID_DATA;
	DWORD error = give_text(name, buffer, size, ERROR_FILENAME_EXCED_RANGE);
	csi_free(name);
	return error;
}

static void end(search *s) {
	csi_answer_free(&s->names);
	csi_free(s);
}

HANDLE WINAPI my_FindFirstVolumeW(LPWSTR buffer, DWORD size) {
	if (!csi_active()) return FindFirstVolumeW(buffer, size);
	search *s = csi_alloc(sizeof *s);
	if (!s) {
		SetLastError(ERROR_NOT_ENOUGH_MEMORY);
		return INVALID_HANDLE_VALUE;
	}
	csi_buffer request = {0};
	DWORD error = ask(CSI_FIND_VOLUMES, &request, &s->names);
	if (!error) s->left = csi_get_count(&s->names.body, sizeof(DWORD));
	error = checked(error, &s->names);
	if (!error) error = next_name(s, buffer, size);
	if (finished(error)) return (HANDLE)s;
	end(s);
	return INVALID_HANDLE_VALUE;
}

BOOL WINAPI my_FindNextVolumeW(HANDLE h, LPWSTR buffer, DWORD size) {
	if (!csi_active()) return FindNextVolumeW(h, buffer, size);
	return finished(next_name((search *)h, buffer, size));
}

BOOL WINAPI my_FindVolumeClose(HANDLE h) {
	if (!csi_active()) return FindVolumeClose(h);
	end((search *)h);
	return TRUE;
}

// put_list lays out texts one behind the other, each with a NUL, and a NUL after the
// last. It writes as long as there is room, and returns how many units are needed.
static DWORD put_list(csi_reader *names, WCHAR *buffer, DWORD size) {
	DWORD needed = 0;
	for (DWORD count = csi_get_count(names, sizeof(DWORD)); count > 0; count--) {
		WCHAR *name = csi_get_text(names, NULL);
		if (!name) return 0;
		DWORD length = (DWORD)lstrlenW(name) + 1;
		if (needed + length <= size) CopyMemory(buffer + needed, name, length * sizeof *name);
		needed += length;
		csi_free(name);
	}
	if (needed < size) buffer[needed] = 0;
	return needed + 1;
}

BOOL WINAPI my_GetVolumePathNamesForVolumeNameW(LPCWSTR volume, LPWCH buffer, DWORD size, PDWORD needed) {
	if (!csi_active()) return GetVolumePathNamesForVolumeNameW(volume, buffer, size, needed);
	csi_answer answer;
	DWORD error = ask_text(CSI_VOLUME_PATH_NAMES, volume, &answer), length = 0;
	if (!error) length = put_list(&answer.body, buffer, size);
	error = checked(error, &answer);
	csi_answer_free(&answer);
	if (!error && length > size) error = ERROR_MORE_DATA;
	if (needed && (!error || error == ERROR_MORE_DATA)) *needed = length;
	return finished(error);
}

BOOL WINAPI my_SetVolumeMountPointW(LPCWSTR path, LPCWSTR volume) {
	if (!csi_active()) return SetVolumeMountPointW(path, volume);
	csi_buffer request = {0};
	csi_put_text(&request, path, -1);
	csi_put_text(&request, volume, -1);
	return finished(want_nothing(CSI_SET_VOLUME_MOUNT_POINT, &request));
}

BOOL WINAPI my_DeleteVolumeMountPointW(LPCWSTR path) {
	if (!csi_active()) return DeleteVolumeMountPointW(path);
	csi_buffer request = {0};
	csi_put_text(&request, path, -1);
	return finished(want_nothing(CSI_DELETE_VOLUME_MOUNT_POINT, &request));
}

// give_wanted is give_text for results that the caller may do without.
static DWORD give_wanted(const WCHAR *text, WCHAR *buffer, DWORD size) {
	return buffer && text ? give_text(text, buffer, size, ERROR_MORE_DATA) : 0;
}

BOOL WINAPI my_GetVolumeInformationW(LPCWSTR root, LPWSTR label, DWORD labelSize, LPDWORD serial, LPDWORD longest, LPDWORD flags,
									 LPWSTR fileSystem, DWORD fileSystemSize) {
	if (!is_node_path(root) || !csi_active()) {
		return GetVolumeInformationW(root, label, labelSize, serial, longest, flags, fileSystem, fileSystemSize);
	}
	csi_answer answer;
	DWORD error = ask_text(CSI_VOLUME_INFORMATION, root, &answer);
	if (error) {
		csi_answer_free(&answer);
		return finished(error);
	}
	WCHAR *system = csi_get_text(&answer.body, NULL), *name = csi_get_text(&answer.body, NULL);
	DWORD number = csi_get_u32(&answer.body), bits = csi_get_u32(&answer.body);
	error = checked(0, &answer);
	csi_answer_free(&answer);
	if (!error) error = give_wanted(name, label, labelSize);
	if (!error) error = give_wanted(system, fileSystem, fileSystemSize);
	csi_free(system);
	csi_free(name);
	if (error) return finished(error);
	if (serial) *serial = number;
	if (longest) *longest = COMPONENT_MAX;
	if (flags) *flags = bits;
	return TRUE;
}

// The node has no quotas: what is free is free for every caller.
BOOL WINAPI my_GetDiskFreeSpaceExW(LPCWSTR path, PULARGE_INTEGER forCaller, PULARGE_INTEGER total, PULARGE_INTEGER free) {
	if ((!is_node_path(path) && !is_remote_path(path)) || !csi_active()) return GetDiskFreeSpaceExW(path, forCaller, total, free);
	csi_answer answer;
	DWORD error = ask_text(CSI_DISK_FREE_SPACE, path, &answer);
	ULONGLONG totalBytes = error ? 0 : csi_get_u64(&answer.body), freeBytes = error ? 0 : csi_get_u64(&answer.body);
	error = checked(error, &answer);
	csi_answer_free(&answer);
	if (error) return finished(error);
	if (forCaller) forCaller->QuadPart = freeBytes;
	if (total) total->QuadPart = totalBytes;
	if (free) free->QuadPart = freeBytes;
	return TRUE;
}
