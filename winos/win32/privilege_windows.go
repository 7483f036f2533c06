package win32

import "golang.org/x/sys/windows"

// createSymbolicLink is SeCreateSymbolicLinkPrivilege. Local system has it switched
// on, administrators have it switched off. Source: SE_CREATE_SYMBOLIC_LINK_PRIVILEGE,
// wdm.h.
const createSymbolicLink = 35

// enablePrivilege switches a privilege of the process on, if the process has it. Whether
// that was so is told best by the call that needs it, which fails with
// ERROR_PRIVILEGE_NOT_HELD. Source: AdjustTokenPrivileges.
func enablePrivilege(number uint32) {
	var token windows.Token
	err := windows.OpenProcessToken(windows.CurrentProcess(), windows.TOKEN_ADJUST_PRIVILEGES|windows.TOKEN_QUERY, &token)
	if err != nil {
		return
	}
	privileges := windows.Tokenprivileges{PrivilegeCount: 1}
	privileges.Privileges[0] = windows.LUIDAndAttributes{
		Luid: windows.LUID{LowPart: number}, Attributes: windows.SE_PRIVILEGE_ENABLED,
	}
	_ = windows.AdjustTokenPrivileges(token, false, &privileges, 0, nil, nil)
	_ = token.Close()
}
