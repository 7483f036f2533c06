package wql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/csi-windows/csi-windows/sim/wql"
)

var ignorePrivate = cmpopts.IgnoreUnexported(wql.Query{})

func TestParse(t *testing.T) {
	t.Parallel()
	const diskID = `{1}\\HOST\root/Microsoft/Windows/Storage/Providers_v2\WSP_Disk.ObjectId="{g}:DI:\\?\scsi#disk#{53f5}"`
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(diskID)
	for query, want := range map[string]wql.Query{
		`SELECT * FROM MSFT_Disk`:                  {Kind: wql.Select, Class: "MSFT_Disk"},
		"  select\tNumber , __PATH\r\nfrom C_1  ":  {Kind: wql.Select, Class: "C_1", Columns: []string{"Number", "__PATH"}},
		`SELECT*FROM MSFT_Disk WHERE Number=3`:     {Kind: wql.Select, Class: "MSFT_Disk"},
		`SELECT a FROM b WHERE NOT(x IS NULL)`:     {Kind: wql.Select, Class: "b", Columns: []string{"a"}},
		`SELECT a FROM b WHERE "x" = c AND -1 < d`: {Kind: wql.Select, Class: "b", Columns: []string{"a"}},
		`ASSOCIATORS OF {MSFT_Disk.ObjectId="` + escaped + `"} WHERE AssocClass = MSFT_DiskToPartition`: {
			Kind: wql.Associators, AssocClass: "MSFT_DiskToPartition",
			Source: wql.Path{Class: "MSFT_Disk", Keys: map[string]string{"ObjectId": diskID}},
		},
		`associators of {A.k="}"}`: {Kind: wql.Associators, Source: wql.Path{Class: "A", Keys: map[string]string{"k": "}"}}},
		`ASSOCIATORS OF {A.k=1} WHERE RESULTROLE=d Role=c ResultClass=b assocclass=a`: {
			Kind: wql.Associators, AssocClass: "a", ResultClass: "b", Role: "c", ResultRole: "d",
			Source: wql.Path{Class: "A", Keys: map[string]string{"k": "1"}},
		},
	} {
		got, err := wql.Parse(query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
		} else if diff := cmp.Diff(want, got, ignorePrivate); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]wql.ErrorKind{
		``:                                                     wql.InvalidQuery,
		`SELECT`:                                               wql.InvalidQuery,
		`SELECT FROM c`:                                        wql.InvalidQuery,
		`SELECT a b FROM c`:                                    wql.InvalidQuery,
		`SELECT a, FROM c`:                                     wql.InvalidQuery,
		`SELECT *, a FROM c`:                                   wql.InvalidQuery,
		`SELECT * FROM c;`:                                     wql.InvalidQuery,
		`SELECT * FROM c d`:                                    wql.InvalidQuery,
		`SELECT * FROM 'c'`:                                    wql.InvalidQuery,
		`SELECT * FROM c WHERE`:                                wql.InvalidQuery,
		`SELECT * FROM c WHERE a`:                              wql.InvalidQuery,
		`SELECT * FROM c WHERE a = b`:                          wql.InvalidQuery,
		`SELECT * FROM c WHERE a = 1 AND`:                      wql.InvalidQuery,
		`SELECT * FROM c WHERE a = 1 b = 2`:                    wql.InvalidQuery,
		`SELECT * FROM c WHERE (a = 1`:                         wql.InvalidQuery,
		`SELECT * FROM c WHERE a = 1)`:                         wql.InvalidQuery,
		`SELECT * FROM c WHERE a == 1`:                         wql.InvalidQuery,
		`SELECT * FROM c WHERE a = NULL`:                       wql.InvalidQuery, // IS NULL is meant
		`SELECT * FROM c WHERE a >= NULL`:                      wql.InvalidQuery, // printed as invalid in the documentation
		`SELECT * FROM c WHERE a IS 5`:                         wql.InvalidQuery, // likewise
		`SELECT * FROM c WHERE a IS NOT "NTFS"`:                wql.InvalidQuery, // likewise
		`SELECT * FROM c WHERE p < (4 + 7 - 2)`:                wql.InvalidQuery, // likewise
		`SELECT * FROM c WHERE a LIKE 5`:                       wql.InvalidQuery,
		`SELECT * FROM c WHERE a NOT LIKE 'b'`:                 wql.InvalidQuery,
		`SELECT * FROM c WHERE a ISA 'b'`:                      wql.InvalidQuery,
		`SELECT * FROM c WHERE NOT = 1`:                        wql.InvalidQuery,
		`SELECT * FROM c WHERE a.b = 1`:                        wql.InvalidQuery,
		`SELECT * FROM c WHERE a = 1.5`:                        wql.InvalidQuery,
		`SELECT * FROM c WHERE a = 0x10`:                       wql.InvalidQuery,
		`SELECT * FROM c WHERE a = 1e3`:                        wql.InvalidQuery,
		`SELECT * FROM c WHERE a = 18446744073709551616`:       wql.InvalidQuery,
		`SELECT * FROM c WHERE a = 'it''s'`:                    wql.InvalidQuery, // a doubled quote is no escape
		`SELECT * FROM c WHERE a = "x""y"`:                     wql.InvalidQuery,
		`SELECT * FROM c WHERE a = 'C:\dir'`:                   wql.InvalidQuery, // an unescaped backslash
		`SELECT * FROM c WHERE a = 'x\`:                        wql.InvalidQuery,
		`SELECT * FROM c WHERE a = 'x`:                         wql.InvalidQuery,
		`SELECT * FROM c WHERE a = 'x' OR 1 = 1`:               wql.InvalidQuery, // two constants
		`REFERENCES OF {a.b=1}`:                                wql.InvalidQuery,
		`ASSOCIATORS {a.b=1}`:                                  wql.InvalidQuery,
		`ASSOCIATORS OF a.b=1`:                                 wql.InvalidQuery,
		`ASSOCIATORS OF {a.b=1`:                                wql.InvalidPath,
		`ASSOCIATORS OF { a.b=1}`:                              wql.InvalidPath, // blanks in the braces
		`ASSOCIATORS OF {a.b = 1}`:                             wql.InvalidPath,
		`ASSOCIATORS OF {a.b="\x"}`:                            wql.InvalidPath,
		`ASSOCIATORS OF {}`:                                    wql.InvalidPath,
		`ASSOCIATORS OF {a.b=1} WHERE`:                         wql.InvalidQuery,
		`ASSOCIATORS OF {a.b=1} WHERE Role=x AND ResultRole=y`: wql.InvalidQuery,
		`ASSOCIATORS OF {a.b=1} WHERE Role=x, ResultRole=y`:    wql.InvalidQuery,
		`ASSOCIATORS OF {a.b=1} WHERE Role=x Role=y`:           wql.InvalidQuery,
		`ASSOCIATORS OF {a.b=1} WHERE Role<>x`:                 wql.InvalidQuery,
		`ASSOCIATORS OF {a.b=1} WHERE Role="x"`:                wql.InvalidQuery,
		`ASSOCIATORS OF {a.b=1} WHERE ClassDefsOnly`:           wql.InvalidQuery,
		"SELECT * FROM c WHERE a = '" + strings.Repeat("x", wql.MaxBytes) + "'":                                        wql.QuotaViolation,
		"SELECT * FROM c WHERE a = 1" + strings.Repeat(" OR a = 1", wql.MaxConditions):                                 wql.QuotaViolation,
		"SELECT * FROM c WHERE " + strings.Repeat("(", wql.MaxNesting+1) + "a=1":                                       wql.QuotaViolation,
		"SELECT * FROM c WHERE " + strings.Repeat("NOT ", wql.MaxNesting+1) + "a=1":                                    wql.QuotaViolation,
		"SELECT * FROM c WHERE " + strings.Repeat("NOT (", wql.MaxNesting) + "a=1" + strings.Repeat(")", 2000):         wql.QuotaViolation,
		"SELECT * FROM c WHERE " + strings.Repeat("(", wql.MaxNesting) + "a=1" + strings.Repeat(")", wql.MaxNesting+1): wql.InvalidQuery,
	} {
		_, err := wql.Parse(query)
		var e *wql.Error
		if !errors.As(err, &e) || e.Kind != want {
			t.Errorf("%.120s: error %v, want kind %d", query, err, want)
		}
	}
}

func TestLimitsAreReachable(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"SELECT * FROM c WHERE a = 1" + strings.Repeat(" OR a = 1", wql.MaxConditions-1),
		"SELECT * FROM c WHERE " + strings.Repeat("(", wql.MaxNesting) + "a=1" + strings.Repeat(")", wql.MaxNesting),
	} {
		q, err := wql.Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := q.Match(func(string) (any, bool) { return 1, true }); !ok || err != nil {
			t.Errorf("match: %v, %v", ok, err)
		}
	}
}

func TestErrorsNameThePlaceAndNoLiteral(t *testing.T) {
	t.Parallel()
	_, err := wql.Parse(`SELECT * FROM c WHERE a = 'topsecret' !`)
	var e *wql.Error
	if !errors.As(err, &e) || e.Offset != 38 {
		t.Errorf("error %v", err)
	}
	if strings.Contains(err.Error(), "topsecret") {
		t.Errorf("error quotes a literal: %v", err)
	}
}
