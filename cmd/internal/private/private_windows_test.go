package private

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

// rights reads the access list of a file or folder.
func rights(t *testing.T, path string) string {
	t.Helper()
	descriptor, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		t.Fatal(err)
	}
	return descriptor.String()
}

// isPrivate reports whether an access list is that of SYSTEM and of Administrators
// alone. Wine keeps no list but the three modes of the system below: it reads as one
// entry of SYSTEM, one of the user that everything belongs to, and no third one.
func isPrivate(rights string) bool {
	return strings.Count(rights, "(") == 2 && strings.Contains(rights, ";SY)") && !strings.Contains(rights, ";WD)")
}

// C100: what is made, and a file that was there and open to everybody, is for SYSTEM
// and Administrators.
func TestC100_AccessLists(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	folder, wide, made := filepath.Join(top, "logs"), filepath.Join(top, "wide"), filepath.Join(top, "made")
	if err := Mkdir(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(wide, []byte("before\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if before := rights(t, wide); isPrivate(before) {
		t.Fatalf("the test's file is not open to everybody: %s", before)
	}
	for _, path := range []string{wide, made} {
		file, err := OpenAppend(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteString("record\n")
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	program, err := Create(filepath.Join(folder, "program"))
	if err != nil {
		t.Fatal(err)
	}
	_ = program.Close()
	for _, path := range []string{folder, wide, made, program.Name()} {
		if got := rights(t, path); !isPrivate(got) {
			t.Errorf("%s has %s", path, got)
		}
	}
	if text, err := os.ReadFile(wide); err != nil || string(text) != "before\nrecord\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// C100: a program that was there and open to everybody is taken away, also while it runs.
func TestC100_Restrict(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "program")
	if err := Restrict(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("program"), 0o666); err != nil {
		t.Fatal(err)
	}
	running, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	if err := Restrict(path); err != nil {
		t.Fatal(err)
	}
	if got := rights(t, path); !isPrivate(got) {
		t.Errorf("it has %s", got)
	}
}

// The owner of a file can give himself its rights back, so a stranger loses it.
func TestC100_Owners(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"S-1-5-18": true, "S-1-5-32-544": true, "S-1-5-32-545": false, "S-1-1-0": false} {
		sid, err := windows.StringToSid(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := isTrusted(sid); got != want {
			t.Errorf("%s is trusted: %v, want %v", text, got, want)
		}
	}
	self, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil || !isTrusted(self.User.Sid) {
		t.Errorf("this process is not trusted: %v", err)
	}
	path := filepath.Join(t.TempDir(), "file")
	file, err := OpenAppend(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// Wine keeps the owner, so this shows only that the call is well formed.
	if err := disown(windows.Handle(file.Fd())); err != nil {
		t.Error(err)
	}
}

// A log is not written into a file that somebody else chose.
func TestC100_SecondNameIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	precious, path := filepath.Join(folder, "precious"), filepath.Join(folder, "log")
	if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(precious, path); err != nil {
		t.Fatal(err)
	}
	file, err := OpenAppend(path)
	if !errors.Is(err, errLink) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, %v", file, err)
	}
	if err := Truncate(path); !errors.Is(err, errLink) {
		t.Errorf("truncated: %v", err)
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "precious" {
		t.Errorf("the other file holds %q, %v", text, err)
	}
	if err := refuseLink(0); err == nil {
		t.Error("no file is no link")
	}
	if err := narrow(0); err == nil {
		t.Error("no file can be narrowed")
	}
}
