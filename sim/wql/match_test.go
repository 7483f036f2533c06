package wql_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sim/wql"
)

// object has a property of every kind, and none of any other name.
func object(property string) (any, bool) {
	v, ok := map[string]any{
		"Name": `C:\Ünïcode "x" it's`, "FS": "NTFS", "Empty": "", "Gone": nil,
		"U8": uint8(8), "U16": uint16(16), "U32": uint32(math.MaxUint32), "U64": uint64(math.MaxUint64), "U": uint(1),
		"I8": int8(-8), "I16": int16(-16), "I32": int32(-32), "I64": int64(math.MinInt64), "I": 0,
		"F32": float32(1.5), "F64": -2.5, "Yes": true, "No": false, "Letter": wql.Char16('S'), "NoLetter": wql.Char16(0),
		"Array": []uint16{1}, "Object": struct{}{},
	}[property]
	return v, ok
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string]bool{
		`FS = 'ntfs'`: true, `FS = "NtFs"`: true, `FS <> 'ntfs'`: false, `FS != 'x'`: true, `FS = 'NTF'`: false,
		`FS > 'NTF'`: true, `FS < 'o'`: true, `FS >= 'ntfs'`: true, `FS <= 'NTFR'`: false, `'NTF' < FS`: true, `'NTF' >= FS`: false,
		`Name = "c:\\üNÏCODE \"X\" IT\'S"`: true, `Name = 'C:\\Ünïcode \"x\" it\'s'`: true,
		`Empty = ''`: true, `Empty < 'a'`: true,

		`U8 = 8`: true, `U16 > 15`: true, `U32 = 4294967295`: true, `U64 = 18446744073709551615`: true, `U = +1`: true,
		`U64 > -1`: true, `U64 < -1`: false, `I8 = -8`: true, `I16 < -15`: true, `I32 > -33`: true, `I = 0`: true, `I = -0`: true,
		`I64 = -9223372036854775808`: true, `I64 > -9223372036854775809`: true, `-8 = I8`: true, `0 > I8`: true, `I8 < -9`: false,
		`F32 > 1`: true, `F32 < 2`: true, `F64 < -2`: true, `F64 = -2`: false,
		`U8 = '8'`: true, `U8 = '9'`: false, // a number in quotes

		`Yes = TRUE`: true, `Yes = 1`: true, `Yes <> FALSE`: true, `No = false`: true, `No != 1`: true, `Yes = 'True'`: true,
		`No = "FALSE"`: true, `TRUE = Yes`: true,
		`Letter = 's'`: true, `Letter = 83`: true, `Letter <> 'T'`: true, `NoLetter = 0`: true,

		`Gone IS NULL`: true, `Gone IS NOT NULL`: false, `FS IS NOT NULL`: true, `Empty IS NULL`: false, `Array IS NOT NULL`: true,
		`Gone = 'x'`: false, `Gone <> 'x'`: false, `NOT Gone = 'x'`: false, `NOT Gone <> 'x'`: false, `Gone LIKE '%'`: false,
		`Gone = 1 OR U8 = 8`: true, `U8 = 8 OR Gone = 1`: true, `Gone = 1 OR U8 = 9`: false,
		`NOT (Gone = 1 AND U8 = 9)`: true, `NOT (U8 = 9 AND Gone = 1)`: true, `NOT (Gone = 1 AND U8 = 8)`: false,

		`U8 = 8 AND U16 = 16`: true, `U8 = 8 AND U16 = 0`: false, `NOT U8 = 9`: true, `NOT NOT U8 = 8`: true,
		`U8 = 8 OR U8 = 0 AND U16 = 0`: true, `(U8 = 8 OR U8 = 0) AND U16 = 0`: false, `NOT U8 = 9 AND U16 = 0`: false,
		`u8 = 8 or 1 = U16`: true,
	} {
		if strings.HasPrefix(condition, "u8") {
			condition = "U" + condition[1:] // object's names have a case, WQL's keywords do not
		}
		q, err := wql.Parse("SELECT * FROM c WHERE " + condition)
		if err != nil {
			t.Errorf("%s: %v", condition, err)
			continue
		}
		if got, err := q.Match(object); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", condition, got, err, want)
		}
	}
}

func TestMatchRefuses(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string]wql.ErrorKind{
		`Nothing = 1`:             wql.UnknownProperty,
		`Nothing IS NULL`:         wql.UnknownProperty,
		`FS = 'x' OR Nothing = 1`: wql.UnknownProperty,
		`NOT Nothing = 1`:         wql.UnknownProperty,
		`Array = 1`:               wql.TypeMismatch,
		`Array LIKE '1'`:          wql.TypeMismatch,
		`Object = 'x'`:            wql.TypeMismatch,
		`FS = 5`:                  wql.TypeMismatch,
		`FS = TRUE`:               wql.TypeMismatch,
		`U8 = 'eight'`:            wql.TypeMismatch,
		`U8 = ''`:                 wql.TypeMismatch,
		`U8 = TRUE`:               wql.TypeMismatch,
		`U8 LIKE '8'`:             wql.TypeMismatch,
		`F64 = TRUE`:              wql.TypeMismatch,
		`Yes = 2`:                 wql.TypeMismatch,
		`Yes = -1`:                wql.TypeMismatch,
		`Yes = 'maybe'`:           wql.TypeMismatch,
		`Yes <= TRUE`:             wql.TypeMismatch, // printed as invalid in the documentation
		`Yes >= 0`:                wql.TypeMismatch, // likewise
		`Letter = 'SS'`:           wql.TypeMismatch,
		`Letter = TRUE`:           wql.TypeMismatch,
	} {
		q, err := wql.Parse("SELECT * FROM c WHERE " + condition)
		if err != nil {
			t.Errorf("%s: %v", condition, err)
			continue
		}
		ok, err := q.Match(object)
		var e *wql.Error
		if ok || !errors.As(err, &e) || e.Kind != want {
			t.Errorf("%s: %v, %v; want kind %d", condition, ok, err, want)
		}
	}
}

func TestMatchWithoutWhere(t *testing.T) {
	t.Parallel()
	q, err := wql.Parse("SELECT * FROM c")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := q.Match(func(string) (any, bool) { return nil, false }); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestLike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "", false}, {"%", "", true}, {"%%", "x", true}, {"_", "", false},
		{"win%", "Windows", true}, {"%WIN%", "a windows b", true}, {"%dows", "windows", true}, {"w%n%s", "windows", true},
		{"w%x%s", "windows", false}, {"_indows", "windows", true}, {"indows", "windows", false}, {"windows_", "windows", false},
		{"[wx]in", "win", true}, {"[^wx]in", "win", false}, {"[^ab]in", "win", true}, {"[a-f]", "C", true}, {"[a=f]", "g", false},
		{"[a=f]", "c", true}, {"[a-]", "-", true}, {"[-a]", "-", true}, {"%[_][_]%", "a__b", true}, {"%[_]%", "ab", false},
		{"[%]", "%", true}, {"[%]", "x", false}, {"a[b", "a[b", true}, {"[]", "[]", true},
		{"ü_ï", "ÜxÏ", true}, {"_", "ü", true}, {"[à-ü]", "Ö", true}, {`\\?\%`, `\\?\Volume{1}\`, true},
		{"%aab", "aaaab", true}, {"a%a%a%b", "aaaaaaaaaa", false},
	} {
		literal := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(c.pattern)
		q, err := wql.Parse("SELECT * FROM c WHERE p LIKE '" + literal + "'")
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		if got, err := q.Match(func(string) (any, bool) { return c.text, true }); err != nil || got != c.want {
			t.Errorf("%q LIKE %q: %v, %v", c.text, c.pattern, got, err)
		}
	}
}

func TestLikeDoesNotExplode(t *testing.T) {
	t.Parallel()
	q, err := wql.Parse("SELECT * FROM c WHERE p LIKE '" + strings.Repeat("%a", 200) + "b'")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", 2000) // a backtracking matcher would not live to see the end
	if got, err := q.Match(func(string) (any, bool) { return text, true }); got || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
