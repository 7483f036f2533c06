package wql

import "fmt"

// ErrorKind says what is wrong with a query or a path. Each stands for the
// HRESULT that WMI gives in the same case. Source: wbemcli.h.
type ErrorKind uint8

// The kinds of errors.
const (
	// InvalidQuery is a query that is not WQL (WBEM_E_INVALID_QUERY).
	InvalidQuery ErrorKind = iota + 1
	// InvalidPath is a malformed object path (WBEM_E_INVALID_OBJECT_PATH).
	InvalidPath
	// QuotaViolation is a query or path that is too long or too complex
	// (WBEM_E_QUOTA_VIOLATION).
	QuotaViolation
	// TypeMismatch is a comparison that the types do not allow (WBEM_E_TYPE_MISMATCH).
	TypeMismatch
	// UnknownProperty is a condition on a property that the class does not have
	// (WBEM_E_INVALID_QUERY).
	UnknownProperty
)

// Error is every error of the package.
type Error struct {
	Kind ErrorKind
	// Offset is the byte of the text at which reading stopped; 0 in errors of Match.
	Offset int
	Text   string
}

// Error implements error. It never quotes a literal: literals are data.
func (e *Error) Error() string {
	if e.Kind == TypeMismatch || e.Kind == UnknownProperty {
		return "wql: " + e.Text
	}
	return fmt.Sprintf("wql: %s at byte %d", e.Text, e.Offset)
}
