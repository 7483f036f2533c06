package host

import (
	"strings"
	"testing"
)

func TestPrintableText(t *testing.T) {
	long := strings.Repeat("é", PrintableTextMax)
	for text, want := range map[string]string{
		"":              "",
		`C:\a b\ü`:      `C:\a b\ü`,
		"a\nlevel=INFO": `"a\nlevel=INFO"`,
		"a\x00b":        `"a\x00b"`,
		"\xff":          `"\xff"`,
		"a\u202eb":      `"a\u202eb"`,
		long:            strings.Repeat("é", PrintableTextMax/2) + "…",
		"a" + long:      "a" + strings.Repeat("é", PrintableTextMax/2-1) + "…", // not cut within a rune
	} {
		if got := PrintableText(text); got != want {
			t.Errorf("%.20q: %q, want %q", text, got, want)
		}
	}
}

func TestFoldName(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"Data", "dATA", true},
		{"é", "É", true},
		{"s", "\u017f", false}, // long s
		{"k", "\u212a", false}, // Kelvin sign
		{"a", "b", false},
	} {
		if got := FoldName(test.a) == FoldName(test.b); got != test.same {
			t.Errorf("%q and %q are one: %v", test.a, test.b, got)
		}
	}
}
