package smb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	smb2 "github.com/cloudsoda/go-smb2"

	"github.com/csi-windows/csi-windows/csikit"
)

// Codes that servers answer with: [MS-ERREF] 2.3.1.
const (
	statusNoMemory            = 0xC0000017
	statusObjectNameInvalid   = 0xC0000033
	statusSharingViolation    = 0xC0000043
	statusQuotaExceeded       = 0xC0000044
	statusDeletePending       = 0xC0000056
	statusWrongPassword       = 0xC000006A
	statusLogonFailure        = 0xC000006D
	statusAccountRestriction  = 0xC000006E
	statusInvalidLogonHours   = 0xC000006F
	statusInvalidWorkstation  = 0xC0000070
	statusPasswordExpired     = 0xC0000071
	statusAccountDisabled     = 0xC0000072
	statusDiskFull            = 0xC000007F
	statusInsufficient        = 0xC000009A
	statusNetworkNameDeleted  = 0xC00000C9
	statusBadNetworkName      = 0xC00000CC
	statusRequestNotAccepted  = 0xC00000D0
	statusDirectoryNotEmpty   = 0xC0000101
	statusNotADirectory       = 0xC0000103
	statusFileClosed          = 0xC0000128
	statusLogonTypeNotGranted = 0xC000015B
	statusAccountExpired      = 0xC0000193
	statusUserSessionDeleted  = 0xC0000203
	statusServerResources     = 0xC0000205
	statusPasswordMustChange  = 0xC0000224
	statusAccountLockedOut    = 0xC0000234
	statusSessionExpired      = 0xC000035C
)

// errLost is a session that is of no more use; another may be.
var errLost = errors.New("connection lost")

func responseCode(err error) uint32 {
	var response *smb2.ResponseError
	if errors.As(err, &response) {
		return response.Code
	}
	return 0
}

// kindOf turns an error of the SMB client into one of the kit. What is one already
// stays as it is.
func kindOf(err error) error {
	kind := csikit.ErrUnavailable
	var transport *smb2.TransportError
	var invalid *smb2.InvalidResponseError
	switch {
	case err == nil, isKind(err):
		return err
	case errors.As(err, &transport):
		if errors.Is(transport.Err, errPlain) {
			return fmt.Errorf("%w, and RequireEncryption (-smb-require-encryption) is set: turn encryption on for the share, or that off: %w", errPlain, csikit.ErrPrecondition)
		}
		return fmt.Errorf("%w: %w: %w", errLost, err, kind)
	case errors.As(err, &invalid) && strings.Contains(invalid.Message, "account doesn't support signing"):
		kind = csikit.ErrUnauthenticated
		err = fmt.Errorf("the server takes the user for a guest: %w", err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, os.ErrNotExist):
		kind = csikit.ErrNotFound
	case errors.Is(err, os.ErrExist):
		kind = csikit.ErrExists
	case errors.Is(err, os.ErrPermission):
		kind = csikit.ErrDenied
	default:
		return kindOfCode(err)
	}
	return fmt.Errorf("%w: %w", err, kind)
}

func kindOfCode(err error) error {
	kind := csikit.ErrUnavailable
	switch responseCode(err) {
	case statusLogonFailure, statusWrongPassword, statusAccountRestriction, statusInvalidLogonHours, statusInvalidWorkstation,
		statusPasswordExpired, statusAccountDisabled, statusAccountExpired, statusPasswordMustChange, statusAccountLockedOut, statusLogonTypeNotGranted:
		kind = csikit.ErrUnauthenticated
		err = fmt.Errorf(`%w (is the password right, and is the user's domain told, as "domain" or in "domain\user"?)`, err)
	case statusBadNetworkName:
		kind = csikit.ErrNotFound
	case statusObjectNameInvalid, statusNotADirectory:
		kind = csikit.ErrInvalid
	case statusSharingViolation, statusDeletePending:
		kind = csikit.ErrInUse
	case statusDirectoryNotEmpty:
		kind = csikit.ErrPrecondition
	case statusDiskFull, statusQuotaExceeded:
		kind = csikit.ErrExhausted
	case statusNetworkNameDeleted, statusUserSessionDeleted, statusSessionExpired, statusFileClosed:
		return fmt.Errorf("%w: %w: %w", errLost, err, kind)
	case statusRequestNotAccepted, statusServerResources, statusInsufficient, statusNoMemory: // as it is
	}
	return fmt.Errorf("%w: %w", err, kind)
}

func isKind(err error) bool {
	for _, kind := range []error{
		csikit.ErrInvalid, csikit.ErrNotFound, csikit.ErrExists, csikit.ErrInUse, csikit.ErrPrecondition, csikit.ErrBusy, csikit.ErrOutOfRange,
		csikit.ErrBadToken, csikit.ErrExhausted, csikit.ErrUnauthenticated, csikit.ErrDenied, csikit.ErrUnsupported, csikit.ErrUnavailable,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
