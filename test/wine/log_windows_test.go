package wine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/csi-windows/csi-windows/test/wine/bed"
)

// C100: the log of the program is for SYSTEM and Administrators, also when there was
// one that everybody could read.
func TestC100_LogOfTheProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "csi-proxy log.txt")
	if err := os.WriteFile(path, []byte("from before\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	rights := func() string {
		descriptor, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
		if err != nil {
			t.Fatal(err)
		}
		return descriptor.String()
	}
	if !strings.Contains(rights(), ";WD)") {
		t.Fatalf("the test's file is not open to everybody: %s", rights())
	}
	p := bed.Start(t, simFlags(t, "-logtostderr=false", "-log_file="+path)...)
	for deadline := time.Now().Add(readyTime); ; <-time.After(50 * time.Millisecond) {
		text, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(text), "from before\n") && strings.Contains(string(text), bed.ReadyText) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log is %q, %v; the program says %s", text, err, p.Text())
		}
	}
	if got := rights(); strings.Contains(got, ";WD)") || strings.Count(got, "(") != 2 {
		t.Errorf("the log has %s", got)
	}
}
