// Stand-in for bcryptprimitives.dll in the Wine prefix. It gives Go programs the
// two things Wine 8 lacks:
//
//  - ProcessPrng, from which Go's runtime takes random numbers; forwarded to
//    SystemFunction036 (RtlGenRandom).
//  - An honest NtSetInformationFile. Wine 8 answers FileDispositionInformationEx
//    with "not implemented", where a Windows without it says "not supported";
//    only the second makes os.RemoveAll fall back to the older call.
//
// Go looks every procedure up through the GetProcAddress entry in its own import
// table and loads this library first of all, so replacing that one entry suffices.
#include <windows.h>
#include <winternl.h>

#define STATUS_NOT_IMPLEMENTED_ ((NTSTATUS)0xC0000002)
#define STATUS_NOT_SUPPORTED_ ((NTSTATUS)0xC00000BB)
#define FILE_DISPOSITION_INFORMATION_EX 64

BOOLEAN WINAPI SystemFunction036(PVOID buffer, ULONG length);

typedef NTSTATUS(WINAPI *set_information_fn)(HANDLE, PIO_STATUS_BLOCK, PVOID, ULONG, ULONG);
static set_information_fn real_set_information;

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length) {
	while (length > 0) {
		ULONG chunk = length > 0x10000000 ? 0x10000000 : (ULONG)length;
		if (!SystemFunction036(buffer, chunk)) return FALSE;
		buffer += chunk;
		length -= chunk;
	}
	return TRUE;
}

static NTSTATUS WINAPI set_information(HANDLE file, PIO_STATUS_BLOCK io, PVOID data, ULONG size, ULONG class) {
	NTSTATUS status = real_set_information(file, io, data, size, class);
	if (class == FILE_DISPOSITION_INFORMATION_EX && status == STATUS_NOT_IMPLEMENTED_) return STATUS_NOT_SUPPORTED_;
	return status;
}

static FARPROC WINAPI get_proc_address(HMODULE module, LPCSTR name) {
	FARPROC proc = GetProcAddress(module, name);
	if ((ULONG_PTR)name > 0xFFFF && lstrcmpA(name, "NtSetInformationFile") == 0) {
		real_set_information = (set_information_fn)proc;
		return (FARPROC)set_information;
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
		replace_import(original, (FARPROC)get_proc_address);
	}
	return TRUE;
}
