package cim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// The tests of this file talk to the WMI service of the machine. They use only
// classes that every Windows has, and Wine too, and run one after the other:
// Wine 8 does not bear two at a time.

func newSession(t *testing.T) Session {
	t.Helper()
	s, err := Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestComQuery(t *testing.T) {
	s := newSession(t)
	type logicalDisk struct {
		Path     string  `cim:"__RELPATH"`
		DeviceID string  `cim:"DeviceID"`
		Type     uint32  `cim:"DriveType"`
		Size     *uint64 `cim:"Size"`
	}
	// Without keys everything is selected: Wine gives a row of chosen columns no path.
	table := NewTable[logicalDisk](NamespaceCIMV2, "Win32_LogicalDisk")
	rows, err := table.Rows(t.Context(), s, Equal("DeviceID", "C:"))
	if err != nil {
		t.Fatal(err)
	}
	const fixed = 3
	if len(rows) != 1 || rows[0].DeviceID != "C:" || rows[0].Type != fixed || rows[0].Size == nil || *rows[0].Size == 0 {
		t.Errorf("rows = %+v", rows)
	}
	if want := `Win32_LogicalDisk.DeviceID="C:"`; !strings.EqualFold(rows[0].Path, want) {
		t.Errorf("path = %s, want %s", rows[0].Path, want)
	}
	all, err := s.Query(t.Context(), NamespaceCIMV2, "SELECT * FROM Win32_OperatingSystem")
	if err != nil || len(all) != 1 || all[0].Class != "Win32_OperatingSystem" {
		t.Fatalf("operating systems = %+v, %v", all, err)
	}
	if _, ok := Lookup(all[0].Props, "Primary").(bool); !ok {
		t.Errorf("Primary is %T", Lookup(all[0].Props, "Primary"))
	}
}

func TestComFailures(t *testing.T) {
	s := newSession(t)
	for _, tt := range []struct{ namespace, wql string }{
		{NamespaceCIMV2, "SELECT nonsense"},
		{`root\no\such\namespace`, "SELECT * FROM Win32_BIOS"},
	} {
		_, err := s.Query(t.Context(), tt.namespace, tt.wql)
		var failure *Error
		if !errors.As(err, &failure) || failure.HRESULT == 0 {
			t.Errorf("%s in %s: error %v", tt.wql, tt.namespace, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Query(ctx, NamespaceCIMV2, "SELECT * FROM Win32_BIOS"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after the end of the context", err)
	}
}

const localMachine = uint32(0x80000002)

func TestComExec(t *testing.T) {
	s := newSession(t)
	result, err := s.Exec(t.Context(), NamespaceCIMV2, "StdRegProv", "EnumKey",
		Values{"hDefKey": localMachine, "sSubKeyName": "Software"})
	if err != nil || result.ReturnValue != 0 {
		t.Fatalf("EnumKey = %+v, %v", result, err)
	}
	names, ok := result.Out["sNames"].([]string)
	if !ok || !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, "Microsoft") }) {
		t.Errorf("names = %v", result.Out["sNames"])
	}
	in := Values{"hDefKey": localMachine, "sSubKeyName": `Software\Microsoft\Windows NT\CurrentVersion`, "sValueName": "CurrentVersion"}
	result, err = s.Exec(t.Context(), NamespaceCIMV2, "StdRegProv", "GetStringValue", in)
	if text, _ := result.Out["sValue"].(string); err != nil || text == "" {
		t.Errorf("GetStringValue = %+v, %v", result, err)
	}
	if _, ok := result.Out["ReturnValue"]; ok {
		t.Error("ReturnValue is among the out-parameters")
	}
}

func TestComExecRefusals(t *testing.T) {
	s := newSession(t)
	for name, in := range map[string]Values{
		"unknown parameter": {"NoSuch": uint32(1)},
		"wrong type":        {"sSubKeyName": uint32(1)},
	} {
		_, err := s.Exec(t.Context(), NamespaceCIMV2, "StdRegProv", "EnumKey", in)
		var failure *Error
		if !errors.As(err, &failure) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := s.Exec(t.Context(), NamespaceCIMV2, "StdRegProv", "NoSuchMethod", nil); err == nil {
		t.Error("an unknown method was called")
	}
}

// A method without in-parameters has no in-signature.
func TestComExecWithoutParameters(t *testing.T) {
	s := newSession(t)
	path, err := ObjectPath("Win32_Service", "Name", "Spooler")
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Exec(t.Context(), NamespaceCIMV2, path, "StopService", nil)
	if err != nil {
		t.Fatalf("StopService: %+v, %v", result, err)
	}
	if _, err := s.Exec(t.Context(), NamespaceCIMV2, path, "StopService", Values{"X": true}); err == nil {
		t.Error("a parameter was given to a method without any")
	}
}

func TestComClosedSession(t *testing.T) {
	s, err := Connect()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Query(t.Context(), NamespaceCIMV2, "SELECT * FROM Win32_BIOS"); !errors.Is(err, errClosed) {
		t.Errorf("error %v", err)
	}
}

func TestComManyQueries(t *testing.T) {
	s := newSession(t)
	for range 200 {
		rows, err := s.Query(t.Context(), NamespaceCIMV2, "SELECT SerialNumber FROM Win32_BIOS")
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
	}
}
