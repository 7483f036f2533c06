package tree

import (
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

func TestParsePath(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 255)
	const guid = `Volume{AAAAAAAA-0000-0000-0000-00000000000c}`
	tests := []struct {
		path   string
		code   uint32
		kind   rootKind
		names  []string
		folder bool
	}{
		{path: `C:\`, folder: true},
		{path: `c:/a\b/`, names: []string{"a", "b"}, folder: true},
		{path: `C:\a\\b\.\c\..\d`, names: []string{"a", "b", "d"}},
		{path: `C:\..\..\a`, names: []string{"a"}},
		{path: `C:\a. .`, names: []string{"a"}},
		{path: `C:\a.\b .`, names: []string{"a", "b"}},
		{path: `C:\a...\b`, names: []string{"a...", "b"}},
		{path: `C:\a \b`, names: []string{"a ", "b"}},
		{path: `C:\a:b`, code: win32.ErrInvalidName},
		{path: `C:\a*`, code: win32.ErrInvalidName},
		{path: "C:\\a\x00b", code: win32.ErrInvalidName},
		{path: "C:\\a\x1fb", code: win32.ErrInvalidName},
		{path: "C:\\a\xff", code: win32.ErrInvalidName},
		{path: `C:a`, code: win32.ErrInvalidName},
		{path: `a\b`, code: win32.ErrInvalidName},
		{path: `\a`, code: win32.ErrInvalidName},
		{path: ``, code: win32.ErrInvalidName},
		{path: `C:\` + long, names: []string{long}},
		{path: `C:\a\` + long, code: win32.ErrPathNotFound},
		{path: `\\?\C:\a\` + long, names: []string{"a", long}},
		{path: `\\?\C:\` + long + "x", code: win32.ErrInvalidName},
		{path: `\\?\C:\` + strings.Repeat(long+`\`, 127) + "x", names: append(slices.Repeat([]string{long}, 127), "x")},
		{path: `\\?\C:\` + strings.Repeat(long+`\`, 128), code: errPathTooLong},
		{path: `\\?\C:\`, folder: true},
		{path: `\\?\C:\a. `, names: []string{"a. "}},
		{path: `\\?\C:\a/b`, code: win32.ErrInvalidName},
		{path: `\\?\C:\a\..\b`, code: win32.ErrInvalidName},
		{path: `\\?\C:\a\\b`, code: win32.ErrInvalidName},
		{path: `\\?\C:\CON`, names: []string{"CON"}},
		{path: `\\?\C:`, code: win32.ErrFileNotFound},
		{path: `\\.\C:\a/.\b.`, names: []string{"a", "b"}},
		{path: `//?/C:/a/../b`, names: []string{"b"}},
		{path: `\\?\` + guid + `\`, kind: rootVolume, folder: true},
		{path: `\\?\` + guid + `\x`, kind: rootVolume, names: []string{"x"}},
		{path: `\\?\` + guid, code: win32.ErrFileNotFound},
		{path: `\\?\Volume{x}\`, code: win32.ErrFileNotFound},
		{path: `\\?\GLOBALROOT\Device\x`, code: win32.ErrFileNotFound},
		{path: `\\srv\sh`, kind: rootRemote, folder: true},
		{path: `//srv/sh/a`, kind: rootRemote, names: []string{"a"}},
		{path: `\\srv\sh\..\..\a`, kind: rootRemote, names: []string{"a"}},
		{path: `\\?\UNC\srv\sh\a`, kind: rootRemote, names: []string{"a"}},
		{path: `\\srv`, code: win32.ErrBadNetPath},
		{path: `\\?\UNC\srv`, code: win32.ErrBadNetPath},
	}
	for _, test := range tests {
		t.Run(test.path[:min(len(test.path), 40)], func(t *testing.T) {
			t.Parallel()
			loc, code := parsePath(test.path)
			if code != test.code {
				t.Fatalf("code %d, want %d", code, test.code)
			}
			if code != 0 {
				return
			}
			if loc.kind != test.kind || !slices.Equal(loc.names, test.names) || loc.folder != test.folder {
				t.Fatalf("got %+v, want %+v", loc, test)
			}
		})
	}
}

func TestIsDevice(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		`\\.\PhysicalDrive0`: true, `\\?\PhysicalDrive0`: true, `\\.\C:`: true, `\\?\c:`: true, `//./C:`: true,
		`\\?\Volume{aaaaaaaa-0000-0000-0000-00000000000c}`: true, `\\.\pipe\csi-proxy`: true, `\\?\GLOBALROOT\x`: true,
		volumeC: false, volumeC + `a`: false, `\\?\C:\`: false, `\\.\C:\a`: false, `C:\a`: false, `\\srv\sh`: false,
		`\\?\UNC\srv\sh`: false, `\\?\UNC\srv`: false, ``: false, `\\?`: false, `C:`: false,
	} {
		if got := IsDevice(path); got != want {
			t.Errorf("IsDevice(%q) = %t", path, got)
		}
	}
}

func TestDOSDevices(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"CON": true, "con.txt": true, "NUL": true, "aux ": true, "PRN .x": true, "COM1": true, "com9.log": true,
		"LPT3": true, "COM¹": true, "CONIN$": true, "NUL:": true,
		"COM0": false, "COM10": false, "CONSOLE": false, "xCON": false, "COM": false, "": false,
	} {
		if got := isDOSDevice(name); got != want {
			t.Errorf("isDOSDevice(%q) = %t", name, got)
		}
	}
}

func TestFoldName(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"Straße", "STRAßE"}, {"ärger", "ÄRGER"}, {"ÿ", "Ÿ"}, {"привет", "ПРИВЕТ"}, {"𐐨", "𐐨"}} {
		if got := foldName(pair[0]); got != pair[1] {
			t.Errorf("foldName(%q) = %q, want %q", pair[0], got, pair[1])
		}
	}
	for _, pair := range [][2]string{{"ı", "i"}, {"ſ", "s"}, {"µ", "μ"}, {"ß", "ss"}, {"𐐨", "𐐀"}} {
		if foldName(pair[0]) == foldName(pair[1]) {
			t.Errorf("%q and %q are one name", pair[0], pair[1])
		}
	}
}

func TestHostNamesAreReversible(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"plain", "a:b", `x\y`, "tab\t", "bad\xff\xfeutf", "qu?st*on", "dots..", "über"} {
		shown := shownName(host)
		if code := checkName(shown); code != 0 {
			t.Errorf("%q is shown as %q, which is no name", host, shown)
		}
		if back := hostName(shown); back != host {
			t.Errorf("%q is shown as %q, which is %q on the host", host, shown, back)
		}
	}
	for _, name := range []string{"\uf02f", "\uf02e\uf02e", "\uf000", "\uf02f..\uf02fetc"} {
		if host := hostName(name); strings.ContainsAny(host, "/\x00") || host == ".." {
			t.Errorf("%q becomes %q on the host", name, host)
		}
	}
}

func TestShortNameRules(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{}
	for _, pair := range [][2]string{
		{"variable", ""}, {"Program Files", "PROGRA~1"}, {"Program Data", "PROGRA~2"}, {"longfilename.text", "LONGFI~1.TEX"},
		{".kubelet", "KUBELE~1"}, {"a+b=c;d.x", "A_B_C_~1.X"}, {"many.dots.in.name", "MANYDO~1.NAM"}, {"README.MD", ""},
	} {
		if isShortName(pair[0]) != (pair[1] == "") {
			t.Errorf("isShortName(%q) = %t", pair[0], isShortName(pair[0]))
		}
		if pair[1] == "" {
			continue
		}
		got := generateShortName(pair[0], taken)
		taken[got] = true
		if got != pair[1] {
			t.Errorf("short name of %q is %q, want %q", pair[0], got, pair[1])
		}
	}
	for range 100 {
		short := generateShortName("collision name", taken)
		if taken[short] || !isShortName(short) {
			t.Fatalf("%q is taken or no short name", short)
		}
		taken[short] = true
	}
	if short := generateShortName("ä.html", taken); !isShortName(short) {
		t.Errorf("%q is no short name", short)
	}
}
