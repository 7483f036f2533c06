//go:build !unix

package stack

import "time"

// ReapedChildren reports nothing here: child processes are counted on unix.
func ReapedChildren() (bool, error) { return false, nil }

// CPUTime measures nothing here: it is measured on unix.
func CPUTime() (time.Duration, error) { return 0, nil }
