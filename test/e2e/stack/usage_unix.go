//go:build unix

package stack

import (
	"time"

	"golang.org/x/sys/unix"
)

// ReapedChildren reports whether this process has ever had a child process that
// has ended: only then is there a largest memory of its children.
//
// Source: getrusage(2), RUSAGE_CHILDREN.
func ReapedChildren() (bool, error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &usage); err != nil {
		return false, err
	}
	return usage.Maxrss > 0, nil
}

// CPUTime is the processor time this process has used, in the kernel included.
//
// Source: getrusage(2), RUSAGE_SELF.
func CPUTime() (time.Duration, error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
