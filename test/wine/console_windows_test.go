package wine

import (
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// canDial reports whether a pipe of the default place is served.
func canDial(t *testing.T, api wire.API) bool {
	t.Helper()
	conn, err := pipe.Place{}.Dial(t.Context(), api.Group, api.Version)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func TestC058_ServiceFlagInAConsole(t *testing.T) {
	started := time.Now()
	code, output := run(t, simFlags(t, "-windows-service")...)
	if code != 7 || !strings.Contains(output, "not started by the service control manager") {
		t.Errorf("exit code %d, output %q; want 7 and a word on the service control manager", code, output)
	}
	if lines := strings.Count(strings.TrimSpace(output), "\n") + 1; lines != 1 {
		t.Errorf("%d lines of output, want 1:\n%s", lines, output)
	}
	if took := time.Since(started); took > quickTime {
		t.Errorf("it took %s, want less than %s", took, quickTime)
	}
}

func TestC058_ASecondCopySaysWhichPipeIsInUse(t *testing.T) {
	first := bed.Start(t, simFlags(t)...)
	first.WaitReady(t)
	started := time.Now()
	code, output := run(t, simFlags(t)...)
	if code != 5 || !strings.Contains(output, "pipe csi-proxy-disk-v1alpha1 is in use") {
		t.Errorf("exit code %d, output %q; want 5 and the name of a pipe", code, output)
	}
	if took := time.Since(started); took > quickTime {
		t.Errorf("it took %s, want less than %s", took, quickTime)
	}
	for _, api := range wire.APIs() {
		if !canDial(t, api) {
			t.Errorf("the first copy no longer serves %s", api)
		}
	}
}

func TestBadFlagIsRefusedBeforeAnythingIsOpened(t *testing.T) {
	code, output := run(t, simFlags(t, "-grace-period=1h")...)
	if code != 2 || !strings.Contains(output, "-grace-period") {
		t.Errorf("exit code %d, output %q; want 2 and the flag", code, output)
	}
}
