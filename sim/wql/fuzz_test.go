package wql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sim/wql"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`SELECT * FROM MSFT_Disk WHERE Number = 3`,
		`SELECT ObjectId, Size FROM MSFT_Volume WHERE UniqueId = "\\\\?\\Volume{1}\\" AND NOT (a LIKE '%[^a-c]_' OR b IS NOT NULL)`,
		`ASSOCIATORS OF {MSFT_Disk.ObjectId="a\\b\"c"} WHERE AssocClass = MSFT_DiskToPartition Role=Disk`,
		`SELECT * FROM c WHERE -1 <> a AND TRUE = b OR ((c >= "x"))`,
	} {
		f.Add(seed, "text")
	}
	f.Fuzz(func(t *testing.T, query, text string) {
		q, err := wql.Parse(query)
		if err != nil {
			checkError(t, err, len(query))
			return
		}
		for _, value := range []any{text, nil, true, uint32(7), int64(-1), wql.Char16('x'), []string{text}} {
			if ok, err := q.Match(func(string) (any, bool) { return value, true }); ok && err != nil {
				t.Errorf("a match and an error: %v", err)
			}
		}
	})
}

// FuzzLiteral checks that text which is escaped as documented is read as it
// was, whatever it holds: no text can end its literal.
func FuzzLiteral(f *testing.F) {
	for _, seed := range []string{"", `a\`, `it's`, `"`, `' OR '1' = '1`, "\x00\xff", `\\?\Volume{1}\`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > wql.MaxBytes/4 {
			return
		}
		literal := strings.NewReplacer(`\`, `\\`, `'`, `\'`, `"`, `\"`).Replace(text)
		for _, quote := range []string{"'", `"`} {
			q, err := wql.Parse("SELECT * FROM c WHERE p = " + quote + literal + quote)
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := q.Match(func(string) (any, bool) { return text, true }); !ok || err != nil {
				t.Errorf("%q does not equal itself: %v", text, err)
			}
		}
	})
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{
		`C`, `C.K="a\\b\"c"`, `C.K1="x",K2=5`, `\\host\root\cimv2:C.K='x'`, `C="x"`, `C.K=TRUE`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := wql.ParsePath(text)
		if err != nil {
			checkError(t, err, len(text))
			return
		}
		if len(p.Keys) > 1 || p.Class == "" {
			return // the order of several keys is not kept
		}
		for name, value := range p.Keys {
			if name == "" {
				name = "K"
			}
			again, err := wql.ParsePath(wql.FormatPath(p.Class, wql.Key{Name: name, Value: value}))
			if got, _ := again.Key(name); err != nil || got != value {
				t.Errorf("%q written and read again: %q, %v", value, got, err)
			}
		}
	})
}

func checkError(t *testing.T, err error, length int) {
	t.Helper()
	var e *wql.Error
	if !errors.As(err, &e) || e.Kind == 0 || e.Text == "" || e.Offset < 0 || e.Offset > length {
		t.Errorf("error %#v", err)
	}
}
