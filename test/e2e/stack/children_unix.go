//go:build unix

package stack

import "golang.org/x/sys/unix"

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
