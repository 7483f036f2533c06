package agent

import (
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
)

func TestC034_MappingKey(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, key, whole string }{
		{`\\srv\share\pvc-1\x`, `\\srv\share`, `\\srv\share\pvc-1\x`},
		{`\\SRV\Share\`, `\\srv\share`, `\\SRV\Share`},
		{`//srv/share/a`, `\\srv\share`, `\\srv\share\a`},
		{`\\srv@SSL\share`, `\\srv@ssl\share`, `\\srv@SSL\share`},
		{`\\10.0.0.1\share`, `\\10.0.0.1\share`, `\\10.0.0.1\share`},
		{`\\srv\share$\\a`, `\\srv\share$`, `\\srv\share$\a`},
		{`\\srv.example.com\my share`, `\\srv.example.com\my share`, `\\srv.example.com\my share`},
		{`\\srv\ÄÖ`, `\\srv\äö`, `\\srv\ÄÖ`},
		// The Kelvin sign and the dotted I are letters of their own to a server.
		{"\\\\srv\\\u212a", "\\\\srv\\\u212a", "\\\\srv\\\u212a"},
		{`\\srv\İx`, `\\srv\İx`, `\\srv\İx`},
	} {
		r, err := parseRemote("remotePath", tc.text)
		if err != nil || r.mappingKey() != tc.key || r.String() != tc.whole {
			t.Errorf("parseRemote(%q) = key %q, path %q, %v", tc.text, r.mappingKey(), r.String(), err)
		}
	}
	for _, text := range []string{
		"", `\\srv`, `\\srv\`, `\\`, `srv\share`, `C:\share`, `\\srv\share\..\another`, `\\srv\..\c$`, `\\srv\share\.`,
		"\\\\srv\\sha\x00re", "\\\\srv\\share\\a\nb", `\\?\C:\x`, `\\.\pipe\x`, `\\srv\sh:are`, `\\srv\sh|are`, `\\srv;x\share`,
		`\\srv\` + strings.Repeat("s", 81), `\\` + strings.Repeat("s", 256) + `\x`, `\\\srv\share`,
	} {
		if _, err := parseRemote("remotePath", text); !host.IsKind(err, host.KindInvalid) {
			t.Errorf("parseRemote(%q) = %v, want KindInvalid", text, err)
		}
	}
}

func FuzzParseRemote(f *testing.F) {
	for _, seed := range []string{`\\srv\share\x`, `//a/b`, `\\a`, `\\?\UNC\a\b`, `\\a\b\..`, "\\\\a\\b\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRemote("remotePath", text)
		if err != nil {
			return
		}
		again, err := parseRemote("remotePath", r.String())
		if err != nil || again.String() != r.String() {
			t.Fatalf("normal form %q parses to %q, %v", r.String(), again.String(), err)
		}
		if strings.Contains(r.String(), `\..`+`\`) || strings.Count(r.mappingKey(), `\`) != 3 {
			t.Fatalf("accepted %q as %q", text, r.mappingKey())
		}
	})
}

func TestC040_Users(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"u", `d\u`, "u@d.tld", `AZURE\account`, `.\u`} {
		if err := checkCredentials(user, "p"); err != nil {
			t.Errorf("user %q: %v", user, err)
		}
	}
	if err := checkCredentials("", ""); err != nil {
		t.Errorf("the node's own account: %v", err)
	}
	for _, user := range []string{"", `\u`, `d\`, `d\u\v`, "u\x00", "u\nv", strings.Repeat("u", 514)} {
		if err := checkCredentials(user, "secret-1"); !host.IsKind(err, host.KindInvalid) || strings.Contains(err.Error(), "secret-1") {
			t.Errorf("user %q: %v", user, err)
		}
	}
}

func TestC039_PasswordsPass(t *testing.T) {
	t.Parallel()
	for _, password := range []string{`$x`, `'`, `"`, `\`, "`", `,`, `;`, `%`, `:`, " p ", "pä😀", strings.Repeat("p", 127)} {
		if err := checkCredentials("u", password); err != nil {
			t.Errorf("password %q: %v", password, err)
		}
	}
	for _, password := range []string{"a\x00b", "\xff", strings.Repeat("p", 513)} {
		if err := checkCredentials("u", password); !host.IsKind(err, host.KindInvalid) || strings.Contains(err.Error(), password) {
			t.Errorf("password %q: %v", password, err)
		}
	}
}

func TestParsePortal(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want host.TargetPortal }{
		{host.TargetPortal{Address: "10.0.0.1"}, host.TargetPortal{Address: "10.0.0.1", Port: 3260}},
		{host.TargetPortal{Address: "FD00::0001", Port: 65535}, host.TargetPortal{Address: "fd00::1", Port: 65535}},
		{host.TargetPortal{Address: "san-1.example_x.com", Port: 1}, host.TargetPortal{Address: "san-1.example_x.com", Port: 1}},
	} {
		if got, err := parsePortal(tc.in); err != nil || got != tc.want {
			t.Errorf("parsePortal(%v) = %v, %v", tc.in, got, err)
		}
	}
	for _, in := range []host.TargetPortal{
		{}, {Port: 3260}, {Address: "a", Port: 65536}, {Address: "a", Port: 3260 + 65536}, {Address: "[::1]"}, {Address: "a b"},
		{Address: "a;b"}, {Address: "a\x00"}, {Address: strings.Repeat("a", 256)}, {Address: "a:1"}, {Address: "ä"}, {Address: "fe80::1%a\nb"}, {Address: "fe80::1%a b"},
	} {
		if _, err := parsePortal(in); !host.IsKind(err, host.KindInvalid) {
			t.Errorf("parsePortal(%v) = %v, want KindInvalid", in, err)
		}
	}
}

func TestParseIQN(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"iqn.2024-01.com.example:disk1", "IQN.1991-05.com.microsoft:Srv-target_1", "iqn.2024-12.com.example",
		"eui.0123456789ABCDEF", "naa.5000c50012345678", "naa.62004567BA64678D0123456789ABCDEF", "iqn.2024-01.com.exämple",
	} {
		if got, err := parseIQN(text); err != nil || got != strings.ToLower(text) {
			t.Errorf("parseIQN(%q) = %q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "disk", "iqn.", "iqn.2024-13.com.x", "iqn.2024-00.com.x", "iqn.24-01.com.x", "iqn.2024-01.", "eui.12", "naa.xyz",
		"iqn.2024-01.com x", "iqn.2024-01.com.x\x00", "iqn.2024-01.com.x'--", "iqn.2024-01.com.x/y", "iqn.+024-01.com.x",
		"iqn.2024-01.com." + strings.Repeat("x", 223),
	} {
		if _, err := parseIQN(text); !host.IsKind(err, host.KindInvalid) {
			t.Errorf("parseIQN(%q) = %v, want KindInvalid", text, err)
		}
	}
}

func FuzzParseIQN(f *testing.F) {
	for _, seed := range []string{"iqn.2024-01.com.example:x", "eui.0123456789ABCDEF", "naa.", "iqn.2024-01"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		iqn, err := parseIQN(text)
		if err != nil {
			return
		}
		if again, err := parseIQN(iqn); err != nil || again != iqn {
			t.Fatalf("%q parses to %q, %v", iqn, again, err)
		}
	})
}

func TestC049_ChapRules(t *testing.T) {
	t.Parallel()
	const good, secretText = "123456789012", "top-secret!!"
	for _, tc := range []struct {
		name    string
		options host.ConnectOptions
		valid   bool
	}{
		{"none", host.ConnectOptions{}, true},
		{"none with secret", host.ConnectOptions{ChapSecret: secretText}, false},
		{"one-way", host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: "u", ChapSecret: good}, true},
		{"one-way without secret", host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: "u"}, false},
		{"secret of 11", host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapSecret: good[:11]}, false},
		{"secret of 16", host.ConnectOptions{AuthType: host.AuthMutualCHAP, ChapSecret: good + "3456"}, true},
		{"secret of 17", host.ConnectOptions{AuthType: host.AuthMutualCHAP, ChapSecret: good + "34567"}, false},
		{"unknown type", host.ConnectOptions{AuthType: 3}, false},
		{"negative type", host.ConnectOptions{AuthType: -1, ChapSecret: secretText}, false},
		{"user with newline", host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: "u\n", ChapSecret: good}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := checkChap(tc.options)
			if tc.valid != (err == nil) {
				t.Fatalf("checkChap: %v", err)
			}
			if err != nil && (!host.IsKind(err, host.KindInvalid) || strings.Contains(err.Error(), secretText)) {
				t.Errorf("checkChap: %v", err)
			}
		})
	}
}

func TestCheckFormat(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		options host.FormatOptions
		want    string // "" when refused
	}{
		{host.FormatOptions{}, "NTFS"},
		{host.FormatOptions{FileSystem: "ntfs", ClusterBytes: 4096, Label: strings.Repeat("l", 32)}, "NTFS"},
		{host.FormatOptions{FileSystem: "REFS", ClusterBytes: 65536}, "ReFS"},
		{host.FormatOptions{FileSystem: "exfat"}, "exFAT"},
		{host.FormatOptions{FileSystem: "fat32"}, "FAT32"},
		{host.FormatOptions{FileSystem: "ext4"}, ""},
		{host.FormatOptions{FileSystem: "NTFS", ClusterBytes: 3000}, ""},
		{host.FormatOptions{FileSystem: "NTFS", ClusterBytes: 256}, ""},
		{host.FormatOptions{FileSystem: "ReFS", ClusterBytes: 512}, ""},
		{host.FormatOptions{Label: strings.Repeat("l", 33)}, ""},
		{host.FormatOptions{FileSystem: "FAT32", Label: strings.Repeat("l", 12)}, ""},
		{host.FormatOptions{Label: "a\x00"}, ""},
	} {
		got, err := checkFormat(tc.options)
		if tc.want == "" {
			if !host.IsKind(err, host.KindInvalid) {
				t.Errorf("checkFormat(%+v) = %v, want KindInvalid", tc.options, err)
			}
		} else if err != nil || got.FileSystem != tc.want {
			t.Errorf("checkFormat(%+v) = %+v, %v", tc.options, got, err)
		}
	}
}
