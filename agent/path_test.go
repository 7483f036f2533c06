package agent

import (
	"strings"
	"testing"
	"unicode"

	"github.com/csi-windows/csi-windows/host"
)

func TestParsePath(t *testing.T) {
	t.Parallel()
	long300 := `C:\` + strings.Repeat(`aaaaaaaaa\`, 29) + "aaaaaaa"
	for _, tc := range []struct{ name, text, want string }{
		{"plain", `C:\var\lib`, `C:\var\lib`},
		{"C026 slashes and small letter", `c:/x`, `C:\x`},
		{"C026 rooted slash", `/var/lib/kubelet`, `S:\var\lib\kubelet`},
		{"C026 rooted backslash", `\var\lib\kubelet`, `S:\var\lib\kubelet`},
		{"mixed separators", `C:\a/b\c`, `C:\a\b\c`},
		{"extended prefix", `\\?\C:\a\b`, `C:\a\b`},
		{"final separator", `C:\a\`, `C:\a`},
		{"doubled separator", `C:\a\\b`, `C:\a\b`},
		{"drive root", `c:\`, `C:\`},
		{"short name", `C:\VAR~1\x`, `C:\VAR~1\x`},
		{"dots inside", `C:\a.b\..c\...d`, `C:\a.b\..c\...d`},
		{"blank in front", `C:\ a`, `C:\ a`},
		{"shell characters", `C:\k\a&calc;%PATH%$(x)'` + "`", `C:\k\a&calc;%PATH%$(x)'` + "`"},
		{"not quite a device", `C:\console\nulls\COM10\LPT`, `C:\console\nulls\COM10\LPT`},
		{"component of 255", `C:\` + strings.Repeat("é", 255), `C:\` + strings.Repeat("é", 255)},
		{"C023 300 characters", long300, long300},
		{"C024 131 characters", `C:\` + strings.Repeat("x", 128), `C:\` + strings.Repeat("x", 128)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, err := parsePath("path", tc.text, 'S')
			if err != nil || p.String() != tc.want {
				t.Errorf("parsePath(%q) = %v, %v; want %q", tc.text, p, err, tc.want)
			}
		})
	}
}

func TestParsePathRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, says string }{
		{"empty", "", "empty"},
		{"C026 relative", "x", "not absolute"},
		{"C026 relative to drive", "C:x", "not absolute"},
		{"drive alone", "C:", "not absolute"},
		{"dot", `C:\a\.\b`, `"."`},
		{"dot-dot", `C:\a\..\b`, `".."`},
		{"dot-dot with slashes", `C:/a/../b`, `".."`},
		{"dot-dot at the end", `C:\a\..`, `".."`},
		{"C020 NUL", "C:\\a\x00b", "U+0000"},
		{"newline", "C:\\a\nb", "U+000A"},
		{"quote", `C:\a"b`, `'"'`},
		{"star", `C:\a*`, `'*'`},
		{"pipe", `C:\a|b`, `'|'`},
		{"alternate stream", `C:\a:b`, `':'`},
		{"stream type", `C:\a::$DATA`, `':'`},
		{"second drive", `C:\a\D:\b`, `':'`},
		{"final dot", `C:\a.\b`, "dot or blank"},
		{"final blank", `C:\a \b`, "dot or blank"},
		{"only dots", `C:\...\b`, "dot or blank"},
		{"device", `C:\CON`, "device"},
		{"device with extension", `C:\x\nul.txt`, "device"},
		{"device with blank", `C:\x\com1 .txt`, "device"},
		{"device with superscript", `C:\x\LPT²`, "device"},
		{"device console", `C:\x\conin$`, "device"},
		{"UNC", `\\srv\share\x`, "network"},
		{"UNC slashes", `//srv/share`, "network"},
		{"device path", `\\.\PhysicalDrive0`, "network and device"},
		{"volume path", `\\?\Volume{12345678-1234-1234-1234-123456789abc}\x`, "drive"},
		{"extended UNC", `\\?\UNC\srv\share`, "drive"},
		{"global root", `\\?\GLOBALROOT\Device\Harddisk0`, "drive"},
		{"NT path", `\??\C:\x`, "'?'"},
		{"component of 256", `C:\` + strings.Repeat("é", 256), "255"},
		{"component of surrogates", `C:\` + strings.Repeat("😀", 128), "255"},
		{"C023 too long", `C:\` + strings.Repeat(`aaaaaaaaa\`, 3200), "32000"},
		{"no text", "C:\\a\xff", "UTF-8"},
		{"letter that is none", `1:\x`, "not absolute"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := parsePath("thePath", tc.text, 'C')
			if !host.IsKind(err, host.KindInvalid) {
				t.Fatalf("parsePath(%q) = %v, want KindInvalid", tc.text, err)
			}
			if !strings.Contains(err.Error(), "thePath") || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %q names not the field and %q", err, tc.says)
			}
		})
	}
}

func TestC030_IsUnder(t *testing.T) {
	t.Parallel()
	parse := func(text string) localPath {
		p, err := parsePath("path", text, 'C')
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	root := parse(`C:\var\lib\kubelet`)
	for text, want := range map[string]bool{
		`c:\VAR\lib\kubelet\p`:       true,
		`C:\var\lib\kubelet`:         true,
		`C:\var\lib\kubelet2`:        false,
		`C:/var\lib/kubelet/p`:       true,
		`D:\var\lib\kubelet\p`:       false,
		`C:\var\lib`:                 false,
		"C:\\var\\lib\\\u212Aubelet": false, // the Kelvin sign is no K to NTFS
		`C:\var\lib\kubelet\ſ`:       true,
	} {
		if got := parse(text).isUnder(root); got != want {
			t.Errorf("isUnder(%q) = %v, want %v", text, got, want)
		}
	}
	if parse(`C:\STRASSE\Ä`).isUnder(parse(`C:\STRASSE\ä`)) {
		t.Error("the case of a letter outside ASCII was decided by text")
	}
	if parse(`c:/VAR/Lib/ÄÖ`).key() != parse(`C:\var\lib\äö`).key() {
		t.Error("two spellings of one path have different keys")
	}
}

func TestParseVolumeID(t *testing.T) {
	t.Parallel()
	const canonical = `\\?\Volume{0f2d34ab-1234-1234-1234-123456789abc}\`
	for _, text := range []string{canonical, strings.TrimSuffix(canonical, `\`), strings.ToUpper(canonical), strings.ToLower(canonical)} {
		if got, err := parseVolumeID("volumeID", text); err != nil || got != canonical {
			t.Errorf("parseVolumeID(%q) = %q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", `C:\`, `\\?\Volume{}`, `\\?\Volume{0f2d34ab-1234-1234-1234-123456789abc}\x`,
		`\\?\Volume{0f2d34ab-1234-1234-1234-123456789abg}\`, `\\.\Volume{0f2d34ab-1234-1234-1234-123456789abc}\`,
		`\\?\Volume{0f2d34ab01234-1234-1234-123456789abc}\`, `\\?\Volume{0f2d34ab-1234-1234-1234-123456789abc}\\`,
		`0f2d34ab-1234-1234-1234-123456789abc`, `\\?\Volume{0f2d34ab-1234-1234-1234-123456789ab'}\`,
	} {
		if _, err := parseVolumeID("volumeID", text); !host.IsKind(err, host.KindInvalid) {
			t.Errorf("parseVolumeID(%q) = %v, want KindInvalid", text, err)
		}
	}
}

func TestC017_ParseTarget(t *testing.T) {
	t.Parallel()
	const volume = `\\?\Volume{0f2d34ab-1234-1234-1234-123456789abc}\`
	for text, want := range map[string]string{
		`D:\a\b`:            `D|a|b`,
		`\\?\D:\a`:          `D|a`,
		`\??\D:\a\..\b`:     `D|b`,
		`D:`:                `D`,
		`\a`:                `C|a`,
		`a\.\b`:             `>|a|b`,
		`..\..\a\..\b`:      `>|..|..|b`,
		`..\x\..\..\y`:      `>|..|..|y`,
		volume:              volume,
		volume + `a\b`:      volume + `|a|b`,
		`\??\` + volume[4:]: volume,
		`\\srv\share\x`:     `\\srv\share\x`,
		`\\?\UNC\srv\share`: `\\srv\share`,
		`//srv/share/`:      `\\srv\share`,
		``:                  `?`,
		`D:x`:               `?`,
		`\\?\GLOBALROOT\x`:  `?`,
	} {
		target := parseTarget(text, 'C')
		head := "?"
		switch target.kind {
		case targetRelative:
			head = ">"
		case targetDrive:
			head = string(target.drive)
		case targetVolume:
			head = target.volume
		case targetRemote:
			head = target.remote
		}
		if got := strings.Join(append([]string{head}, target.names...), "|"); got != want {
			t.Errorf("parseTarget(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{`C:\a\b`, `/x/../y`, `\\?\C:\x`, "C:\\a\x00", `C:\nul.`, `\\srv\s`, `C:\a:b`, `c:/ÄÖ/ſ`, `C:\a&b;$(c)`} {
		f.Add(seed)
	}
	root, err := parsePath("root", `C:\k`, 'C')
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePath("path", text, 'C')
		if err != nil {
			if !host.IsKind(err, host.KindInvalid) {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		normal := p.String()
		again, err := parsePath("path", normal, 'C')
		if err != nil || again.String() != normal {
			t.Fatalf("normal form %q parses to %v, %v", normal, again, err)
		}
		for _, name := range p.names {
			if name == "" || name == "." || name == ".." || strings.ContainsAny(name, forbiddenInNames) || strings.ContainsFunc(name, unicode.IsControl) {
				t.Fatalf("component %q was accepted", name)
			}
		}
		if p.isUnder(root) && !strings.HasPrefix(p.key()+`\`, `C:\K\`) {
			t.Fatalf("%q counts as under the root", normal)
		}
	})
}

func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{`D:\a`, `..\a`, `\\?\Volume{0f2d34ab-1234-1234-1234-123456789abc}\x`, `\\s\h`, `\??\UNC\x`, "D:", `Volume{`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target := parseTarget(text, 'C')
		below := false
		for _, name := range target.names {
			if name == "" || name == "." || strings.ContainsAny(name, `\/`) {
				t.Fatalf("component %q of %q", name, text)
			}
			if name == ".." && (below || target.kind != targetRelative) {
				t.Fatalf("%q keeps a step back inside: %q", text, target.names)
			}
			below = below || name != ".."
		}
	})
}
