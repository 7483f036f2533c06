// Dependent services. Wine's EnumDependentServices knows of none, and its service
// manager stops a service that others need; on Windows the first lists those that run,
// in the order in which they have to be stopped, and the second is refused.
//
// A handle does not tell which service it is of, so its name is kept from its opening.
#include "shim.h"

#define NAME_UNITS 257 // of a service, and its display name. Source: CreateServiceW.
#define NEEDED_BYTES 8192 // of the list of services that one needs
#define DEPTH_MAX 16 // of services that need one another; no installation comes near
#define SERVICES_KEY L"System\\CurrentControlSet\\Services"

typedef struct opened {
	struct opened *next;
	SC_HANDLE handle;
	WCHAR name[NAME_UNITS];
} opened;

static SRWLOCK lock;
static opened *handles;

SC_HANDLE WINAPI my_OpenServiceW(SC_HANDLE manager, LPCWSTR name, DWORD access) {
	SC_HANDLE handle = OpenServiceW(manager, name, access);
	opened *o = handle ? csi_alloc(sizeof *o) : NULL;
	if (!o) return handle;
	o->handle = handle;
	lstrcpynW(o->name, name, NAME_UNITS);
	AcquireSRWLockExclusive(&lock);
	o->next = handles;
	handles = o;
	ReleaseSRWLockExclusive(&lock);
	return handle;
}

BOOL WINAPI my_CloseServiceHandle(SC_HANDLE handle) {
	AcquireSRWLockExclusive(&lock);
	opened **at = &handles;
	while (*at && (*at)->handle != handle) at = &(*at)->next;
	opened *o = *at;
	if (o) *at = o->next;
	ReleaseSRWLockExclusive(&lock);
	csi_free(o);
	return CloseServiceHandle(handle);
}

static BOOL name_of(SC_HANDLE handle, WCHAR *name) {
	AcquireSRWLockShared(&lock);
	opened *o = handles;
	while (o && o->handle != handle) o = o->next;
	if (o) lstrcpyW(name, o->name);
	ReleaseSRWLockShared(&lock);
	return o != NULL;
}

// dependent is a service that needs another, in a list of all of them.
typedef struct dependent {
	struct dependent *next;
	WCHAR name[NAME_UNITS], display[NAME_UNITS];
	SERVICE_STATUS status;
} dependent;

// needs tells whether a service is in the list of those that another needs.
static BOOL needs(HKEY services, const WCHAR *user, const WCHAR *name) {
	WCHAR list[NEEDED_BYTES / sizeof(WCHAR)];
	DWORD size = sizeof list;
	if (RegGetValueW(services, user, L"DependOnService", RRF_RT_REG_MULTI_SZ, NULL, list, &size)) return FALSE;
	for (const WCHAR *one = list; *one; one += lstrlenW(one) + 1) {
		if (lstrcmpiW(one, name) == 0) return TRUE;
	}
	return FALSE;
}

static BOOL query(SC_HANDLE manager, dependent *d) {
	SC_HANDLE service = OpenServiceW(manager, d->name, SERVICE_QUERY_STATUS);
	BOOL ok = service && QueryServiceStatus(service, &d->status);
	if (service) CloseServiceHandle(service);
	return ok;
}

// collect appends the services of the wanted state that need one, each behind those that
// need it in turn.
static void collect(HKEY services, SC_HANDLE manager, const WCHAR *name, DWORD wanted, int depth, dependent ***end,
					dependent **all) {
	WCHAR user[NAME_UNITS];
	if (depth > DEPTH_MAX) return;
	for (DWORD i = 0, units = NAME_UNITS; RegEnumKeyExW(services, i, user, &units, NULL, NULL, NULL, NULL) == 0;
		 i++, units = NAME_UNITS) {
		dependent *d = *all;
		while (d && lstrcmpiW(d->name, user) != 0) d = d->next;
		if (d || !needs(services, user, name) || !(d = csi_alloc(sizeof *d))) continue;
		DWORD size = sizeof d->display;
		lstrcpyW(d->name, user);
		RegGetValueW(services, user, L"DisplayName", RRF_RT_REG_SZ, NULL, d->display, &size);
		DWORD state = query(manager, d) && d->status.dwCurrentState != SERVICE_STOPPED ? SERVICE_ACTIVE : SERVICE_INACTIVE;
		if (!(state & wanted)) {
			csi_free(d);
			continue;
		}
		collect(services, manager, user, wanted, depth + 1, end, all);
		**end = d;
		*end = &d->next;
	}
}

static dependent *dependents_of(const WCHAR *name, DWORD wanted) {
	dependent *all = NULL, **end = &all;
	HKEY services;
	if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, SERVICES_KEY, 0, KEY_READ, &services)) return NULL;
	SC_HANDLE manager = OpenSCManagerW(NULL, NULL, SC_MANAGER_CONNECT);
	if (manager) {
		collect(services, manager, name, wanted, 0, &end, &all);
		CloseServiceHandle(manager);
	}
	RegCloseKey(services);
	return all;
}

static WCHAR *put_back(BYTE **end, const WCHAR *text) {
	DWORD size = (DWORD)((lstrlenW(text) + 1) * sizeof *text);
	*end -= size;
	CopyMemory(*end, text, size);
	return (WCHAR *)*end;
}

// The entries begin at the start of the buffer, their texts fill it from the end.
BOOL WINAPI my_EnumDependentServicesW(SC_HANDLE service, DWORD state, LPENUM_SERVICE_STATUSW entries, DWORD size, LPDWORD needed,
									  LPDWORD count) {
	WCHAR name[NAME_UNITS];
	BYTE *end = (BYTE *)entries + size;
	DWORD total = 0;
	*count = *needed = 0;
	if (!name_of(service, name)) return finished(ERROR_INVALID_HANDLE);
	for (dependent *d = dependents_of(name, state), *next; d; d = next) {
		next = d->next;
		total += (DWORD)(sizeof *entries + (lstrlenW(d->name) + lstrlenW(d->display) + 2) * sizeof(WCHAR));
		if (total <= size) {
			ENUM_SERVICE_STATUSW *entry = &entries[(*count)++];
			entry->lpServiceName = put_back(&end, d->name);
			entry->lpDisplayName = put_back(&end, d->display);
			entry->ServiceStatus = d->status;
		}
		csi_free(d);
	}
	if (total <= size) return finished(ERROR_SUCCESS);
	*needed = total;
	return finished(ERROR_MORE_DATA);
}

BOOL WINAPI my_ControlService(SC_HANDLE service, DWORD control, LPSERVICE_STATUS status) {
	WCHAR name[NAME_UNITS];
	BOOL stops = control == SERVICE_CONTROL_STOP && name_of(service, name);
	dependent *first = stops ? dependents_of(name, SERVICE_ACTIVE) : NULL;
	if (!first) return ControlService(service, control, status);
	for (dependent *d = first, *next; d; d = next) {
		next = d->next;
		csi_free(d);
	}
	return finished(ERROR_DEPENDENT_SERVICES_RUNNING);
}
