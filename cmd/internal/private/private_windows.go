package private

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Nobody but SYSTEM (SY) and the Administrators group (BA), with nothing inherited
// from the folder above ("P"); the folder's entries are passed on to what is made
// in it ("OICI").
//
// Source: Security Descriptor Definition Language, ACE strings.
const (
	fileDescriptor   = "D:P(A;;FA;;;SY)(A;;FA;;;BA)"
	folderDescriptor = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
)

// accessChange are the rights that narrowing a file takes.
const accessChange = windows.READ_CONTROL | windows.WRITE_DAC | windows.WRITE_OWNER

// errLink is a file that is another file's name.
var errLink = errors.New("it is a link or has several names")

// openAppend makes the file with its rights, or narrows those of the one that it
// has opened: there is no moment in which others can open what is made here, and
// no second look at the path.
func openAppend(path string) (*os.File, error) {
	handle, err := open(path, windows.FILE_APPEND_DATA|windows.FILE_READ_ATTRIBUTES|accessChange, windows.OPEN_ALWAYS)
	if err != nil {
		return nil, err
	}
	err = errors.Join(refuseLink(handle), narrow(handle))
	if err != nil {
		return nil, &os.PathError{Op: "restrict", Path: path, Err: errors.Join(err, windows.CloseHandle(handle))}
	}
	return os.NewFile(uintptr(handle), path), nil
}

func truncate(path string) error {
	handle, err := open(path, windows.FILE_WRITE_DATA|windows.FILE_READ_ATTRIBUTES|windows.SYNCHRONIZE, windows.OPEN_EXISTING)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(handle), path)
	if err := refuseLink(handle); err != nil {
		return &os.PathError{Op: "truncate", Path: path, Err: errors.Join(err, file.Close())}
	}
	return errors.Join(file.Truncate(0), file.Close())
}

func restrict(path string) error {
	handle, err := open(path, windows.FILE_READ_ATTRIBUTES|accessChange, windows.OPEN_EXISTING)
	if err != nil {
		return err
	}
	if err := errors.Join(narrow(handle), windows.CloseHandle(handle)); err != nil {
		return &os.PathError{Op: "restrict", Path: path, Err: err}
	}
	return nil
}

func create(path string) (*os.File, error) {
	handle, err := open(path, windows.GENERIC_WRITE, windows.CREATE_NEW)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(handle), path), nil
}

func mkdir(path string) error {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return &os.PathError{Op: "mkdir", Path: path, Err: err}
	}
	attributes, err := securityAttributes(folderDescriptor)
	if err != nil {
		return err
	}
	if err := windows.CreateDirectory(name, attributes); err != nil {
		return &os.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return nil
}

// open opens the file itself, never what a link at its path leads to. Others may
// read it, and rename or delete it, meanwhile.
func open(path string, access, disposition uint32) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	attributes, err := securityAttributes(fileDescriptor)
	if err != nil {
		return 0, err
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	handle, err := windows.CreateFile(name, access, share, attributes, disposition,
		windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return handle, nil
}

// securityAttributes are those of what is made with a descriptor.
func securityAttributes(descriptor string) (*windows.SecurityAttributes, error) {
	parsed, err := windows.SecurityDescriptorFromString(descriptor)
	if err != nil {
		return nil, err
	}
	a := &windows.SecurityAttributes{SecurityDescriptor: parsed}
	a.Length = uint32(unsafe.Sizeof(*a))
	return a, nil
}

// refuseLink refuses an open file that is a link or has a second name, which may
// be one that somebody else relies on.
func refuseLink(handle windows.Handle) error {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(handle, &info); err != nil {
		return err
	}
	if info.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0 || info.NumberOfLinks > 1 {
		return errLink
	}
	return nil
}

// narrow takes an open file away from everybody but SYSTEM and Administrators. An
// owner can always give himself rights again, so a stranger does not stay it.
//
// Source: SetKernelObjectSecurity, PROTECTED_DACL_SECURITY_INFORMATION. It sets
// the rights of the handle's object as they are; SetSecurityInfo, which would add
// what is inherited, changes nothing under Wine.
func narrow(handle windows.Handle) error {
	wanted, err := windows.SecurityDescriptorFromString(fileDescriptor)
	if err != nil {
		return err
	}
	const access = windows.DACL_SECURITY_INFORMATION | windows.PROTECTED_DACL_SECURITY_INFORMATION
	if err := windows.SetKernelObjectSecurity(handle, access, wanted); err != nil {
		return err
	}
	present, err := windows.GetSecurityInfo(handle, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return err
	}
	owner, _, err := present.Owner()
	if err != nil || isTrusted(owner) {
		return err
	}
	return disown(handle)
}

// isTrusted reports whether an owner is SYSTEM, Administrators or this process.
func isTrusted(owner *windows.SID) bool {
	if owner.IsWellKnown(windows.WinLocalSystemSid) || owner.IsWellKnown(windows.WinBuiltinAdministratorsSid) {
		return true
	}
	self, err := windows.GetCurrentProcessToken().GetTokenUser()
	return err == nil && owner.Equals(self.User.Sid)
}

// disown makes the Administrators group the owner of an open file.
func disown(handle windows.Handle) error {
	wanted, err := windows.SecurityDescriptorFromString("O:BA")
	if err != nil {
		return err
	}
	return windows.SetKernelObjectSecurity(handle, windows.OWNER_SECURITY_INFORMATION, wanted)
}
