//go:build !windows

package conformance

import "os"

// makeLink makes a symbolic link.
func makeLink(path, target string) error { return os.Symlink(target, path) }
