package winos

import "github.com/csi-windows/csi-windows/host"

// meaning is what a code of the operating system says: its documented name, and
// the kind of failure that a caller can act on.
type meaning struct {
	name string
	kind host.Kind
}

// Return values that the logic distinguishes.
const (
	codeFailed           = 4
	codeInUse            = 6
	codeDeviceBusy       = 4099
	codeCacheOutOfDate   = 40003
	codeNotInCache       = 40006
	codeNotInitialized   = 41000
	codeAccessPathIsUsed = 42002
)

// storageCodes are the return values of the storage management classes.
// Source: "Storage Management API Common Return Codes", and the method pages.
var storageCodes = map[uint32]meaning{
	1:     {"not supported", host.KindUnsupported},
	2:     {"unspecified error", host.KindInternal},
	3:     {"timeout", host.KindTimeout},
	4:     {"failed", host.KindInternal},
	5:     {"invalid parameter", host.KindInvalid},
	6:     {"in use", host.KindBusy},
	7:     {"32-bit caller", host.KindUnsupported},
	8:     {"object not found", host.KindNotFound},
	4096:  {"job started", host.KindBusy},
	4097:  {"size not supported", host.KindInvalid},
	4098:  {"timeout not supported", host.KindUnsupported},
	4099:  {"device busy", host.KindBusy},
	40000: {"not enough free space", host.KindExhausted},
	40001: {"access denied", host.KindDenied},
	40002: {"out of resources", host.KindExhausted},
	40003: {"cache out of date", host.KindUnavailable},
	40004: {"I/O error", host.KindInternal},
	40005: {"give either a size or the maximum", host.KindInvalid},
	40006: {"object not in the cache", host.KindNotFound},
	40007: {"hardware error", host.KindInternal},
	40018: {"object belongs to a cluster", host.KindPrecondition},
	41000: {"disk not initialized", host.KindPrecondition},
	41001: {"disk already initialized", host.KindExists},
	41002: {"disk is read-only", host.KindPrecondition},
	41003: {"disk is offline", host.KindPrecondition},
	41004: {"no more partitions possible", host.KindExhausted},
	41005: {"bad alignment", host.KindInvalid},
	41006: {"parameter does not fit the partition type", host.KindInvalid},
	41007: {"disk has OEM partitions", host.KindPrecondition},
	41008: {"disk has data partitions", host.KindPrecondition},
	41009: {"disk is critical to the system", host.KindPrecondition},
	41010: {"bad partition type", host.KindInvalid},
	41011: {"beyond 2 TB on an MBR disk", host.KindInvalid},
	41012: {"bad offset", host.KindInvalid},
	41013: {"cannot convert a disk with partitions", host.KindPrecondition},
	41014: {"disk too small for GPT", host.KindPrecondition},
	41015: {"no media", host.KindPrecondition},
	41016: {"bad or unaligned offset", host.KindInvalid},
	41017: {"invalid partition layout", host.KindInvalid},
	41018: {"disk belongs to a cluster", host.KindPrecondition},
	41019: {"cluster or pool membership", host.KindPrecondition},
	42000: {"partition deleted, access paths left", host.KindInternal},
	42001: {"extended partition is not empty", host.KindPrecondition},
	42002: {"access path in use", host.KindExists},
	42004: {"hidden partition cannot have access paths", host.KindPrecondition},
	42005: {"the volume path cannot be removed", host.KindPrecondition},
	42006: {"letter of a boot or paging partition", host.KindPrecondition},
	42007: {"invalid access path", host.KindInvalid},
	42008: {"volume has errors and cannot shrink", host.KindPrecondition},
	42009: {"unknown file system cannot be resized", host.KindPrecondition},
	42010: {"system or critical partition", host.KindPrecondition},
	42011: {"only for data partitions", host.KindPrecondition},
	42012: {"several drive letters", host.KindInvalid},
	42013: {"partition type cannot have a drive letter", host.KindInvalid},
	43000: {"bad cluster size", host.KindInvalid},
	43001: {"file system not supported", host.KindUnsupported},
	43002: {"cannot quick format", host.KindPrecondition},
	43003: {"too many clusters", host.KindInvalid},
	43004: {"bad UDF version", host.KindInvalid},
	43005: {"cluster is no multiple of the sector", host.KindInvalid},
	43006: {"drive is read-only", host.KindPrecondition},
}
