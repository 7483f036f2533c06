// Listing a folder of the node, in the form of FILE_FULL_DIR_INFO.
#include "shim.h"

#define ENTRY_FIXED 68 // the fields before the name; the structure ends in one unit of it
#define ENTRY_ALIGN 8

// start asks for the names. A folder has "." and ".." before them, the root of a volume has not.
static DWORD start(listing *list, HANDLE h, ULONGLONG object) {
	clear_listing(list);
	DWORD error = ask_object(CSI_READ_DIR, object, &list->names);
	if (!error) list->left = csi_get_count(&list->names.body, sizeof(DWORD));
	error = checked(error, &list->names);
	if (error) {
		clear_listing(list);
		return error;
	}
	list->dots = is_root(h) ? 0 : 2;
	// An empty root has nothing to begin with: STATUS_NO_SUCH_FILE, not the end of a list.
	return list->left == 0 && list->dots == 0 ? ERROR_FILE_NOT_FOUND : 0;
}

// peek makes list->next the next name; FALSE at the end.
static BOOL peek(listing *list) {
	if (list->next) return TRUE;
	if (list->dots > 0) {
		list->next = csi_alloc(3 * sizeof(WCHAR));
		if (!list->next) return FALSE;
		list->next[0] = '.';
		list->next[1] = list->dots == 1 ? '.' : 0;
		list->dots--;
		return TRUE;
	}
	if (list->left == 0) return FALSE;
	list->left--;
	list->next = csi_get_text(&list->names.body, NULL);
	return list->next != NULL;
}

// fill writes entries until the buffer is full, each behind its forerunner's NextEntryOffset.
static DWORD fill(listing *list, BYTE *buffer, DWORD size) {
	DWORD at = 0;
	FILE_FULL_DIR_INFO *last = NULL;
	while (peek(list)) {
		DWORD length = (DWORD)lstrlenW(list->next) * sizeof(WCHAR);
		if (at > size || size - at < ENTRY_FIXED || size - at - ENTRY_FIXED < length) return last ? 0 : ERROR_MORE_DATA;
		FILE_FULL_DIR_INFO *entry = (FILE_FULL_DIR_INFO *)(buffer + at);
		ZeroMemory(entry, ENTRY_FIXED);
		entry->FileAttributes = FILE_ATTRIBUTE_NORMAL; // the node lists names only
		entry->FileNameLength = length;
		CopyMemory(buffer + at + ENTRY_FIXED, list->next, length);
		if (last) last->NextEntryOffset = (DWORD)((BYTE *)entry - (BYTE *)last);
		last = entry;
		at = (at + ENTRY_FIXED + length + ENTRY_ALIGN - 1) & ~(DWORD)(ENTRY_ALIGN - 1);
		csi_free(list->next);
		list->next = NULL;
	}
	if (list->names.body.failed) return ERROR_INVALID_DATA;
	return last ? 0 : ERROR_NO_MORE_FILES;
}

DWORD list_folder(HANDLE h, ULONGLONG object, BOOL restart, BYTE *buffer, DWORD size) {
	if (size < sizeof(FILE_FULL_DIR_INFO)) return ERROR_BAD_LENGTH;
	listing *list = lock_listing(h);
	if (!list) return ERROR_NOT_ENOUGH_MEMORY;
	DWORD error = restart || !list->names.memory ? start(list, h, object) : 0;
	if (!error) error = fill(list, buffer, size);
	unlock_listing(h);
	return error;
}
