package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
	"k8s.io/klog/v2"
)

// isForEverybody reads the access list of a file.
func isForEverybody(t *testing.T, path string) bool {
	t.Helper()
	descriptor, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(descriptor.String(), ";WD)")
}

// TestC100_LogsAreForAdministrators writes klog's records into a file that was open
// to everybody, until it was set aside several times. It is not parallel: klog has
// one set of files for the process.
func TestC100_LogsAreForAdministrators(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a log.txt")
	if err := os.WriteFile(path, []byte("from before\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if !isForEverybody(t, path) {
		t.Fatal("the test's file is not open to everybody")
	}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	addLogFlags(fs)
	t.Cleanup(func() { _ = fs.Parse([]string{"-logtostderr=true", "-log_file=", "-log_file_max_size=1800"}) })
	if err := fs.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL", "-log_file=" + path, "-log_file_max_size=1"}); err != nil {
		t.Fatal(err)
	}
	closeLogs, err := openLogs(fs, 3, neverFails(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * 1024 { // three files and a bit
		klog.InfoS("record", "text", strings.Repeat("x", 1024))
	}
	closeLogs()
	found, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(found) != 3 {
		t.Errorf("files: %q, %v", found, err)
	}
	for _, name := range found {
		if isForEverybody(t, name) {
			t.Errorf("everybody can read %s", name)
		}
		if info, err := os.Stat(name); err != nil || info.Size() == 0 || info.Size() > 1<<20 {
			t.Errorf("%s: %v, %v", name, info.Size(), err)
		}
	}
}

// C100: a log whose place cannot be opened is refused with its path.
func TestC100_LogThatCannotBeOpened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(file, "log") // below a file nothing can be made
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	addLogFlags(fs)
	t.Cleanup(func() { _ = fs.Parse([]string{"-logtostderr=true", "-log_file=", "-log_dir="}) })
	for _, flagName := range []string{"-log_file=", "-log_dir="} {
		if err := fs.Parse([]string{"-logtostderr=false", "-log_file=", "-log_dir=", flagName + path}); err != nil {
			t.Fatal(err)
		}
		if _, err := openLogs(fs, 1, neverFails(t)); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", flagName, err)
		}
	}
}
