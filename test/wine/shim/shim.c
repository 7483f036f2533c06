// Stand-in for bcryptprimitives.dll in the Wine prefix. It gives Go programs
// what Wine 8 lacks:
//
//  - ProcessPrng, from which Go's runtime takes random numbers; forwarded to
//    SystemFunction036 (RtlGenRandom).
//  - An honest NtSetInformationFile. Wine 8 answers FileDispositionInformationEx
//    with "not implemented", where a Windows without it says "not supported";
//    only the second makes os.RemoveAll fall back to the older call.
//  - Services that need others (services.c).
//  - While the lab is active (see link.h), the calls about files, links, volumes and
//    mount points, answered by the simulated node. Only what a program opens
//    with a path that begins with \\?\, itself and without following a link, is the
//    node's: so csi-proxy works on the node, and Go's own library on Wine's files.
//
// Go looks every procedure up through the GetProcAddress entry in its own import
// table and loads this library first of all, so replacing that one entry suffices.
#include "shim.h"

#define STATUS_NOT_IMPLEMENTED_ ((NTSTATUS)0xC0000002)
#define STATUS_NOT_SUPPORTED_ ((NTSTATUS)0xC00000BB)
#define FILE_DISPOSITION_INFORMATION_EX 64

BOOLEAN WINAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length) {
	while (length > 0) {
		ULONG chunk = length > 0x10000000 ? 0x10000000 : (ULONG)length;
		if (!SystemFunction036(buffer, chunk)) return FALSE;
		buffer += chunk;
		length -= chunk;
	}
	return TRUE;
}

static NTSTATUS WINAPI my_NtSetInformationFile(HANDLE file, PIO_STATUS_BLOCK io, PVOID data, ULONG size, ULONG class) {
	NTSTATUS status = NtSetInformationFile(file, io, data, size, (FILE_INFORMATION_CLASS)class);
	if (class == FILE_DISPOSITION_INFORMATION_EX && status == STATUS_NOT_IMPLEMENTED_) return STATUS_NOT_SUPPORTED_;
	return status;
}

#define STANDS_IN(name) {#name, (FARPROC)(void *)my_##name}

static const struct {
	const char *name;
	FARPROC mine;
} replaced[] = {
	STANDS_IN(NtSetInformationFile),
	STANDS_IN(CreateFileW),
	STANDS_IN(CreateDirectoryW),
	STANDS_IN(NtCreateFile),
	STANDS_IN(CloseHandle),
	STANDS_IN(GetFileAttributesW),
	STANDS_IN(GetFileInformationByHandle),
	STANDS_IN(GetFileInformationByHandleEx),
	STANDS_IN(SetFileInformationByHandle),
	STANDS_IN(GetFinalPathNameByHandleW),
	STANDS_IN(ReadFile),
	STANDS_IN(FlushFileBuffers),
	STANDS_IN(DeviceIoControl),
	STANDS_IN(AdjustTokenPrivileges),
	STANDS_IN(FindFirstVolumeW),
	STANDS_IN(FindNextVolumeW),
	STANDS_IN(FindVolumeClose),
	STANDS_IN(GetVolumePathNamesForVolumeNameW),
	STANDS_IN(SetVolumeMountPointW),
	STANDS_IN(DeleteVolumeMountPointW),
	STANDS_IN(GetVolumeInformationW),
	STANDS_IN(GetDiskFreeSpaceExW),
	STANDS_IN(OpenServiceW),
	STANDS_IN(CloseServiceHandle),
	STANDS_IN(EnumDependentServicesW),
	STANDS_IN(ControlService),
};

static BOOL is_of_windows(HMODULE module) {
	return module == GetModuleHandleA("kernel32.dll") || module == GetModuleHandleA("ntdll.dll") ||
		   module == GetModuleHandleA("advapi32.dll");
}

// A procedure that Windows does not have, or a name that another library gives to
// something of its own, stays what it is.
static FARPROC WINAPI my_GetProcAddress(HMODULE module, LPCSTR name) {
	FARPROC proc = GetProcAddress(module, name);
	BOOL byName = (ULONG_PTR)name > 0xFFFF;
	if (!proc || !byName || !is_of_windows(module)) return proc;
	for (SIZE_T i = 0; i < ARRAYSIZE(replaced); i++) {
		if (lstrcmpA(name, replaced[i].name) == 0) return replaced[i].mine;
	}
	return proc;
}

// replace_import points every import of the running program that leads to `from` to `to`.
static void replace_import(FARPROC from, FARPROC to) {
	BYTE *base = (BYTE *)GetModuleHandleA(NULL);
	IMAGE_NT_HEADERS *headers = (IMAGE_NT_HEADERS *)(base + ((IMAGE_DOS_HEADER *)base)->e_lfanew);
	DWORD imports = headers->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT].VirtualAddress;
	if (imports == 0) return;
	for (IMAGE_IMPORT_DESCRIPTOR *d = (IMAGE_IMPORT_DESCRIPTOR *)(base + imports); d->FirstThunk; d++) {
		for (FARPROC *slot = (FARPROC *)(base + d->FirstThunk); *slot; slot++) {
			DWORD old;
			if (*slot != from || !VirtualProtect(slot, sizeof *slot, PAGE_READWRITE, &old)) continue;
			*slot = to;
			VirtualProtect(slot, sizeof *slot, old, &old);
		}
	}
}

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved) {
	(void)self, (void)reserved;
	if (reason == DLL_PROCESS_ATTACH) {
		FARPROC original = GetProcAddress(GetModuleHandleA("kernel32.dll"), "GetProcAddress");
		replace_import(original, (FARPROC)(void *)my_GetProcAddress);
	}
	return TRUE;
}
