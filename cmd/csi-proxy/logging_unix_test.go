//go:build unix

package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

// TestC100_LogsAreForTheirOwner opens klog's files in each way its flags offer.
// It is not parallel: klog has one set of files for the process.
func TestC100_LogsAreForTheirOwner(t *testing.T) {
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	wide := filepath.Join(shared, "wide.log")
	if err := os.WriteFile(wide, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"a file":                    {"-log_file=" + filepath.Join(shared, "new.log")},
		"a file in a new folder":    {"-log_file=" + filepath.Join(shared, "made", "too", "new.log")},
		"a file others could read":  {"-log_file=" + wide},
		"a folder others may enter": {"-log_dir=" + shared},
		"a new folder":              {"-log_dir=" + filepath.Join(shared, "new")},
	} {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		addLogFlags(fs)
		t.Cleanup(func() { _ = fs.Parse([]string{"-logtostderr=true", "-log_file=", "-log_dir="}) })
		if err := fs.Parse(append([]string{"-logtostderr=false", "-log_file=", "-log_dir=", "-stderrthreshold=FATAL"}, args...)); err != nil {
			t.Fatal(err)
		}
		closeLogs, err := openLogs(fs, 1, neverFails(t))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		klog.ErrorS(nil, "a record")
		closeLogs()
	}
	found := 0
	err := filepath.WalkDir(shared, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		found++
		info, err := entry.Info()
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %#o", path, info.Mode().Perm())
		}
		text, err := os.ReadFile(path)
		if strings.Count(string(text), "a record") != 1 {
			t.Errorf("%s holds %q", path, text)
		}
		return err
	})
	// Three single files; in each folder the record is in ERROR, WARNING and INFO.
	if err != nil || found != 3+3+3 {
		t.Errorf("%d files, %v", found, err)
	}
	if info, err := os.Stat(filepath.Join(shared, "made")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder that was made: %v, %v", info, err)
	}
}
