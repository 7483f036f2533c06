//go:build unix

package mounter

import "golang.org/x/sys/unix"

// errnoCorrupted is one of the numbers that mount.IsCorruptedMnt takes elsewhere.
const errnoCorrupted = unix.ESTALE
