// The privilege to make symbolic links. Wine's token lacks it; on Windows administrators
// have it, switched off, and FSCTL_SET_REPARSE_POINT refuses symbolic links until
// the process has switched it on.
#include "shim.h"

#define CREATE_SYMBOLIC_LINK 35 // SE_CREATE_SYMBOLIC_LINK_PRIVILEGE, wdm.h

static volatile LONG switchedOn;

BOOL may_make_symlink(void) { return switchedOn != 0; }

BOOL WINAPI my_AdjustTokenPrivileges(HANDLE token, BOOL disableAll, PTOKEN_PRIVILEGES wanted, DWORD size,
									 PTOKEN_PRIVILEGES before, PDWORD needed) {
	for (DWORD i = 0; !disableAll && wanted && i < wanted->PrivilegeCount; i++) {
		const LUID_AND_ATTRIBUTES *p = &wanted->Privileges[i];
		if (p->Luid.LowPart != CREATE_SYMBOLIC_LINK || p->Luid.HighPart != 0) continue;
		InterlockedExchange(&switchedOn, (p->Attributes & SE_PRIVILEGE_ENABLED) != 0);
	}
	if (disableAll) InterlockedExchange(&switchedOn, FALSE);
	return AdjustTokenPrivileges(token, disableAll, wanted, size, before, needed);
}
