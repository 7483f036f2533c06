package main

import (
	"os"
	"strings"
)

// mounted reports whether the kernel lists a mount at the path. A bind within
// one file system has the device of its surroundings and is seen only there.
func mounted(path string) bool {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == path {
			return true
		}
	}
	return false
}
