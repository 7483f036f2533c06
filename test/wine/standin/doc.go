// Package standin is the stand-in link of the Wine lab: it lets programs under
// Wine ask one simulated node, which lives in a process outside Wine.
//
// Wine has no storage classes, no disk controls and no mount points worth the
// name. Small stand-ins written in C take those calls inside Wine (a WMI
// provider, a kernel driver, a library of Win32 calls) and pass them on over
// TCP on the loopback address. A [Server] answers them from a [Node]. A
// [Client] is the link from Go.
//
// A request is a frame of length, operation and body; an answer one of length,
// status and body. Numbers are little endian. Requests of one connection are
// answered in order, one at a time; parallel calls take parallel connections.
// Status is 0, an HRESULT for WMI operations, or a Windows error number for the
// others. What a body holds is written at each operation's constant.
package standin

// Op is the number of an operation.
type Op uint16

// The operations with their bodies: request -> answer. Texts and bytes are a
// 32-bit count and UTF-8 or raw bytes, lists a 32-bit count and their items.
const (
	// OpQuery: text namespace, text wql -> list of instance.
	OpQuery Op = 1
	// OpClass: text namespace, text class -> text class, list of method (text
	// name, u8 has in-parameters, list of typed name), list of typed name (text
	// name, u16 CIM type), the properties.
	OpClass Op = 2
	// OpExec: text namespace, text path, text method, list of (text name, value)
	// -> u8 has out-parameters, list of (text name, value) with ReturnValue.
	OpExec Op = 3
	// OpNamespace: text namespace -> nothing; the status tells.
	OpNamespace Op = 4

	// OpCreateFile: text path, u32 access, u32 share, u8 create, u8 directory -> u64 handle.
	OpCreateFile Op = 16
	// OpOpenAt: u64 folder, text name, u32 access, u32 share, u8 create, u8 directory -> u64 handle.
	OpOpenAt Op = 17
	// OpCloseHandle: u64.
	OpCloseHandle Op = 18
	// OpInfo: u64 -> u32 attributes, u32 reparse tag, u64 bytes, u64 volume serial, 16 bytes file id.
	OpInfo Op = 19
	// OpReadDir: u64 -> list of text.
	OpReadDir Op = 20
	// OpDelete: u64.
	OpDelete Op = 21
	// OpFinalPath: u64 -> text.
	OpFinalPath Op = 22
	// OpReadAt: u64, u64 offset, u32 count -> bytes.
	OpReadAt Op = 24
	// OpFlush: u64.
	OpFlush Op = 25
	// OpDeviceIoControl: u64, u32 code, bytes in, u32 capacity of out -> bytes
	// out, which also come with ERROR_MORE_DATA.
	OpDeviceIoControl Op = 26
	// OpFindVolumes: -> list of text.
	OpFindVolumes Op = 27
	// OpVolumePathNames: text volume -> list of text.
	OpVolumePathNames Op = 28
	// OpSetVolumeMountPoint: text path, text volume.
	OpSetVolumeMountPoint Op = 29
	// OpDeleteVolumeMountPoint: text path.
	OpDeleteVolumeMountPoint Op = 30
	// OpVolumeInformation: text root -> text file system, text label, u32 serial, u32 flags.
	OpVolumeInformation Op = 31
	// OpDiskFreeSpace: text path -> u64 total, u64 free.
	OpDiskFreeSpace Op = 32
	// OpFileAttributes: text path -> u32.
	OpFileAttributes Op = 33
	// OpCreateDirectory: text path.
	OpCreateDirectory Op = 34

	// OpDevices: u32 generation, u32 milliseconds to wait -> u32 generation, list
	// of text, the devices' names. It answers when the node's list is another
	// than that of the generation, or when the wait is over.
	OpDevices Op = 48
	// OpDevicesReady: u32 generation. The driver has all devices of that list.
	OpDevicesReady Op = 49

	// OpProgram: u64 program, 0 for a new one -> u64 program. The connection is
	// that program's: what it opens is closed when the program ends. It ends with
	// the connection that asked with 0, which is used for nothing else.
	OpProgram Op = 50

	// OpServiceStarted: text name.
	OpServiceStarted Op = 64
	// OpServiceStopped: text name.
	OpServiceStopped Op = 65

	// OpCreateDisk: u64 bytes, text backing path -> u64 id.
	OpCreateDisk Op = 80
	// OpAttachDisk: u64 id -> u32 disk number.
	OpAttachDisk Op = 81
	// OpDetachDisk: u64 id.
	OpDetachDisk Op = 82
	// OpPhysicalPath: u64 id -> text.
	OpPhysicalPath Op = 83
	// OpCloseDisk: u64 id; detaches when attached.
	OpCloseDisk Op = 84
	// OpOpenDisk: text backing path -> u64 id.
	OpOpenDisk Op = 85
)
