package node

import (
	"testing"

	"github.com/csi-windows/csi-windows/host"
)

func TestC034_OneKeyForAShare(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		`\\srv\share\pvc-1\x`:   `\\srv\share`,
		`\\SRV\Share\`:          `\\srv\share`,
		`//srv/share/a//b`:      `\\srv\share`,
		`\\srv@SSL\share\x`:     `\\srv@ssl\share`,
		`\\192.0.2.1\share`:     `\\192.0.2.1\share`,
		`\\srv.example\Daten ü`: `\\srv.example\daten ü`,
	} {
		s, err := parseShare("field", path)
		if err != nil || s.key() != want {
			t.Errorf("the key of %s is %s, %v; want %s", path, s.key(), err, want)
		}
	}
	for _, path := range []string{
		`\\srv`, `\\srv\`, `\\`, ``, `\\\share`, `C:\share`, `srv\share`, `\srv\share`,
		`\\srv\share\..\other`, `\\srv\share\.`, `\\?\UNC\srv\share`, `\\.\pipe\x`, `\\srv\sha:re`, `\\srv\share\a*`, "\\\\srv\\share\\a\nb",
	} {
		if s, err := parseShare("field", path); !host.IsKind(err, host.KindInvalid) {
			t.Errorf("%q is taken for %s, %v", path, s, err)
		}
	}
	// The Kelvin sign is no k, whatever a case table says.
	a, _ := parseShare("field", `\\srv\k`)
	b, _ := parseShare("field", "\\\\srv\\\u212a")
	if a.key() == b.key() || a.isSame(b) {
		t.Errorf("%s and %s are one", a, b)
	}
}

func TestC034_PathsAreOneWithoutRegardToSpelling(t *testing.T) {
	t.Parallel()
	a, _ := parseShare("field", `\\srv\share\A\b`)
	for path, want := range map[string]bool{`//SRV/share//a/B/`: true, `\\srv\share\A`: false, `\\srv\share\A\b\c`: false} {
		if b, err := parseShare("field", path); err != nil || a.isSame(b) != want {
			t.Errorf("%s is the same as %s: %v, %v", path, a, !want, err)
		}
	}
	if got := a.String(); got != `\\srv\share\A\b` {
		t.Errorf("the path is %s", got)
	}
	if got := a.shareRoot(); got != `\\srv\share` {
		t.Errorf("the share is %s", got)
	}
}

func TestC040_UserNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ user, domain, want string }{
		{"u", "", "u"},
		{"u", "d", `d\u`},
		{`d\u`, "", `d\u`},
		{`d\u`, "D", `d\u`},
		{"u@d.tld", "", "u@d.tld"},
		{"u@d.tld", "d.tld", "u@d.tld"},
		{"", "", ""},
	} {
		if got, err := smbUser(c.user, c.domain); err != nil || got != c.want {
			t.Errorf("user %q domain %q: %q, %v; want %q", c.user, c.domain, got, err, c.want)
		}
	}
	for _, c := range []struct{ user, domain string }{
		{`d\u`, "e"}, {"u@d.tld", "e"}, {"", "d"}, {"u", `d\`}, {"u", "a@b"},
	} {
		if got, err := smbUser(c.user, c.domain); !host.IsKind(err, host.KindInvalid) {
			t.Errorf("user %q domain %q: %q, %v", c.user, c.domain, got, err)
		}
	}
}
