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
