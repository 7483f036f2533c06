package wql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-windows/csi-windows/sim/wql"
)

func TestParsePath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]wql.Path{
		`MSFT_StorageSetting`:         {Class: "MSFT_StorageSetting"},
		`C.Key="a\\b\"c"`:             {Class: "C", Keys: map[string]string{"Key": `a\b"c`}},
		`C.K1='it\'s "x"',K2=-5,k=10`: {Class: "C", Keys: map[string]string{"K1": `it's "x"`, "K2": "-5", "k": "10"}},
		`C.K=TRUE`:                    {Class: "C", Keys: map[string]string{"K": "TRUE"}},
		`Win32_Service="spooler"`:     {Class: "Win32_Service", Keys: map[string]string{"": "spooler"}},
		`\\HOST\root\Microsoft\Windows\Storage:C.K="a:b"`: {
			Server: "HOST", Namespace: `root\Microsoft\Windows\Storage`, Class: "C", Keys: map[string]string{"K": "a:b"},
		},
		`//./root/cimv2:C`: {Server: ".", Namespace: `root\cimv2`, Class: "C"},
		`root\cimv2:C.K=1`: {Namespace: `root\cimv2`, Class: "C", Keys: map[string]string{"K": "1"}},
	} {
		got, err := wql.ParsePath(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestParsePathRefuses(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		``, `.K=1`, `C.`, `C.K`, `C.K=`, `C.K="x`, `C.K="x\`, `C.K="a\b"`, `C.K=x`, `C.K=1,`, `C.K=1,K=2`, `C.K=1,k=2`, `C.K=1 `, ` C`,
		`C D`, `C.K = 1`, `5C`, `C=`, `C=x`, `C.K="a""b"`, `:C`, `\\:C`, `\\HOST:C`, `\\\root:C`, `\\HOST\root\:C`, `root\\x:C`,
		`ro ot:C`, `\root:C`, `C.K=99999999999999999999`, `C.K=1-2`, `C.K=-`, `C.K="x"y`,
	} {
		_, err := wql.ParsePath(path)
		var e *wql.Error
		if !errors.As(err, &e) || e.Kind != wql.InvalidPath {
			t.Errorf("%s: error %v", path, err)
		}
	}
	_, err := wql.ParsePath(`C.K="` + strings.Repeat("x", wql.MaxBytes) + `"`)
	var e *wql.Error
	if !errors.As(err, &e) || e.Kind != wql.QuotaViolation {
		t.Errorf("long path: %v", err)
	}
}

func TestFormatPath(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		`C`:            wql.FormatPath("C"),
		`C.K="a\\\"'"`: wql.FormatPath("C", wql.Key{Name: "K", Value: `a\"'`}),
		`C.A="",B=5,D=TRUE`: wql.FormatPath("C", wql.Key{Name: "A", Value: ""},
			wql.Key{Name: "B", Value: uint32(5)}, wql.Key{Name: "D", Value: true}),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestPathKey(t *testing.T) {
	t.Parallel()
	named := wql.Path{Keys: map[string]string{"ObjectId": "x"}}
	if v, ok := named.Key("OBJECTID"); !ok || v != "x" {
		t.Errorf("by another case: %q, %v", v, ok)
	}
	if _, ok := named.Key("Other"); ok {
		t.Error("a key that is not there")
	}
	unnamed := wql.Path{Keys: map[string]string{"": "y"}}
	if v, ok := unnamed.Key("Name"); !ok || v != "y" {
		t.Errorf("unnamed: %q, %v", v, ok)
	}
}
