// Package win32 is the part of the Windows API that storage needs, as an
// interface: the real calls and the simulated node stand under the same logic.
// It has no rules. Buffers are the raw bytes Windows would exchange; winos
// lays them out and reads them.
package win32

import (
	"context"
	"fmt"
)

// Handle is an open file, folder, link, disk or volume. 0 is never valid.
type Handle uintptr

// Access rights and open options. Source: winnt.h, fileapi.h, winternl.h.
const (
	AccessNone      = 0          // enough for query IOCTLs
	FileListDir     = 0x00000001 // = FILE_READ_DATA
	FileAddFile     = 0x00000002
	FileAddSubdir   = 0x00000004
	FileReadAttr    = 0x00000080
	FileWriteAttr   = 0x00000100
	AccessDelete    = 0x00010000
	Synchronize     = 0x00100000
	GenericRead     = 0x80000000
	GenericWrite    = 0x40000000
	ShareRead       = 0x1
	ShareWrite      = 0x2
	ShareDelete     = 0x4
	AttrReadOnly    = 0x1
	AttrDirectory   = 0x10
	AttrReparse     = 0x400
	TagMountPoint   = 0xA0000003
	TagSymlink      = 0xA000000C
	SymlinkRelative = 0x1 // flag in the symbolic link reparse buffer
)

// Open describes how CreateFile and OpenAt open an object. Links are never
// followed on the last component: both open the object itself.
type Open struct {
	Access uint32
	Share  uint32
	// Create makes the object when it is missing and fails with
	// ERROR_ALREADY_EXISTS / ERROR_FILE_EXISTS when it is there.
	Create bool
	// Directory makes Create make a folder, and otherwise demands one.
	Directory bool
}

// FileInfo is what a handle says of its object.
type FileInfo struct {
	Attributes   uint32
	ReparseTag   uint32 // 0 when it is no reparse point
	SizeBytes    int64
	VolumeSerial uint64
	FileID       [16]byte
}

// VolumeInfo is what GetVolumeInformation says.
type VolumeInfo struct {
	FileSystem string
	Label      string
	Serial     uint32
	Flags      uint32 // FILE_READ_ONLY_VOLUME 0x80000
}

// ServiceStatus and start types with Win32's numbers. Source: winsvc.h.
type ServiceStatus struct {
	State         uint32 // 1 stopped, 2 start pending, 3 stop pending, 4 running, 5 continue pending, 6 pause pending, 7 paused
	Win32ExitCode uint32
}

// ServiceConfig is what the service manager stores of a service.
type ServiceConfig struct {
	DisplayName string
	StartType   uint32 // 0 boot, 1 system, 2 automatic, 3 manual, 4 disabled
}

// API is Windows. It is safe for concurrent use. Every failure is an *Error.
//
// Path forms of CreateFile: `\\.\PhysicalDriveN` and `\\?\Volume{guid}`
// (devices), `\\?\Volume{guid}\` and `\\?\C:\` (root folders), and full paths
// below those. Intermediate links in a path are followed as Windows does, so
// code that must not follow them opens the root and walks with OpenAt.
type API interface {
	// CreateFile opens by path. Source: CreateFileW with FILE_FLAG_BACKUP_SEMANTICS
	// and FILE_FLAG_OPEN_REPARSE_POINT.
	CreateFile(ctx context.Context, path string, open Open) (Handle, error)
	// OpenAt opens a single name inside an open folder. Source: NtCreateFile with
	// RootDirectory, FILE_OPEN_REPARSE_POINT, FILE_OPEN_FOR_BACKUP_INTENT.
	OpenAt(ctx context.Context, folder Handle, name string, open Open) (Handle, error)
	// CloseHandle closes a handle.
	CloseHandle(h Handle) error
	// Info reads FILE_BASIC, ATTRIBUTE_TAG, STANDARD and FILE_ID information.
	Info(ctx context.Context, h Handle) (FileInfo, error)
	// ReadDir returns the long names in an open folder, without "." and "..".
	ReadDir(ctx context.Context, h Handle) ([]string, error)
	// Delete marks the object for deletion and deletes it now if it can
	// (FileDispositionInfoEx with POSIX semantics, read-only files included).
	// Reparse points are deleted, not followed.
	Delete(ctx context.Context, h Handle) error
	// FinalPath is GetFinalPathNameByHandleW, DOS form (`\\?\C:\x`) or, for a
	// volume without letter or mounted folder, GUID form.
	FinalPath(ctx context.Context, h Handle) (string, error)
	// CreateSymlink is a new object with a symbolic-link reparse buffer, made
	// relative to an open folder.
	CreateSymlink(ctx context.Context, folder Handle, name, target string, directory bool) error
	// ReadAt reads raw bytes of a file, disk or volume handle.
	ReadAt(ctx context.Context, h Handle, buffer []byte, offsetBytes int64) (int, error)
	// DeviceIoControl sends an IOCTL or FSCTL and returns the bytes written to out.
	// ERROR_MORE_DATA and ERROR_INSUFFICIENT_BUFFER come with the count.
	DeviceIoControl(ctx context.Context, h Handle, code uint32, in, out []byte) (int, error)
	// FlushFileBuffers flushes a file, or a whole volume.
	FlushFileBuffers(ctx context.Context, h Handle) error

	// FindVolumes returns every volume name, `\\?\Volume{guid}\`.
	FindVolumes(ctx context.Context) ([]string, error)
	// VolumePathNames is GetVolumePathNamesForVolumeNameW.
	VolumePathNames(ctx context.Context, volume string) ([]string, error)
	// SetVolumeMountPoint and DeleteVolumeMountPoint take paths with a final backslash.
	SetVolumeMountPoint(ctx context.Context, path, volume string) error
	DeleteVolumeMountPoint(ctx context.Context, path string) error
	// VolumeInformation is GetVolumeInformationW on a root with a final backslash.
	VolumeInformation(ctx context.Context, root string) (VolumeInfo, error)
	// DiskFreeSpace is GetDiskFreeSpaceExW: total and free bytes. Under a quota both
	// are what it gives the caller.
	DiskFreeSpace(ctx context.Context, path string) (totalBytes, freeBytes uint64, err error)
	// FileAttributes is GetFileAttributesW on a path, links followed on the way;
	// used to probe remote paths.
	FileAttributes(ctx context.Context, path string) (uint32, error)
	// SystemDirectory is GetSystemDirectoryW, e.g. `C:\Windows\system32`.
	SystemDirectory() string

	// Service control. Names compare without case.
	QueryService(ctx context.Context, name string) (ServiceConfig, ServiceStatus, error)
	StartService(ctx context.Context, name string) error
	// StopService sends SERVICE_CONTROL_STOP.
	StopService(ctx context.Context, name string) error
	// RunningDependents is EnumDependentServicesW with SERVICE_ACTIVE.
	RunningDependents(ctx context.Context, name string) ([]string, error)
}

// Error is a failed call with its system error number.
type Error struct {
	Call   string // e.g. "DeviceIoControl 0x2D1400"
	Object string // path or handle's path, when known
	Code   uint32 // Win32 error number
}

// Error gives the number, never a localised text.
func (e *Error) Error() string {
	s := e.Call
	if e.Object != "" {
		s += " " + e.Object
	}
	return fmt.Sprintf("%s: Windows error %d", s, e.Code)
}

// Win32 error numbers the logic distinguishes. Source: winerror.h.
const (
	ErrInvalidFunction     = 1
	ErrFileNotFound        = 2
	ErrPathNotFound        = 3
	ErrAccessDenied        = 5
	ErrInvalidHandle       = 6
	ErrNotEnoughMemory     = 8
	ErrInvalidDrive        = 15
	ErrNoMoreFiles         = 18
	ErrWriteProtect        = 19
	ErrNotReady            = 21
	ErrSharingViolation    = 32
	ErrHandleEOF           = 38
	ErrNotSupported        = 50
	ErrBadNetPath          = 53
	ErrUnexpNetErr         = 59
	ErrNetnameDeleted      = 64
	ErrNetworkAccessDenied = 65
	ErrBadNetName          = 67
	ErrFileExists          = 80
	ErrInvalidParameter    = 87
	ErrSemTimeout          = 121
	ErrInsufficientBuffer  = 122
	ErrInvalidName         = 123
	ErrDirNotEmpty         = 145
	ErrAlreadyExists       = 183
	ErrMoreData            = 234
	ErrDirectory           = 267
	ErrUnrecognizedVolume  = 1005
	ErrDependentsRunning   = 1051
	ErrServiceTimeout      = 1053
	ErrAlreadyRunning      = 1056
	ErrServiceDisabled     = 1058
	ErrServiceNotExist     = 1060
	ErrCannotAcceptCtrl    = 1061
	ErrServiceNotActive    = 1062
	ErrIODevice            = 1117
	ErrDevNotConnected     = 1167
	ErrNotFound            = 1168
	ErrNoNetOrBadPath      = 1203
	ErrCredentialConflict  = 1219
	ErrHostUnreachable     = 1232
	ErrLogonFailure        = 1326
	ErrNotConnected        = 2250
	ErrOpenFiles           = 2401
	ErrDeviceInUse         = 2404
	ErrReparseTagInvalid   = 4393
	ErrNotAReparsePoint    = 4390
)

// Control codes. Source: winioctl.h; the disk attribute codes ntdddisk.h of the SDK.
const (
	IoctlStorageGetDeviceNumber        = 0x2D1080
	IoctlStorageQueryProperty          = 0x2D1400
	IoctlScsiGetAddress                = 0x41018
	IoctlDiskGetLengthInfo             = 0x7405C
	IoctlDiskGetDriveLayoutEx          = 0x70050
	IoctlDiskGetDiskAttributes         = 0x700F0
	IoctlDiskSetDiskAttributes         = 0x7C0F4
	IoctlDiskUpdateProperties          = 0x70140
	IoctlDiskIsWritable                = 0x70024
	IoctlVolumeGetDiskExtents          = 0x560000
	FsctlGetNtfsVolumeData             = 0x90064
	FsctlGetReparsePoint               = 0x900A8
	FsctlSetReparsePoint               = 0x900A4
	FsctlDeleteReparsePoint            = 0x900AC
	FsctlIsVolumeMounted               = 0x90028
	StorageDeviceProperty              = 0
	StorageAdapterProperty             = 1
	StorageDeviceIDProperty            = 2
	ReadOnlyVolumeFlag                 = 0x80000
	DiskAttributeOffline               = 1
	DiskAttributeReadOnly              = 2
	ReparseBufferMaxBytes              = 16384
	VolumeNameBytes                    = 50 * 2
	MaxComponentUTF16                  = 255
	MaxPathUTF16                       = 32767
	DeviceTypeDisk              uint32 = 7
)
