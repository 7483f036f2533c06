package sim

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A state that no node has written is refused or made complete, and is never a
// panic.
func TestOpenStateOfAnotherHand(t *testing.T) {
	t.Parallel()
	for text, fault := range map[string]string{
		`null`:                          "",
		`{}`:                            "",
		``:                              "node.json",
		`{"disks":`:                     "node.json",
		`[]`:                            "node.json",
		`{"disks":[null]}`:              "node.json",
		`{"services":[null]}`:           "node.json",
		`{"smbServers":[null]}`:         "node.json",
		`{"mappings":[null]}`:           "node.json",
		`{"targets":[null]}`:            "node.json",
		`{"iscsi":{"portals":[null]}}`:  "node.json",
		`{"iscsi":{"sessions":[null]}}`: "node.json",
		`{"iscsi":{"logins":[null]}}`:   "node.json",
		`{"systemVolumes":{"":"x"}}`:    "node.json",
		`{"systemVolumes":{"CC":"x"}}`:  "node.json",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, stateFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := Open(context.Background(), Config{Dir: dir})
		if fault != "" {
			if err == nil || !strings.Contains(err.Error(), fault) {
				t.Errorf("%s: error %v, want one that names %s", text, err, fault)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		_ = one(t, n, "SELECT * FROM MSFT_Disk WHERE Number = %d", 0)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A folder that was named by mistake keeps what it has and gets nothing more.
func TestOpenLeavesFoldersOfOthersAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files   []string
		refused bool
	}{
		"empty":                     {nil, false},
		"of somebody else":          {[]string{"hosts", "passwd"}, true},
		"hidden file":               {[]string{".profile"}, true},
		"other state of JSON":       {[]string{"state.json", "lock"}, true},
		"fresh file system":         {[]string{"lost+found"}, false},
		"start that was broken off": {[]string{"lock", "node.json.new"}, false},
	} {
		dir := t.TempDir()
		for _, file := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		n, err := Open(context.Background(), Config{Dir: dir})
		if err == nil {
			err = n.Close()
		}
		if !c.refused {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		entries, readErr := os.ReadDir(dir)
		if err == nil || !strings.Contains(err.Error(), dir) || readErr != nil || len(entries) != len(c.files) {
			t.Errorf("%s: error %v, then %v in it, %v", name, err, entries, readErr)
		}
	}
}

// What a user adds to the folder of a node does not shut it.
func TestOpenTakesANodeWithOtherFilesBesideIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		n, err := Open(context.Background(), Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
