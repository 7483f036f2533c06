package sim

import (
	"context"
	"time"

	"github.com/csi-windows/csi-windows/winos/cim"
)

// Controller changes and watches a node from outside its operating system. A
// *Node is one; package control has another for a node in another process.
type Controller interface {
	DiskController
	NetworkController
	FaultController
	FileController
	SystemController
}

// DiskController is the hand that plugs disks.
type DiskController interface {
	// AttachDisk plugs a disk in and returns its number, the lowest free one.
	AttachDisk(ctx context.Context, spec DiskSpec) (uint32, error)
	// DetachDisk pulls a disk without asking the operating system: what was not
	// flushed is lost.
	DetachDisk(ctx context.Context, number uint32) error
	// GrowDisk makes the disk's medium larger. The operating system sees it after
	// a rescan or a refresh.
	GrowDisk(ctx context.Context, number uint32, sizeBytes int64) error
	// CorruptDisk overwrites bytes of the medium behind the operating system's back.
	CorruptDisk(ctx context.Context, number uint32, offsetBytes int64, data []byte) error
	// Disks returns every attached disk, in the order of their numbers.
	Disks(ctx context.Context) ([]DiskStatus, error)
}

// NetworkController sets up the servers the node can reach.
type NetworkController interface {
	// SetSMBServer adds a file server, or replaces the one of that name.
	SetSMBServer(ctx context.Context, server SMBServer) error
	// RemoveSMBServer removes a file server; its name is no longer found.
	RemoveSMBServer(ctx context.Context, name string) error
	// SetISCSITarget adds an iSCSI target, or replaces the one of that IQN.
	SetISCSITarget(ctx context.Context, target ISCSITarget) error
	// RemoveISCSITarget removes a target and breaks its sessions.
	RemoveISCSITarget(ctx context.Context, iqn string) error
}

// FaultController makes calls fail and tells which were made.
type FaultController interface {
	// AddFault arms a fault.
	AddFault(ctx context.Context, fault Fault) error
	// ClearFaults disarms every fault and releases the calls that hang in one.
	ClearFaults(ctx context.Context) error
	// RecordCalls switches the call log on (and empties it) or off.
	RecordCalls(ctx context.Context, on bool) error
	// CallLog returns the recorded calls, oldest first.
	CallLog(ctx context.Context) ([]Call, error)
	// HandleCount returns how many handles are open.
	HandleCount(ctx context.Context) (int, error)
}

// FileController reads and writes files by node path, e.g. `C:\var\lib\x`,
// following links and mount points as a program on the node does.
type FileController interface {
	// WriteFile writes a file and makes the folders above it.
	WriteFile(ctx context.Context, path string, data []byte) error
	// ReadFile reads a whole file.
	ReadFile(ctx context.Context, path string) ([]byte, error)
	// ListDir returns the names in a folder.
	ListDir(ctx context.Context, path string) ([]string, error)
	// MakeDir makes a folder and the folders above it.
	MakeDir(ctx context.Context, path string) error
	// MakeLink makes a directory symbolic link at path that leads to target.
	MakeLink(ctx context.Context, path, target string) error
	// RemoveFile removes a file, a link or an empty folder.
	RemoveFile(ctx context.Context, path string) error
	// SwapForLink replaces an object by a directory symbolic link to target, as
	// an attacker who wins a race does: open handles do not stop it. It returns
	// the name under which the object goes on in its folder.
	SwapForLink(ctx context.Context, path, target string) (movedTo string, err error)
}

// SystemController is power and services.
type SystemController interface {
	// SetService adds a service or replaces the one of that name.
	SetService(ctx context.Context, service Service) error
	// Services returns every service.
	Services(ctx context.Context) ([]Service, error)
	// PowerCut switches the node off at once: unflushed writes are lost. Calls
	// fail until Boot.
	PowerCut(ctx context.Context) error
	// Boot switches the node on after a PowerCut.
	Boot(ctx context.Context) error
	// Reboot shuts the node down in order and boots it again.
	Reboot(ctx context.Context) error
}

// DiskSpec describes a disk to attach.
type DiskSpec struct {
	// Image is the file that is the medium; any raw image is accepted. It is
	// created with SizeBytes when missing and SizeBytes is not 0.
	Image     string `json:"image"`
	SizeBytes int64  `json:"sizeBytes,omitempty"`
	// Bus is the bus type by its Windows name: NVMe, SCSI, SAS, iSCSI, SATA,
	// USB, Virtual … Empty means SCSI.
	Bus string `json:"bus,omitempty"`
	// Serial is the serial number as the device reports it, blanks included.
	Serial string `json:"serial,omitempty"`
	// Page83 is the raw STORAGE_DEVICE_ID_DESCRIPTOR. When nil it is built from
	// IDs; when both are empty the device has none.
	Page83 []byte     `json:"page83,omitempty"`
	IDs    []DeviceID `json:"ids,omitempty"`
	// Location is the text of MSFT_Disk.Location; a pointer to "" gives none,
	// nil the usual form for the disk's place.
	Location     *string `json:"location,omitempty"`
	FriendlyName string  `json:"friendlyName,omitempty"`
	Manufacturer string  `json:"manufacturer,omitempty"`
	Model        string  `json:"model,omitempty"`
	// WriteProtected is a medium that refuses writes.
	WriteProtected bool `json:"writeProtected,omitempty"`
}

// DeviceID is one identifier of a page 0x83 descriptor. Numbers as in
// STORAGE_IDENTIFIER: CodeSet 1 binary, 2 ASCII, 3 UTF-8; Type 0 vendor, 1 T10,
// 2 EUI-64, 3 NAA, 8 SCSI name; Association 0 device, 1 port, 2 target.
type DeviceID struct {
	CodeSet     uint32 `json:"codeSet"`
	Type        uint32 `json:"type"`
	Association uint32 `json:"association"`
	ID          []byte `json:"id"`
}

// DiskStatus is an attached disk as the operating system sees it now.
type DiskStatus struct {
	Number        uint32   `json:"number"`
	Spec          DiskSpec `json:"spec"`
	SizeBytes     int64    `json:"sizeBytes"`
	Offline       bool     `json:"offline"`
	ReadOnly      bool     `json:"readOnly"`
	OfflineReason uint16   `json:"offlineReason,omitempty"`
	Style         string   `json:"style"` // RAW, MBR or GPT
	Partitions    int      `json:"partitions"`
	// Volumes are the paths of its volumes, `\\?\Volume{guid}\`.
	Volumes []string `json:"volumes,omitempty"`
	System  bool     `json:"system,omitempty"`
}

// SMBServer is a file server on the node's network.
type SMBServer struct {
	Name string `json:"name"`
	// Users maps user names (`user` or `DOMAIN\user`, compared without case) to passwords.
	Users  map[string]string `json:"users,omitempty"`
	Shares []SMBShare        `json:"shares,omitempty"`
	// NoEncryption is a server that cannot encrypt, as older NAS boxes.
	NoEncryption bool `json:"noEncryption,omitempty"`
	// Failure is the Windows error of every attempt to reach the server (53, 121,
	// 1232 …); 0 means that it can be reached.
	Failure uint32 `json:"failure,omitempty"`
	// WrongPasswordError is what the server says to a wrong password; 0 means 1326.
	WrongPasswordError uint32 `json:"wrongPasswordError,omitempty"`
	// MaxConnections limits mappings to this server (71 beyond); 0 means no limit.
	MaxConnections int `json:"maxConnections,omitempty"`
}

// SMBShare is one share of a server.
type SMBShare struct {
	Name string `json:"name"`
	// Folder is the real folder with the share's content.
	Folder string `json:"folder"`
	// Users may use the share; empty means every user of the server.
	Users []string `json:"users,omitempty"`
	// SizeBytes is the capacity the share reports; 0 means 1 TiB.
	SizeBytes int64 `json:"sizeBytes,omitempty"`
}

// ISCSITarget is an iSCSI target on the node's network.
type ISCSITarget struct {
	IQN string `json:"iqn"`
	// Portals are "address:port".
	Portals []string `json:"portals"`
	// LUNs are the disks, by logical unit number from 0.
	LUNs []DiskSpec `json:"luns"`
	// ChapUser and ChapSecret are asked of the initiator; empty means no CHAP.
	ChapUser   string `json:"chapUser,omitempty"`
	ChapSecret string `json:"chapSecret,omitempty"`
	// MutualSecret is what the target answers with in mutual CHAP; the
	// initiator's own secret must equal it.
	MutualSecret string `json:"mutualSecret,omitempty"`
	// Denied refuses the initiator (authorisation failure).
	Denied bool `json:"denied,omitempty"`
	// Unreachable makes every connection to the portals fail.
	Unreachable bool `json:"unreachable,omitempty"`
	// Redirect is the "address:port" a login is sent on to, as arrays with one
	// address for several controllers do; empty means none. The connection then
	// shows that address. Source: RFC 7143, login response, target moved temporarily.
	Redirect string `json:"redirect,omitempty"`
}

// Service is a Windows service. Numbers as in winsvc.h: StartType 0 boot, 1
// system, 2 automatic, 3 manual, 4 disabled; State 1 stopped, 4 running and the
// pending states between.
type Service struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	StartType   uint32   `json:"startType"`
	State       uint32   `json:"state"`
	DependsOn   []string `json:"dependsOn,omitempty"`
	// Polls is how many status queries a start or stop takes; 0 means the
	// node's default.
	Polls int `json:"polls,omitempty"`
	// FailStart is the Windows error of every start, e.g. 1053; 0 means it starts.
	FailStart uint32 `json:"failStart,omitempty"`
	// ExitCode is what a stopped service reports.
	ExitCode uint32 `json:"exitCode,omitempty"`
}

// Fault makes calls fail, wait or run a hook. Call names are those of the log:
// `cim.Query MSFT_Disk`, `cim.Exec MSFT_Disk.Initialize`,
// `win32.DeviceIoControl 0x2D1400`, `win32.OpenAt`.
type Fault struct {
	// Call and Object select calls, with * and ? as wildcards and without regard
	// to case. An empty Object selects any.
	Call   string `json:"call"`
	Object string `json:"object,omitempty"`
	// Nth is the first selected call it applies to, from 1; 0 means 1.
	Nth int `json:"nth,omitempty"`
	// Count is how many calls it applies to from there; 0 means 1, negative all.
	Count int `json:"count,omitempty"`
	// After lets the call take effect first and then fail.
	After bool `json:"after,omitempty"`

	// CIM, ReturnValue or Win32 is the failure; the first that is set. A CIM call
	// with Win32 alone fails with WBEM_E_FAILED and that system error.
	CIM         *cim.Error `json:"cim,omitempty"`
	ReturnValue uint32     `json:"returnValue,omitempty"`
	Win32       uint32     `json:"win32,omitempty"`

	// Latency delays the call; the end of its context ends the wait.
	Latency time.Duration `json:"latency,omitempty"`
	// Hang holds the call, deaf to its context, until ClearFaults or Close.
	Hang bool `json:"hang,omitempty"`
	// Hook runs in the calling goroutine; it may use the node.
	Hook func() `json:"-"`
}

// Call is one line of the call log.
type Call struct {
	Sequence int    `json:"sequence"`
	Name     string `json:"name"`
	Object   string `json:"object,omitempty"`
	// Params are a CIM method's in-parameters, secrets replaced.
	Params   map[string]any `json:"params,omitempty"`
	Error    string         `json:"error,omitempty"`
	Duration time.Duration  `json:"duration"`
}
