// Handles of the node's objects. The program needs values that Windows uses for
// nothing else, so each object gets an event, and a place in a table by the event's
// handle: handles are small multiples of 4. The table makes the question whether a handle
// is one of ours, which every ReadFile and CloseHandle of the program asks, cost one
// read of memory.
#include "shim.h"

#include "../standin/c/diskshim.h"

#define HANDLES (1 << 16)

static struct {
	volatile LONG64 object; // the node's number; 0 when the handle is not ours
	BOOL root;
	SRWLOCK lock; // of the listing; a folder that does not answer delays no other
	listing *list;
} table[HANDLES];

static SIZE_T place_of(HANDLE h) {
	SIZE_T place = (ULONG_PTR)h >> 2;
	return place < HANDLES ? place : 0; // handle 0 is nobody's
}

HANDLE handle_of(ULONGLONG object, BOOL isRoot) {
	HANDLE h = CreateEventW(NULL, TRUE, FALSE, NULL);
	SIZE_T place = place_of(h);
	if (place == 0) {
		csi_answer answer;
		if (h) CloseHandle(h);
		ask_object(CSI_CLOSE_HANDLE, object, &answer);
		csi_answer_free(&answer);
		SetLastError(ERROR_NO_SYSTEM_RESOURCES);
		return NULL;
	}
	table[place].root = isRoot;
	InterlockedExchange64(&table[place].object, (LONG64)object);
	return h;
}

ULONGLONG object_of(HANDLE h) { return (ULONGLONG)table[place_of(h)].object; }

BOOL is_root(HANDLE h) { return table[place_of(h)].root; }

listing *lock_listing(HANDLE h) {
	SIZE_T place = place_of(h);
	AcquireSRWLockExclusive(&table[place].lock);
	listing **list = &table[place].list;
	if (!*list) *list = csi_alloc(sizeof **list);
	if (!*list) unlock_listing(h);
	return *list;
}

void unlock_listing(HANDLE h) { ReleaseSRWLockExclusive(&table[place_of(h)].lock); }

void clear_listing(listing *list) {
	csi_answer_free(&list->names);
	csi_free(list->next);
	*list = (listing){0};
}

// The event is closed last: until then nobody can be given the same handle.
BOOL WINAPI my_CloseHandle(HANDLE h) {
	SIZE_T place = place_of(h);
	ULONGLONG object = (ULONGLONG)table[place].object;
	if (!object) {
		csi_device_closing(h);
		return CloseHandle(h);
	}
	if (InterlockedCompareExchange64(&table[place].object, 0, (LONG64)object) != (LONG64)object) {
		return finished(ERROR_INVALID_HANDLE); // another thread has just closed it
	}
	AcquireSRWLockExclusive(&table[place].lock);
	if (table[place].list) clear_listing(table[place].list);
	csi_free(table[place].list);
	table[place].list = NULL;
	ReleaseSRWLockExclusive(&table[place].lock);
	csi_answer answer;
	DWORD error = ask_object(CSI_CLOSE_HANDLE, object, &answer);
	csi_answer_free(&answer);
	CloseHandle(h);
	return finished(error);
}
