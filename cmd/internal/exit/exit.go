// Package exit joins failures of a program with the exit code they end it with.
// What the codes of a program mean is part of its interface and in its own page.
package exit

import "errors"

// The codes that mean the same for every program.
const (
	codeRun   = 1 // it failed while it ran
	codeUsage = 2 // the command line cannot be accepted
)

// failure is a failure with its exit code.
type failure struct {
	code  int
	cause error
}

func (f *failure) Error() string { return f.cause.Error() }
func (f *failure) Unwrap() error { return f.cause }

// With gives an error its exit code; nil stays nil.
func With[Code ~int](code Code, err error) error {
	if err == nil {
		return nil
	}
	return &failure{int(code), err}
}

// UsageError is a command line that cannot be accepted.
type UsageError struct{ cause error }

// Usage is the refusal of a command line.
func Usage(cause error) error { return &UsageError{cause} }

// Error gives the reason.
func (e *UsageError) Error() string { return e.cause.Error() }

// Unwrap gives the reason.
func (e *UsageError) Unwrap() error { return e.cause }

// Code is the exit code of a process that ended with err.
func Code(err error) int {
	var (
		usage *UsageError
		with  *failure
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return codeUsage
	case errors.As(err, &with):
		return with.code
	default:
		return codeRun
	}
}
