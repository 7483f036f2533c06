package conformance

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// makeLink makes a symbolic link to a folder, which need not exist: os.Symlink
// makes one to a file then. Source: CreateSymbolicLinkW, SYMBOLIC_LINK_FLAG_DIRECTORY.
func makeLink(path, target string) error {
	from, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return fmt.Errorf("link %s: %w", path, err)
	}
	to, err := windows.UTF16PtrFromString(target)
	if err != nil {
		return fmt.Errorf("link to %s: %w", target, err)
	}
	if err := windows.CreateSymbolicLink(from, to, windows.SYMBOLIC_LINK_FLAG_DIRECTORY); err != nil {
		return fmt.Errorf("link %s to %s: %w", path, target, err)
	}
	return nil
}
