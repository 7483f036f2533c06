//go:build !linux

package registrar

import "testing"

// watchFolder needs the events of a folder.
func watchFolder(t *testing.T, _ string) (events <-chan fileEvent, stop func()) {
	t.Helper()
	t.Skip("needs inotify")
	return nil, nil
}
