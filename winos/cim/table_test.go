package cim

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// fakeSession answers with what a test put in, and keeps what it was asked.
type fakeSession struct {
	rows    []Instance
	result  Result
	errs    []error // one for each call, then none
	queries []string
	calls   int
}

func (f *fakeSession) next() error {
	f.calls++
	if len(f.errs) == 0 {
		return nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return err
}

func (f *fakeSession) Query(_ context.Context, _, wql string) ([]Instance, error) {
	f.queries = append(f.queries, wql)
	if err := f.next(); err != nil {
		return nil, err
	}
	return f.rows, nil
}

func (f *fakeSession) Exec(context.Context, string, string, string, Values) (Result, error) {
	if err := f.next(); err != nil {
		return Result{}, err
	}
	return f.result, nil
}

func (*fakeSession) Close() error { return nil }

type row struct {
	Path   string   `cim:"__RELPATH"`
	Number uint32   `cim:"Number"`
	Name   string   `cim:"FriendlyName"`
	Health *uint16  `cim:"HealthStatus"`
	Status []uint16 `cim:"OperationalStatus"`
}

func TestTableSelects(t *testing.T) {
	t.Parallel()
	const columns = "SELECT ObjectId, Number, FriendlyName, HealthStatus, OperationalStatus FROM MSFT_Disk"
	keyed := NewTable[row](NamespaceStorage, "MSFT_Disk", "ObjectId")
	s := &fakeSession{}
	if _, err := keyed.Rows(t.Context(), s, Equal("Number", uint32(1))); err != nil {
		t.Fatal(err)
	}
	if _, err := NewTable[row](NamespaceStorage, "MSFT_Disk").Rows(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := keyed.Associated(t.Context(), s, `A.B="c"`, "AToB"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		columns + " WHERE Number = 1", "SELECT * FROM MSFT_Disk",
		`ASSOCIATORS OF {A.B="c"} WHERE AssocClass = AToB ResultClass = MSFT_Disk`,
	}
	if !reflect.DeepEqual(s.queries, want) {
		t.Errorf("queries = %q, want %q", s.queries, want)
	}
}

func TestTableDecodes(t *testing.T) {
	t.Parallel()
	table := NewTable[row](NamespaceStorage, "MSFT_Disk", "ObjectId")
	s := &fakeSession{rows: []Instance{
		{Path: "p1", Props: Values{"number": uint32(7), "FRIENDLYNAME": "x", "HealthStatus": uint16(0), "OperationalStatus": []uint16{2}}},
		{Path: "p2", Props: Values{"Number": uint32(8), "FriendlyName": nil, "HealthStatus": nil}},
	}}
	got, err := table.Rows(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	zero := uint16(0)
	want := []row{
		{Path: "p1", Number: 7, Name: "x", Health: &zero, Status: []uint16{2}},
		{Path: "p2", Number: 8}, // nothing of the row before it survives
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("rows = %+v, want %+v", got, want)
	}
}

func TestDecodeMismatch(t *testing.T) {
	t.Parallel()
	table := NewTable[row](NamespaceStorage, "MSFT_Disk")
	for name, value := range map[string]any{
		"Number": "7", "FriendlyName": uint32(1), "HealthStatus": uint32(1 << 20), "OperationalStatus": uint16(2),
		"number": int32(-1), "friendlyname": []string{"a"}, "healthstatus": 1.5, "operationalstatus": []string{"x"},
	} {
		_, err := table.Decode(Instance{Props: Values{name: value}})
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "msft_disk."+strings.ToLower(name)) {
			t.Errorf("%s = %v: error %v does not name class and property", name, value, err)
		}
	}
}

func TestNewTableRefusesBadFields(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a field that cannot be set was bound")
		}
	}()
	NewTable[struct {
		hidden string `cim:"Name"`
	}]("ns", "C")
}

func TestUint64(t *testing.T) {
	t.Parallel()
	values := Values{"A": uint64(1) << 63, "B": nil, "C": "1", "D": int32(-1)}
	if n, ok := Uint64(values, "a"); !ok || n != 1<<63 {
		t.Errorf("A = %d, %v", n, ok)
	}
	for _, name := range []string{"B", "C", "D", "E"} {
		if n, ok := Uint64(values, name); ok {
			t.Errorf("%s = %d, want no number", name, n)
		}
	}
}

func TestCall(t *testing.T) {
	t.Parallel()
	s := &fakeSession{result: Result{ReturnValue: 42002, Out: Values{"X": "y"}}}
	out, err := Call(t.Context(), s, NamespaceStorage, "MSFT_Disk", "p", "CreatePartition", nil)
	var returned *ReturnError
	if !errors.As(err, &returned) || returned.Code != 42002 || out["X"] != "y" {
		t.Errorf("Call = %v, %v", out, err)
	}
	returned.Name = "access path in use"
	if got := returned.Error(); got != "MSFT_Disk.CreatePartition returned 42002 (access path in use)" {
		t.Error(got)
	}
	if got := (&ReturnError{Class: "C", Method: "M", Code: 0xEFFF0029}).Error(); got != "C.M returned 0xEFFF0029" {
		t.Error(got)
	}
}
