//go:build !unix

package stack

// ReapedChildren reports nothing here: child processes are counted on unix.
func ReapedChildren() (bool, error) { return false, nil }
