package pipe

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// C060: a caller who is refused is told which account is needed. (Refusals cannot
// be had for real where tests run: they run as root, and Wine refuses nobody.)
func TestC060_RefusalNamesTheAccount(t *testing.T) {
	t.Parallel()
	err := dialError("place", &os.PathError{Op: "open", Path: "place", Err: syscall.EACCES})
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), neededAccount) || !strings.Contains(err.Error(), "pipe place") {
		t.Errorf("got %v", err)
	}
}
