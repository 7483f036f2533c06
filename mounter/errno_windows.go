package mounter

import "golang.org/x/sys/windows"

// errnoCorrupted is one of the numbers that mount.IsCorruptedMnt takes on Windows.
const errnoCorrupted = windows.ERROR_BAD_NET_NAME
