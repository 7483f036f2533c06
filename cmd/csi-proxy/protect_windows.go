package main

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// Nobody but SYSTEM and the Administrators group, with nothing inherited from
// above ("P"); the second form is passed on to what is made in a folder.
const (
	privateFile   = "D:P(A;;FA;;;SY)(A;;FA;;;BA)"
	privateFolder = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
)

// protectFile makes the file when it is missing, and takes it away from ordinary
// users. Source: SetNamedSecurityInfoW, PROTECTED_DACL_SECURITY_INFORMATION.
func protectFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), restrict(path, privateFile))
}

// protectFolder makes the folder when it is missing, and takes it away from
// ordinary users. A folder that was there keeps its own rights: others may use it.
func protectFolder(path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return restrict(path, privateFolder)
}

// restrict replaces the access list of a file or folder.
func restrict(path, sddl string) error {
	descriptor, err := windows.SecurityDescriptorFromString(sddl)
	if err != nil {
		return err
	}
	dacl, _, err := descriptor.DACL()
	if err != nil {
		return err
	}
	return windows.SetNamedSecurityInfo(path, windows.SE_FILE_OBJECT,
		windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, dacl, nil)
}
