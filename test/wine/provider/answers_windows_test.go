package provider

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-ole/go-ole"

	"github.com/csi-windows/csi-windows/test/wine/standin"
	"github.com/csi-windows/csi-windows/winos/cim"
)

const selectAll = "SELECT * FROM Lab_Thing"

// All rows arrive, whether the last ones come with "there are no more" or that
// comes alone.
func TestRowsInBatches(t *testing.T) {
	for _, count := range []int{0, 1, 15, 16, 17, 32, 33, 1000} {
		all := make([]body, count)
		for i := range all {
			all[i] = object(class, "", number("Number", cim.TypeUint32, uint64(i)))
		}
		got, err := play(t, script{query: rows(all...)}).Query(t.Context(), space, selectAll)
		if err != nil || len(got) != count {
			t.Errorf("%d rows of %d, %v", len(got), count, err)
		}
		for i, row := range got {
			if row.Props["Number"] != uint32(i) {
				t.Errorf("row %d of %d is %+v", i, count, row)
			}
		}
	}
}

// A provider that thinks for longer than one step of the enumeration waits.
func TestSlowRows(t *testing.T) {
	session := play(t, script{query: func(string) (body, error) {
		time.Sleep(700 * time.Millisecond)
		return body{}.list(object(class, "")), nil
	}})
	if got, err := session.Query(t.Context(), space, selectAll); err != nil || len(got) != 1 {
		t.Errorf("%d rows, %v", len(got), err)
	}
}

// A wrong type is an error that names class and property, never a wrong value.
func TestMistypedProperty(t *testing.T) {
	type row struct {
		Number uint32 `cim:"P"`
	}
	table := cim.NewTable[row](space, class)
	raw := func(vt ole.VT) cim.Type { return 0x1000 | cim.Type(vt) }
	const u32, u64, unknown = cim.TypeUint32, cim.TypeUint64, cim.Type(999)
	for name, b := range map[string]body{
		"text":            mistyped("P", u32, cim.TypeString, body{}.text("absurd")),
		"no decimal":      mistyped("P", u64, cim.TypeString, body{}.text("absurd")),
		"too large":       mistyped("P", u64, cim.TypeString, body{}.text("18446744073709551616")),
		"no signed":       mistyped("P", cim.TypeSint64, cim.TypeString, body{}.text("-")),
		"bool":            mistyped("P", u32, cim.TypeBoolean, body{}.u64(1)),
		"real":            mistyped("P", u32, cim.TypeReal64, body{}.f64(1)),
		"object":          mistyped("P", u32, cim.TypeObject, object("X", "")),
		"array":           mistyped("P", u32, u32|cim.TypeArray, body{}.list(bits(1)...)),
		"array of texts":  mistyped("P", u32|cim.TypeArray, cim.TypeString|cim.TypeArray, body{}.list(texts("x")...)),
		"undecimal array": mistyped("P", u64|cim.TypeArray, cim.TypeString|cim.TypeArray, body{}.list(texts("x")...)),
		"unknown type":    mistyped("P", unknown, u32, body{}.u64(1)),
		"unknown array":   mistyped("P", unknown|cim.TypeArray, u32|cim.TypeArray, body{}.list(bits(1)...)),
		"number as text":  mistyped("P", cim.TypeString, u32, body{}.u64(1)),
		"date":            mistyped("P", u32, raw(ole.VT_DATE), body{}.u64(1)),
		"error code":      mistyped("P", u32, raw(ole.VT_ERROR), body{}.u64(1)),
	} {
		session := play(t, script{query: rows(object(class, "", b))})
		got, err := table.Rows(t.Context(), session)
		if err == nil || !strings.Contains(err.Error(), class) || !strings.Contains(err.Error(), "P:") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// Forms of numbers that WMI is not documented to use are understood all the same.
func TestUnusualForms(t *testing.T) {
	for vt, v := range map[ole.VT]struct {
		bits uint64
		want uint32
	}{
		ole.VT_I1: {127, 127}, ole.VT_UI1: {255, 255}, ole.VT_I2: {32767, 32767}, ole.VT_UI2: {65535, 65535},
		ole.VT_UI4: {1 << 31, 1 << 31}, ole.VT_I8: {7, 7}, ole.VT_UI8: {7, 7},
	} {
		raw := 0x1000 | cim.Type(vt)
		session := play(t, script{query: rows(object(class, "", mistyped("P", cim.TypeUint32, raw, body{}.u64(v.bits)),
			mistyped("S", cim.TypeSint64, raw, body{}.u64(v.bits)), mistyped("U", cim.TypeUint64, raw, body{}.u64(v.bits)),
			mistyped("None", cim.TypeObject, 0x1000|cim.Type(ole.VT_UNKNOWN), body{}.u64(0))))})
		got, err := session.Query(t.Context(), space, selectAll)
		if err != nil || len(got) != 1 || got[0].Props["P"] != v.want || got[0].Props["None"] != nil {
			t.Fatalf("VARIANT type %d: %+v, %v", vt, got, err)
		}
		signed, unsigned := got[0].Props["S"], got[0].Props["U"]
		if signed != int64(v.want) || unsigned != uint64(v.want) {
			t.Errorf("VARIANT type %d as 64 bits: %v, %v", vt, signed, unsigned)
		}
	}
}

// A provider that does not say what the method returned has not said that it
// succeeded.
func TestNoReturnValue(t *testing.T) {
	const u32 = cim.TypeUint32
	for name, exec := range map[string]func(string, string, []byte) (body, error){
		"no out-parameters": func(string, string, []byte) (body, error) { return body{}.u8(0), nil },
		"not among them":    out(number("Other", u32, 0)),
		"NULL":              out(null("ReturnValue", u32)),
		"a text":            out(text("ReturnValue", "0")),
		"too large":         out(number("ReturnValue", cim.TypeUint64, 1<<32)),
		"negative":          out(number("ReturnValue", cim.TypeSint32, signed(-1))),
	} {
		result, err := play(t, script{class: classWith("Do"), exec: exec}).Exec(t.Context(), space, class, "Do", nil)
		failure(t, err, cim.ProviderFailure, "Lab_Thing.Do", "no ")
		if result.Out != nil || result.ReturnValue != 0 {
			t.Errorf("%s: %+v", name, result)
		}
	}
	exec := out(number("ReturnValue", u32, 0), mistyped("Size", cim.TypeUint64, cim.TypeString, body{}.text("absurd")))
	_, err := play(t, script{class: classWith("Do"), exec: exec}).Exec(t.Context(), space, class, "Do", nil)
	failure(t, err, cim.TypeMismatch, "Lab_Thing.Do", "Size")
}

// The return value, and what the provider says beside it, are in the error.
func TestReturnValueAndExtendedStatus(t *testing.T) {
	status := object("MSFT_StorageExtendedStatus", "", number("CIMStatusCode", cim.TypeUint32, 1), text("Message", "not\nso fast"))
	exec := out(number("ReturnValue", cim.TypeUint32, 40001), value("ExtendedStatus", cim.TypeObject, status), text("More", "x"))
	session := play(t, script{class: classWith("Do"), exec: exec})
	values, err := cim.Call(t.Context(), session, space, class, class, "Do", nil)
	var returned *cim.ReturnError
	if !errors.As(err, &returned) || returned.Error() != "Lab_Thing.Do returned 40001: not so fast" || values["More"] != "x" {
		t.Errorf("%+v, %v", values, err)
	}
}

// The HRESULT, the Windows error and the text of the error object are in the error.
func TestExtendedError(t *testing.T) {
	for _, s := range []status{
		{hresult: cim.Failed, win32: 1326, text: "Der Benutzername ist falsch."},
		{hresult: cim.Failed, win32: 5},
		{hresult: 0x80041088, text: "took too long"},
		{hresult: 0xEFFF0029},
	} {
		session := play(t, script{
			class: classWith("Do"),
			query: func(string) (body, error) { return nil, s },
			exec:  func(string, string, []byte) (body, error) { return nil, s },
		})
		check := func(err error, object string) {
			t.Helper()
			var e *cim.Error
			if !errors.As(err, &e) || *e != (cim.Error{Op: e.Op, Object: object, HRESULT: s.hresult, Win32: s.win32, Text: s.text}) {
				t.Errorf("error %+v, want %+v of %s", err, s, object)
			}
		}
		_, err := session.Exec(t.Context(), space, class, "Do", nil)
		check(err, "Lab_Thing.Do")
		_, err = session.Query(t.Context(), space, selectAll)
		check(err, class)
		_, err = session.Query(t.Context(), space, `ASSOCIATORS OF {Lab_Other.K="1"} WHERE AssocClass = Lab_Link ResultClass = Lab_Thing`)
		check(err, class)
	}
}

// A class is asked for once, and again when the provider was lost.
func TestSignatureIsKept(t *testing.T) {
	lose := false
	session := play(t, script{class: classWith("Do", parameter("N", cim.TypeUint32)), exec: func(string, string, []byte) (body, error) {
		if lose {
			lose = false
			return nil, errGone
		}
		return body{}.u8(1).list(number("ReturnValue", cim.TypeUint32, 0)), nil
	}})
	do := func() error {
		_, err := session.Exec(t.Context(), space, class, "do", cim.Values{"n": uint32(1)})
		return err
	}
	const calls = 10
	for range calls {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	workers := session.(cim.Counting).Stats().Workers
	if n := asked(standin.OpClass); n > workers || asked(standin.OpExec) != calls {
		t.Errorf("%d calls by %d workers asked %d times for the class", calls, workers, n)
	}
	before := asked(standin.OpClass)
	lose = true
	failure(t, do(), cim.RPCDisconnected, "Lab_Thing.do", "")
	for range calls {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	if n := asked(standin.OpClass); n == before {
		t.Error("the class of the lost provider is used")
	}
}

// A failure to connect names the namespace, for a query and for a method.
func TestUnknownNamespace(t *testing.T) {
	const none = `root\no\such\namespace`
	session := play(t, script{})
	_, err := session.Query(t.Context(), none, selectAll)
	failure(t, err, cim.InvalidNamespace, none, "")
	_, err = session.Exec(t.Context(), none, class, "Do", nil)
	failure(t, err, cim.InvalidNamespace, none, "")
}

// Texts reach the provider as they were meant, whatever characters are in them.
func TestEscaping(t *testing.T) {
	type row struct {
		Path string `cim:"__RELPATH"`
		K    string `cim:"K"`
	}
	hostile := `'; DROP \ "x" OR 1=1 é%_[`
	var asked string
	session := play(t, script{class: classWith("Do"),
		query: func(wql string) (body, error) { asked = wql; return body{}.list(), nil },
		exec: func(path, method string, _ []byte) (body, error) {
			return body{}.u8(1).list(number("ReturnValue", cim.TypeUint32, 0), text("Path", path), text("Method", method)), nil
		}})
	if _, err := cim.NewTable[row](space, class, "K").Rows(t.Context(), session, cim.Equal("K", hostile)); err != nil {
		t.Fatal(err)
	}
	if want := `SELECT K FROM Lab_Thing WHERE K = '\'; DROP \\ "x" OR 1=1 é%_['`; asked != want {
		t.Errorf("query %s, want %s", asked, want)
	}
	path, err := cim.ObjectPath(class, "K", hostile)
	if err != nil {
		t.Fatal(err)
	}
	result, err := session.Exec(t.Context(), space, path, "Do", nil)
	if want := `Lab_Thing.K="'; DROP \\ \"x\" OR 1=1 é%_["`; err != nil || result.Out["Path"] != want {
		t.Errorf("path %v, want %s, %v", result.Out["Path"], want, err)
	}
}

// Truncated and bloated answers are failures of the provider.
func TestDamagedAnswers(t *testing.T) {
	good, _ := out(number("ReturnValue", cim.TypeUint32, 0), text("Text", "x"))("", "", nil)
	row := object(class, "", number("Number", cim.TypeUint32, 1), value("Texts", cim.TypeString|cim.TypeArray, body{}.list(texts("x")...)))
	whole := body{}.list(row)
	for cut := range len(whole) {
		_, err := play(t, script{query: func(string) (body, error) { return whole[:cut], nil }}).Query(t.Context(), space, selectAll)
		failure(t, err, cim.ProviderFailure, class, "cannot be read")
	}
	definition, _ := classWith("Do", parameter("N", cim.TypeUint32))(class)
	for _, cut := range []int{0, 3, 7, len(definition) - 1} {
		_, err := play(t, script{class: func(string) (body, error) { return definition[:cut], nil }}).Exec(t.Context(), space, class, "Do", nil)
		failure(t, err, cim.ProviderFailure, "Lab_Thing.Do", "cannot be read")
	}
	for cut := range len(good) {
		exec := func(string, string, []byte) (body, error) { return good[:cut], nil }
		_, err := play(t, script{class: classWith("Do"), exec: exec}).Exec(t.Context(), space, class, "Do", nil)
		failure(t, err, cim.ProviderFailure, "Lab_Thing.Do", "cannot be read")
	}
	absurd := body{}.u32(1 << 31)
	_, err := play(t, script{query: func(string) (body, error) { return absurd, nil }}).Query(t.Context(), space, selectAll)
	failure(t, err, cim.ProviderFailure, class, "cannot be read")
}
