package win32

import (
	"context"
	"unsafe"

	"golang.org/x/sys/windows"
)

// OpenAt implements API.
func (system) OpenAt(ctx context.Context, folder Handle, name string, open Open) (Handle, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	h, err := openAt(windows.Handle(folder), name, open)
	return Handle(h), err
}

func openAt(folder windows.Handle, name string, open Open) (windows.Handle, error) {
	const call = "NtCreateFile"
	if !isComponent(name) {
		return 0, &Error{Call: call, Object: name, Code: ErrInvalidName}
	}
	object, err := windows.NewNTUnicodeString(name)
	if err != nil {
		return 0, &Error{Call: call, Object: name, Code: ErrInvalidName}
	}
	attributes := windows.OBJECT_ATTRIBUTES{
		RootDirectory: folder, ObjectName: object, Attributes: windows.OBJ_CASE_INSENSITIVE,
	}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	disposition := uint32(windows.FILE_OPEN)
	options := uint32(windows.FILE_OPEN_REPARSE_POINT | windows.FILE_OPEN_FOR_BACKUP_INTENT | windows.FILE_SYNCHRONOUS_IO_NONALERT)
	if open.Create {
		disposition = windows.FILE_CREATE
		options |= windows.FILE_NON_DIRECTORY_FILE
	}
	if open.Directory {
		options = options&^windows.FILE_NON_DIRECTORY_FILE | windows.FILE_DIRECTORY_FILE
	}
	var h windows.Handle
	var status windows.IO_STATUS_BLOCK
	err = windows.NtCreateFile(&h, open.Access|windows.SYNCHRONIZE, &attributes, &status, nil,
		windows.FILE_ATTRIBUTE_NORMAL, open.Share, disposition, options, 0, 0)
	if err != nil {
		return 0, failure(call, name, err)
	}
	return h, nil
}

// CreateSymlink implements API. A link that could not be finished is removed again.
// The privilege that Windows demands is on, see System.
func (s system) CreateSymlink(ctx context.Context, folder Handle, name, target string, directory bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	buffer, err := EncodeSymlink(target)
	if err != nil {
		return &Error{Call: "FSCTL_SET_REPARSE_POINT", Object: name, Code: ErrInvalidParameter}
	}
	h, err := openAt(windows.Handle(folder), name, Open{
		Access: FileWriteAttr | AccessDelete, Share: ShareRead, Create: true, Directory: directory,
	})
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(h) }() // what was written is written
	if _, err := deviceIoControl(h, FsctlSetReparsePoint, buffer, nil); err != nil {
		_ = deleteByHandle(h) // an empty object is left at worst
		return failure("FSCTL_SET_REPARSE_POINT", name, err)
	}
	return nil
}

// Delete implements API.
func (system) Delete(ctx context.Context, h Handle) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return failure("SetFileInformationByHandle", "", deleteByHandle(windows.Handle(h)))
}

// deleteByHandle deletes with POSIX semantics: the name is gone at once. File
// systems and versions that do not know them get the older request. Source:
// FILE_DISPOSITION_INFO_EX.
func deleteByHandle(h windows.Handle) error {
	const dispositionDelete, posixSemantics, ignoreReadOnly = 0x1, 0x2, 0x10
	flags := uint32(dispositionDelete | posixSemantics | ignoreReadOnly)
	err := windows.SetFileInformationByHandle(h, windows.FileDispositionInfoEx, (*byte)(unsafe.Pointer(&flags)), 4)
	switch err {
	case windows.ERROR_INVALID_PARAMETER, windows.ERROR_NOT_SUPPORTED, windows.ERROR_INVALID_FUNCTION:
		remove := byte(1)
		return windows.SetFileInformationByHandle(h, windows.FileDispositionInfo, &remove, 1)
	}
	return err
}

// Info implements API.
func (system) Info(ctx context.Context, h Handle) (FileInfo, error) {
	const call = "GetFileInformationByHandleEx"
	if err := ctx.Err(); err != nil {
		return FileInfo{}, err
	}
	var tag struct{ Attributes, ReparseTag uint32 }
	err := windows.GetFileInformationByHandleEx(windows.Handle(h), windows.FileAttributeTagInfo,
		(*byte)(unsafe.Pointer(&tag)), uint32(unsafe.Sizeof(tag)))
	if err != nil {
		return FileInfo{}, failure(call, "", err)
	}
	info := FileInfo{Attributes: tag.Attributes}
	if tag.Attributes&AttrReparse != 0 {
		info.ReparseTag = tag.ReparseTag
	}
	return info, failure(call, "", identify(windows.Handle(h), &info))
}

// identify adds size and identity. File systems without 128-bit file ids (FAT)
// have the older ones. Source: FILE_ID_INFO, BY_HANDLE_FILE_INFORMATION.
func identify(h windows.Handle, info *FileInfo) error {
	var old windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &old); err != nil {
		return err
	}
	info.SizeBytes = int64(old.FileSizeHigh)<<32 | int64(old.FileSizeLow)
	var id struct {
		VolumeSerial uint64
		FileID       [16]byte
	}
	err := windows.GetFileInformationByHandleEx(h, windows.FileIdInfo, (*byte)(unsafe.Pointer(&id)), uint32(unsafe.Sizeof(id)))
	if err == nil {
		info.VolumeSerial, info.FileID = id.VolumeSerial, id.FileID
		return nil
	}
	info.VolumeSerial = uint64(old.VolumeSerialNumber)
	for i := range 4 {
		info.FileID[i] = byte(old.FileIndexLow >> (8 * i))
		info.FileID[4+i] = byte(old.FileIndexHigh >> (8 * i))
	}
	return nil
}

// ReadDir implements API. An empty root folder, which has no "." and ".." either,
// holds no such file as was asked for. Source: [MS-FSA] 2.1.5.6.3.
func (system) ReadDir(ctx context.Context, h Handle) ([]string, error) {
	const bufferBytes = 64 << 10
	words := make([]uint64, bufferBytes/8) // entries are aligned to 8 bytes
	buffer := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), bufferBytes)
	var names []string
	class := uint32(windows.FileFullDirectoryRestartInfo)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := windows.GetFileInformationByHandleEx(windows.Handle(h), class, &buffer[0], bufferBytes)
		switch {
		case err == windows.ERROR_NO_MORE_FILES, err == windows.ERROR_FILE_NOT_FOUND && class == windows.FileFullDirectoryRestartInfo:
			return names, nil
		case err != nil:
			return nil, failure("GetFileInformationByHandleEx", "", err)
		}
		names = append(names, decodeDirNames(buffer)...)
		class = windows.FileFullDirectoryInfo
	}
}
