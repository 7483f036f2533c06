package smb

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/csi-windows/csi-windows/csikit"
)

// climbers are names that are, or may be, something else for a server.
func climbers() []string {
	return []string{
		"", ".", "..", "...", "a.", "a ", " a", "a:b", "a:$DATA", "::$INDEX_ALLOCATION", "a*", "a?", "a|b", "a<", "a>", `a"`,
		"a\x00b", "a\nb", "a\x7f", "a\u0085b", "a\uf05cb", "CON", "con.txt", "Aux", "NUL .x", "COM1", "com¹", "LPT9.log", "CONIN$",
		"FOLDER~1", "a~0.txt", ".csi-windows", ".CSI-Windows", "\xff", strings.Repeat("ä", 256), strings.Repeat("😀", 128),
	}
}

func TestNamesThatClimbAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range climbers() {
		if err := checkPart(name); !errors.Is(err, csikit.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"a", "größe", "日本", "a b", "a~b", "CONSOLE", "com10", "a.b.c", ".hidden", "100%", "#x", strings.Repeat("ä", 255)} {
		if err := checkPart(name); err != nil {
			t.Error(err)
		}
	}
}

func TestC034_SourcesAndIDs(t *testing.T) {
	t.Parallel()
	tests := []struct{ source, text, unc string }{
		{"//Srv/share", "//srv/share", `\\srv\share`},
		{`\\srv\share\`, "//srv/share", `\\srv\share`},
		{"//srv:4450/share/a/b", "//srv:4450/share/a/b", `\\srv\share\a\b`},
		{"//10.0.0.1/share", "//10.0.0.1/share", `\\10.0.0.1\share`},
		{"//[FE80::1]:4450/share", "//[fe80::1]:4450/share", `\\fe80--1.ipv6-literal.net\share`},
	}
	for _, test := range tests {
		at, err := parseLocation(test.source)
		if err != nil || at.String() != test.text || at.uncPath() != test.unc {
			t.Errorf("%s: %s, %s, %v", test.source, at, at.uncPath(), err)
		}
	}
	for _, source := range []string{
		"", "srv/share", "//srv", "//srv/", "///share", "//srv//share", "//srv/share//a", "//srv/share/../x", "//srv@SSL/share",
		"//srv:/share", "//srv:0/share", "//srv:65536/share", "//srv:+1/share", "//[::1/share", "//[1.2.3.4]/share", "//[::1]x/share",
		"//-srv/share", "//s..v/share", "//s rv/share", "//srv/" + strings.Repeat("x", 81), "//srv/C:/x",
	} {
		if at, err := parseLocation(source); !errors.Is(err, csikit.ErrInvalid) {
			t.Errorf("%q: %+v, %v", source, at, err)
		}
	}
}

func TestIDsThatClimbAreRefused(t *testing.T) {
	t.Parallel()
	b, err := New(Config{Sources: []Source{{Path: "//srv/share/base"}}})
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{
		"smb://srv/share/v", "smb://srv/other/base/v", "smb://evil/share/base/v", "smb://srv:4450/share/base/v", "smb://srv/share/base2/v",
		"smb://srv/share", "smb://srv/share/base", "smb://SRV/share/base/v", "smb://srv/share/base/v/", "smb://srv/share/base/v?onDelete=delete",
		"smb:",
		"smb://srv/share/base/../v", "smb://srv/share/base/../../other/v", `smb://srv/share/base/..\v`, `smb://srv/share/base\v`,
		"smb://srv/share/base/.csi-windows/archive/v", "smb://srv/share/base/" + strings.Repeat("x", 128),
	}
	for _, name := range climbers() {
		ids = append(ids, "smb://srv/share/base/"+name, "smb://srv/share/base/"+name+"/v")
	}
	for _, id := range ids {
		_, nodeErr := b.NodeSource(t.Context(), csikit.NodeSourceRequest{VolumeID: id, Ending: true})
		_, getErr := b.GetVolume(t.Context(), csikit.VolumeRequest{VolumeID: id})
		_, cloneErr := b.CloneVolume(t.Context(), csikit.CreateVolumeRequest{Name: "n", Source: &csikit.ContentSource{VolumeID: id}})
		_, expandErr := b.ExpandVolume(t.Context(), csikit.ExpandRequest{VolumeID: id})
		deleteErr := b.DeleteVolume(t.Context(), csikit.VolumeRequest{VolumeID: id})
		for call, err := range map[string]error{"node": nodeErr, "get": getErr, "clone": cloneErr, "expand": expandErr, "delete": deleteErr} {
			if !errors.Is(err, csikit.ErrInvalid) {
				t.Errorf("%s of %q: %v", call, id, err)
			}
		}
	}
	for _, id := range ids {
		id = strings.Replace(id, idPrefix, idPrefixSnapshot, 1)
		_, getErr := b.GetSnapshot(t.Context(), csikit.SnapshotRequest{SnapshotID: id})
		_, restoreErr := b.RestoreSnapshot(t.Context(), csikit.CreateVolumeRequest{Name: "n", Source: &csikit.ContentSource{SnapshotID: id}})
		for call, err := range map[string]error{"get": getErr, "restore": restoreErr, "delete": b.DeleteSnapshot(t.Context(), csikit.SnapshotRequest{SnapshotID: id})} {
			if !errors.Is(err, csikit.ErrInvalid) {
				t.Errorf("%s of %q: %v", call, id, err)
			}
		}
	}
	if _, err := b.GetVolume(t.Context(), csikit.VolumeRequest{VolumeID: "disk-1"}); !errors.Is(err, csikit.ErrNotFound) {
		t.Errorf("id of another driver: %v", err)
	}
}

func TestParametersAreAList(t *testing.T) {
	t.Parallel()
	b, err := New(Config{Sources: []Source{{Path: "//srv/share/base"}, {Path: "//srv/second"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, parameters := range []map[string]string{
		nil, {"source": ""}, {"source": "//srv/share"}, {"source": "//evil/share/base"}, {"source": "//srv/share/base/../x"},
		{"source": "//srv/second", "onDelete": "erase"}, {"source": "//srv/second", "Source": "x"}, {"source": "//srv/second", "x": "$(y)"},
	} {
		if _, _, err := b.parameters(parameters); !errors.Is(err, csikit.ErrInvalid) {
			t.Errorf("%v: %v", parameters, err)
		}
	}
	at, mode, err := b.parameters(map[string]string{"source": "//SRV/Share/BASE/sub", "onDelete": "retain", "csi.storage.k8s.io/pv/name": "x"})
	if err != nil || at.String() != "//srv/Share/BASE/sub" || mode != onDeleteRetain {
		t.Errorf("%s, %s, %v", at, mode, err)
	}
	for _, config := range []Config{{}, {Sources: []Source{{Path: "//srv"}}}, {AnySource: true, Dial: map[string]string{"srv": "nowhere"}}} {
		if _, err := New(config); !errors.Is(err, csikit.ErrInvalid) {
			t.Errorf("%+v: %v", config, err)
		}
	}
}

// A long source still leaves room for a folder, or is refused.
func TestIDsAreShortEnough(t *testing.T) {
	t.Parallel()
	for length := range 120 {
		at := location{server: "srv", share: "s", base: []string{strings.Repeat("b", length+1)}}
		for _, name := range []string{"pvc-5a1f8b7e-0d5a-4a8e-9c55-8f6a4ce0a8c1", "x", strings.Repeat("Ä", 64)} {
			folder, err := newFolder(at, name)
			if err != nil {
				if !errors.Is(err, csikit.ErrInvalid) || length < 60 {
					t.Errorf("%d bytes of base: %v", length+1, err)
				}
				continue
			}
			volume, snapshot := volumeKey{at, folder}, snapshotKey{at, folder}
			if back, err := parseVolumeID(volume.String()); err != nil || fmt.Sprint(back) != fmt.Sprint(volume) {
				t.Errorf("%s: %+v, %v", volume, back, err)
			}
			if back, err := parseSnapshotID(snapshot.String()); err != nil || fmt.Sprint(back) != fmt.Sprint(snapshot) {
				t.Errorf("%s: %+v, %v", snapshot, back, err)
			}
		}
	}
}

func FuzzVolumeID(f *testing.F) {
	for _, name := range climbers() {
		f.Add("smb://srv/share/base/" + name)
	}
	f.Add("smb://srv:1/share/base/v=00")
	f.Fuzz(func(t *testing.T, id string) {
		key, err := parseVolumeID(id)
		if err != nil {
			if !errors.Is(err, csikit.ErrInvalid) && !errors.Is(err, csikit.ErrNotFound) {
				t.Errorf("%q: %v", id, err)
			}
			return
		}
		if key.String() != id || len(id) > volumeIDMax || !utf8.ValidString(id) {
			t.Errorf("%q is read as %q", id, key)
		}
		unc := key.root().uncPath()
		for _, part := range strings.Split(strings.TrimPrefix(unc, `\\`), `\`)[1:] {
			if checkPart(part) != nil {
				t.Errorf("%q leads to %q", id, unc)
			}
		}
	})
}

func FuzzFolderName(f *testing.F) {
	for _, name := range append(climbers(), "pvc-1", "v=00") {
		f.Add(name, 64)
	}
	f.Fuzz(func(t *testing.T, name string, maxBytes int) {
		maxBytes = max(33, min(maxBytes, 128))
		folder := folderName(name, maxBytes)
		if err := checkPart(folder); err != nil || len(folder) > maxBytes || strings.ToLower(folder) != folder {
			t.Errorf("%q becomes %q: %v", name, folder, err)
		}
		if folder != name && isPlain(folder) {
			t.Errorf("%q becomes %q, which is another's own name", name, folder)
		}
	})
}
