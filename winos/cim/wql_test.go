package cim

import (
	"strings"
	"testing"
)

func TestLiteral(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"plain", "disk", `'disk'`},
		{"empty", "", `''`},
		{"volume", `\\?\Volume{a}\`, `'\\\\?\\Volume{a}\\'`},
		{"quote is escaped, not doubled", "o'x", `'o\'x'`},
		{"the other quote stands", `a"b`, `'a"b'`},
		{"injection stays a text", `' OR Number = '0`, `'\' OR Number = \'0'`},
		{"backslash before quote", `\'`, `'\\\''`},
		{"not ASCII", "é", `'é'`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Literal(tt.text)
			if err != nil || got != tt.want {
				t.Errorf("Literal(%q) = %s, %v; want %s", tt.text, got, err, tt.want)
			}
		})
	}
	for _, bad := range []string{"a\x00b", "a\nb", "\x7f", "\xff"} {
		if got, err := Literal(bad); err == nil {
			t.Errorf("Literal(%q) = %s, want an error", bad, got)
		}
	}
}

func TestObjectPath(t *testing.T) {
	t.Parallel()
	got, err := ObjectPath("MSFT_Disk", "ObjectId", `{1}\\H\root/x:WSP_Disk.ObjectId="{g}:DI:\\?\scsi#d"`)
	want := `MSFT_Disk.ObjectId="{1}\\\\H\\root/x:WSP_Disk.ObjectId=\"{g}:DI:\\\\?\\scsi#d\""`
	if err != nil || got != want {
		t.Errorf("ObjectPath = %s, %v; want %s", got, err, want)
	}
	for _, bad := range [][3]string{{"", "Key", "v"}, {"A.B", "Key", "v"}, {"A", "Key=1", "v"}, {"A", "Key", "v\x00"}} {
		if got, err := ObjectPath(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("ObjectPath(%q) = %s, want an error", bad, got)
		}
	}
}

func TestWhere(t *testing.T) {
	t.Parallel()
	got, err := where([]Condition{Equal("Number", uint32(3)), Equal("Path", `\a`), Equal("IsBoot", true), Equal("Size", uint64(1)<<63)})
	want := ` WHERE Number = 3 AND Path = '\\a' AND IsBoot = TRUE AND Size = 9223372036854775808`
	if err != nil || got != want {
		t.Errorf("where = %q, %v; want %q", got, err, want)
	}
	for _, bad := range []Condition{Equal("A B", 1), Equal("A", 1.5), Equal("A", "\x00"), Equal("1A", 1)} {
		if got, err := where([]Condition{bad}); err == nil {
			t.Errorf("where(%v) = %q, want an error", bad, got)
		}
	}
}

// FuzzLiteral proves that no text leaves its literal.
func FuzzLiteral(f *testing.F) {
	for _, seed := range []string{"", `\`, `'`, `\'`, `''`, "' OR 1=1", `\\?\Volume{x}\`, "é\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		literal, err := Literal(text)
		if err != nil {
			return
		}
		inner, ok := strings.CutPrefix(literal, "'")
		if !ok {
			t.Fatalf("%q does not begin with a quotation mark", literal)
		}
		var back strings.Builder
		for i := 0; i < len(inner); i++ {
			switch c := inner[i]; c {
			case '\\':
				i++
				back.WriteByte(inner[i])
			case '\'':
				if i != len(inner)-1 || back.String() != text {
					t.Fatalf("%q reads back as %q, rest %q", literal, back.String(), inner[i:])
				}
				return
			default:
				back.WriteByte(c)
			}
		}
		t.Fatalf("%q does not end", literal)
	})
}
