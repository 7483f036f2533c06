package client

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/csi-windows/csi-windows/host"
)

// C060: a pipe that this account may not open is KindDenied, also among others
// that do not exist.
func TestC060_RefusedPipeIsDenied(t *testing.T) {
	t.Parallel()
	missing, refused := fmt.Errorf("a: %w", fs.ErrNotExist), fmt.Errorf("b: %w", fs.ErrPermission)
	for want, tried := range map[host.Kind][]error{
		host.KindDenied:      {missing, refused, missing},
		host.KindUnavailable: {missing, errors.New("broken")},
	} {
		if got := kindOfChoice(&choiceError{tried: tried}); got != want {
			t.Errorf("%v is %s, want %s", tried, got, want)
		}
	}
}
