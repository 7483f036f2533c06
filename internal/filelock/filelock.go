// Package filelock keeps a folder for one process at a time.
package filelock

import "errors"

// ErrInUse is a lock that another process, or another Lock of this one, has.
var ErrInUse = errors.New("another process has it open")
