package win32

import "golang.org/x/sys/windows"

// Privileges by their numbers. Source: wdm.h.
const (
	// backupPrivilege and restorePrivilege let what is opened for backup be read,
	// made and deleted whatever its own rights say: those of a pod's files may
	// leave out the account of the process. Source: FILE_FLAG_BACKUP_SEMANTICS,
	// FILE_OPEN_FOR_BACKUP_INTENT.
	backupPrivilege  = 17 // SE_BACKUP_PRIVILEGE
	restorePrivilege = 18 // SE_RESTORE_PRIVILEGE
	// symlinkPrivilege lets symbolic links be made. Source: FSCTL_SET_REPARSE_POINT.
	symlinkPrivilege = 35 // SE_CREATE_SYMBOLIC_LINK_PRIVILEGE
)

// enablePrivileges switches privileges of the process on. Those that the process
// lacks stay missing: the call that needs one fails then, with
// ERROR_PRIVILEGE_NOT_HELD or ERROR_ACCESS_DENIED, and tells best. Source:
// AdjustTokenPrivileges.
func enablePrivileges(numbers ...uint32) {
	var token windows.Token
	err := windows.OpenProcessToken(windows.CurrentProcess(), windows.TOKEN_ADJUST_PRIVILEGES|windows.TOKEN_QUERY, &token)
	if err != nil {
		return
	}
	for _, number := range numbers {
		privileges := windows.Tokenprivileges{PrivilegeCount: 1}
		privileges.Privileges[0] = windows.LUIDAndAttributes{
			Luid: windows.LUID{LowPart: number}, Attributes: windows.SE_PRIVILEGE_ENABLED,
		}
		_ = windows.AdjustTokenPrivileges(token, false, &privileges, 0, nil, nil)
	}
	_ = token.Close()
}
