package winos

import "github.com/csi-windows/csi-windows/host"

// ISDSC codes are HRESULT-like: the high half is 0xEFFF, or 0xAFFF for a warning
// (the operation took effect). Source: iscsierr.h.
const (
	isdscFailureHalf       = 0xEFFF
	isdscWarningHalf       = 0xAFFF
	isdscServiceNotRunning = 0x3E
)

// isISDSC reports whether a code is one of the iSCSI discovery library.
func isISDSC(code uint32) bool {
	return code>>16 == isdscFailureHalf || code>>16 == isdscWarningHalf
}

// iscsiCodes are the ISDSC codes by their low half. Source: iscsierr.h and
// "iSCSI Status Qualifiers".
var iscsiCodes = map[uint32]meaning{
	0x01: {"NON_SPECIFIC_ERROR", host.KindInternal},
	0x02: {"LOGIN_FAILED", host.KindUnavailable},
	0x03: {"CONNECTION_FAILED", host.KindUnavailable},
	0x04: {"INITIATOR_NODE_ALREADY_EXISTS", host.KindExists},
	0x05: {"INITIATOR_NODE_NOT_FOUND", host.KindNotFound},
	0x06: {"TARGET_MOVED_TEMPORARILY", host.KindUnavailable},
	0x07: {"TARGET_MOVED_PERMANENTLY", host.KindUnavailable},
	0x08: {"INITIATOR_ERROR", host.KindInternal},
	0x09: {"AUTHENTICATION_FAILURE", host.KindUnauthenticated},
	0x0A: {"AUTHORIZATION_FAILURE", host.KindDenied},
	0x0B: {"NOT_FOUND", host.KindNotFound},
	0x0C: {"TARGET_REMOVED", host.KindNotFound},
	0x0D: {"UNSUPPORTED_VERSION", host.KindUnsupported},
	0x0E: {"TOO_MANY_CONNECTIONS", host.KindExhausted},
	0x0F: {"MISSING_PARAMETER", host.KindInvalid},
	0x10: {"CANT_INCLUDE_IN_SESSION", host.KindPrecondition},
	0x11: {"SESSION_TYPE_NOT_SUPPORTED", host.KindUnsupported},
	0x12: {"TARGET_ERROR", host.KindUnavailable},
	0x13: {"SERVICE_UNAVAILABLE", host.KindUnavailable},
	0x14: {"OUT_OF_RESOURCES", host.KindExhausted},
	0x15: {"CONNECTION_ALREADY_EXISTS", host.KindExists},
	0x16: {"SESSION_ALREADY_EXISTS", host.KindExists},
	0x17: {"INITIATOR_INSTANCE_NOT_FOUND", host.KindNotFound},
	0x18: {"TARGET_ALREADY_EXISTS", host.KindExists},
	0x19: {"DRIVER_BUG", host.KindInternal},
	0x1A: {"INVALID_TEXT_KEY", host.KindInternal},
	0x1B: {"INVALID_SENDTARGETS_TEXT", host.KindInternal},
	0x1C: {"INVALID_SESSION_ID", host.KindNotFound},
	0x1D: {"SCSI_REQUEST_FAILED", host.KindInternal},
	0x1E: {"TOO_MANY_SESSIONS", host.KindExhausted},
	0x1F: {"SESSION_BUSY", host.KindBusy},
	0x20: {"TARGET_MAPPING_UNAVAILABLE", host.KindUnavailable},
	0x21: {"ADDRESS_TYPE_NOT_SUPPORTED", host.KindInvalid},
	0x22: {"LOGON_FAILED", host.KindUnauthenticated},
	0x23: {"SEND_FAILED", host.KindUnavailable},
	0x24: {"TRANSPORT_ERROR", host.KindUnavailable},
	0x25: {"VERSION_MISMATCH", host.KindUnsupported},
	0x26: {"TARGET_MAPPING_OUT_OF_RANGE", host.KindInvalid},
	0x27: {"TARGET_PRESHAREDKEY_UNAVAILABLE", host.KindUnauthenticated},
	0x28: {"TARGET_AUTHINFO_UNAVAILABLE", host.KindUnauthenticated},
	0x29: {"TARGET_NOT_FOUND", host.KindNotFound},
	0x2A: {"LOGIN_USER_INFO_BAD", host.KindUnauthenticated},
	0x2B: {"TARGET_MAPPING_EXISTS", host.KindExists},
	0x2D: {"INVALID_PORT_NUMBER", host.KindInvalid},
	0x2E: {"OPERATION_NOT_ALL_SUCCESS", host.KindInternal},
	0x32: {"TARGET_PORTAL_ALREADY_EXISTS", host.KindExists},
	0x33: {"TARGET_ADDRESS_ALREADY_EXISTS", host.KindExists},
	0x34: {"NO_AUTH_INFO_AVAILABLE", host.KindUnauthenticated},
	0x37: {"REQUEST_NOT_SUPPORTED", host.KindUnsupported},
	0x38: {"TARGET_OUT_OF_RESORCES", host.KindExhausted},
	0x39: {"SERVICE_DID_NOT_RESPOND", host.KindUnavailable},
	0x3B: {"OPERATION_REQUIRES_REBOOT", host.KindPrecondition},
	0x3C: {"NO_PORTAL_SPECIFIED", host.KindInvalid},
	0x3D: {"CANT_REMOVE_LAST_CONNECTION", host.KindPrecondition},
	0x3E: {"SERVICE_NOT_RUNNING", host.KindPrecondition},
	0x3F: {"TARGET_ALREADY_LOGGED_IN", host.KindExists},
	0x40: {"DEVICE_BUSY_ON_SESSION", host.KindBusy},
	0x41: {"COULD_NOT_SAVE_PERSISTENT_LOGIN_DATA", host.KindInternal},
	0x42: {"COULD_NOT_REMOVE_PERSISTENT_LOGIN_DATA", host.KindInternal},
	0x43: {"PORTAL_NOT_FOUND", host.KindNotFound},
	0x44: {"INITIATOR_NOT_FOUND", host.KindNotFound},
	0x45: {"DISCOVERY_MECHANISM_NOT_FOUND", host.KindNotFound},
	0x47: {"PERSISTENT_LOGIN_TIMEOUT", host.KindTimeout},
	0x48: {"SHORT_CHAP_SECRET", host.KindInvalid},
	0x4A: {"INVALID_CHAP_SECRET", host.KindInvalid},
	0x4B: {"INVALID_TARGET_CHAP_SECRET", host.KindUnauthenticated},
	0x4C: {"INVALID_INITIATOR_CHAP_SECRET", host.KindPrecondition},
	0x4D: {"INVALID_CHAP_USER_NAME", host.KindUnauthenticated},
	0x4E: {"INVALID_LOGON_AUTH_TYPE", host.KindUnauthenticated},
	0x4F: {"INVALID_TARGET_MAPPING", host.KindInvalid},
	0x50: {"INVALID_TARGET_ID", host.KindInvalid},
	0x51: {"INVALID_ISCSI_NAME", host.KindInvalid},
	0x54: {"BUFFER_TOO_SMALL", host.KindInternal},
	0x56: {"INVALID_PARAMETER", host.KindInvalid},
	0x5D: {"DEVICE_NOT_FOUND", host.KindNotFound},
	0x5E: {"DEVICE_NOT_ISCSI_OR_PERSISTENT", host.KindPrecondition},
	0x5F: {"DNS_NAME_UNRESOLVED", host.KindUnavailable},
	0x60: {"NO_CONNECTION_AVAILABLE", host.KindUnavailable},
	0x62: {"REMOVE_CONNECTION_IN_PROGRESS", host.KindBusy},
	0x63: {"INVALID_CONNECTION_ID", host.KindNotFound},
	0x65: {"RESTRICTED_BY_GROUP_POLICY", host.KindDenied},
}
