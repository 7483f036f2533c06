package winos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

func TestParseLocation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want host.DiskLocation
		ok   bool
	}{
		{"Integrated : Adapter 3 : Port 0 : Target 0 : LUN 1", host.DiskLocation{Adapter: "3", Bus: "0", Target: "0", LUNID: "1"}, true},
		{"Integrated : Bus 5 : Device 23 : Function 1 : Adapter 0 : Port 2 : Target 4 : LUN 6", host.DiskLocation{Adapter: "0", Bus: "2", Target: "4", LUNID: "6"}, true},
		{"PCI Slot 9 : Adapter 0 : Channel 1 : Device 2", host.DiskLocation{Adapter: "0", Bus: "1", Target: "2"}, true},
		{"PCI Slot 3 : Adapter 0 : Port 0 : Target 1 : LUN 10", host.DiskLocation{Adapter: "0", Bus: "0", Target: "1", LUNID: "10"}, true},
		{"  integrated:ADAPTER 1:target 2:lun 3 ", host.DiskLocation{Adapter: "1", Target: "2", LUNID: "3"}, true},
		{"", host.DiskLocation{}, false},
		{`C:\ProgramData\disk : LUN x.vhdx`, host.DiskLocation{}, false},
		{`D:\images\a.vhdx`, host.DiskLocation{}, false},
		{"PCIROOT(0)#PCI(0100)#SCSI(P00T01L01)", host.DiskLocation{}, false},
		{"Integrated : Adapter 1 : Port 0", host.DiskLocation{Adapter: "1", Bus: "0"}, false},
	} {
		if got, ok := parseLocation(tt.text); got != tt.want || ok != tt.ok {
			t.Errorf("parseLocation(%q) = %+v, %v; want %+v, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzParseLocation(f *testing.F) {
	f.Add("Integrated : Adapter 3 : Port 0 : Target 0 : LUN 1")
	f.Add(`C:\x.vhdx`)
	f.Fuzz(func(t *testing.T, text string) {
		location, _ := parseLocation(text)
		for _, part := range []string{location.Adapter, location.Bus, location.Target, location.LUNID} {
			if strings.Trim(part, "0123456789") != "" {
				t.Errorf("%q is no number", part)
			}
		}
	})
}

func TestC013_LargestSize(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	reserved := agent.Partition{OffsetBytes: 17408, SizeBytes: 16759808}
	data := extent{offsetBytes: 16 * mib, lengthBytes: gib}
	for _, tt := range []struct {
		name       string
		diskBytes  int64
		style      host.PartitionStyle
		partitions []agent.Partition
		want       int64
	}{
		{"GPT leaves its backup table free", 10 * gib, host.StyleGPT, []agent.Partition{reserved}, 10*gib - 17*mib},
		{"GPT on an odd size", 10*gib + 512, host.StyleGPT, nil, 10*gib - 17*mib},
		{"MBR goes to the end", 10 * gib, host.StyleMBR, nil, 10*gib - 16*mib},
		{"MBR ends at 2 TiB", 4096 * gib, host.StyleMBR, nil, 2048*gib - 16*mib},
		{"the next partition ends it", 10 * gib, host.StyleGPT, []agent.Partition{reserved, {OffsetBytes: 3 * gib, SizeBytes: gib}}, 3*gib - 16*mib},
		{"never less than it is", gib, host.StyleGPT, nil, gib},
	} {
		if got := largestSize(tt.diskBytes, tt.style, tt.partitions, data); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestC039_Credential(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ user, password, want string }{
		{"u", "p", "u:p"},
		{`d\u`, "p", `d\\u:p`},
		{"a:b", "p", `a\:b:p`},
		{"u", `$x'"\` + "`,;%: é ", `u:$x'"\` + "`,;%: é "},
		{"u", strings.Repeat("p", 127), "u:" + strings.Repeat("p", 127)},
	} {
		if got := smbCredential(tt.user, tt.password); got != tt.want {
			t.Errorf("credential of %q = %q, want %q", tt.user, got, tt.want)
		}
	}
}

func TestC055_ServiceStatus(t *testing.T) {
	t.Parallel()
	for state := range uint32(8) {
		if got := serviceStatus(state); got != host.ServiceStatus(state) {
			t.Errorf("state %d = %d", state, got)
		}
	}
	for _, state := range []uint32{8, 99, 1<<32 - 1} {
		if got := serviceStatus(state); got != host.ServiceUnknown {
			t.Errorf("state %d = %d, want unknown", state, got)
		}
	}
}

func TestC023_ExtendedPath(t *testing.T) {
	t.Parallel()
	for _, tt := range [][2]string{
		{`C:\a`, `\\?\C:\a`}, {`\\srv\sh\a`, `\\?\UNC\srv\sh\a`},
		{`\\?\C:\a`, `\\?\C:\a`}, {`\\?\UNC\srv\sh`, `\\?\UNC\srv\sh`},
	} {
		if got := extendedPath(tt[0]); got != tt[1] {
			t.Errorf("extendedPath(%s) = %s, want %s", tt[0], got, tt[1])
		}
	}
	for _, tt := range [][2]string{
		{`\\?\C:\a`, `C:\a`}, {`\\?\UNC\srv\sh`, `\\srv\sh`}, {`\\?\Volume{x}\a`, `\\?\Volume{x}\a`}, {`C:\a`, `C:\a`},
	} {
		if got := plainPath(tt[0]); got != tt[1] {
			t.Errorf("plainPath(%s) = %s, want %s", tt[0], got, tt[1])
		}
	}
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	wmi := func(hresult, system uint32) error { return &cim.Error{HRESULT: hresult, Win32: system} }
	returned := func(class string, code uint32) error { return &cim.ReturnError{Class: class, Code: code} }
	for _, tt := range []struct {
		err  error
		want host.Kind
	}{
		{errors.New("x"), host.KindInternal},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), host.KindTimeout},
		{&win32.Error{Code: win32.ErrFileNotFound}, host.KindNotFound},
		{&win32.Error{Code: 99999}, host.KindInternal},
		{wmi(cim.Failed, 1326), host.KindUnauthenticated},
		{wmi(cim.Failed, 0xEFFF0029), host.KindNotFound},
		{wmi(0xEFFF0009, 0), host.KindUnauthenticated},
		{wmi(cim.GeneralAccess, 0), host.KindDenied},
		{wmi(cim.RPCServerUnvail, 0), host.KindUnavailable},
		{wmi(cim.ServerTooBusy, 0), host.KindUnavailable},
		{wmi(cim.InvalidClass, 0), host.KindUnsupported},
		{wmi(cim.Failed, 0), host.KindInternal},
		{returned("MSFT_Disk", 41001), host.KindExists},
		{returned("MSFT_Disk", 5), host.KindInvalid},
		{returned("MSFT_SmbGlobalMapping", 5), host.KindDenied},
		{returned("MSFT_SmbGlobalMapping", 8), host.KindExhausted}, // C036
		{returned("MSFT_iSCSITarget", 0xEFFF003F), host.KindExists},
		{returned("MSFT_iSCSITarget", 0xEFFF0009), host.KindUnauthenticated}, // C050
		{returned("MSFT_Partition", 4097), host.KindInvalid},
	} {
		if got := kindOf(tt.err); got != tt.want {
			t.Errorf("kindOf(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}

// Both ways in which an SMB failure can surface end in the same kind and hint.
func TestSMBFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		code    uint32
		privacy bool
		want    host.Kind
		hint    string
	}{
		{"C040 wrong password", 1326, true, host.KindUnauthenticated, "domain"},
		{"locked account", 1909, true, host.KindUnauthenticated, "domain"},
		{"C044 no encryption", 65, true, host.KindPrecondition, "-require-privacy"},
		{"C044 privacy off", 65, false, host.KindDenied, ""},
		{"C032 other credentials", 1219, true, host.KindExists, "another user"},
		{"server unknown", 53, true, host.KindUnavailable, ""},
		{"port filtered", 121, true, host.KindUnavailable, ""},
		{"no such share", 67, true, host.KindNotFound, ""},
		{"C036 mappings have run out", 8, true, host.KindExhausted, ""},
		{"access denied", 5, true, host.KindDenied, ""},
		{"workstation service stopped", 1203, true, host.KindUnavailable, "LanmanWorkstation"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, cause := range []error{
				&cim.Error{Op: "Exec", HRESULT: cim.Failed, Win32: tt.code},
				&cim.ReturnError{Class: "MSFT_SmbGlobalMapping", Method: "Create", Code: tt.code},
				&win32.Error{Call: "GetFileAttributes", Code: tt.code},
			} {
				err := failSMB("CreateSMBMapping", `\\srv\share`, cause, tt.privacy)
				if host.KindOf(err) != tt.want || !strings.Contains(err.Error(), tt.hint) || !errors.Is(err, cause) {
					t.Errorf("%v: kind %v, want %v with %q", err, host.KindOf(err), tt.want, tt.hint)
				}
			}
		})
	}
}

func TestISCSIServiceHint(t *testing.T) {
	t.Parallel()
	err := failISCSI("Targets", "", &cim.ReturnError{Class: "MSFT_iSCSITarget", Code: 0xEFFF003E})
	if !host.IsKind(err, host.KindPrecondition) || !strings.Contains(err.Error(), "MSiSCSI") {
		t.Error(err)
	}
}

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	leak := &cim.Error{Op: "Exec", HRESULT: cim.Failed, Win32: 87, Text: "bad credential u:hunter2hunter2"}
	got := withoutSecrets(fmt.Errorf("x: %w", leak), "hunter2hunter2")
	if strings.Contains(got.Error(), "hunter2") || kindOf(got) != host.KindInvalid {
		t.Errorf("got %v", got)
	}
	if got := withoutSecrets(leak, ""); got != error(leak) {
		t.Errorf("an empty secret changed %v", got)
	}
}

func TestVolumeHealth(t *testing.T) {
	t.Parallel()
	number := func(n uint16) *uint16 { return &n }
	for _, tt := range []struct {
		row    volumeRow
		want   host.VolumeHealth
		detail string
	}{
		{volumeRow{}, host.HealthUnknown, ""},
		{volumeRow{Health: number(0), Status: []uint16{0}}, host.HealthOK, ""},
		{volumeRow{Health: number(0), Status: []uint16{2}}, host.HealthOK, ""},
		{volumeRow{Health: number(1), Status: []uint16{0xD00D}}, host.HealthWarning, "Scan Needed"},
		{volumeRow{Health: number(0), Status: []uint16{0xD00E}}, host.HealthWarning, "Spot Fix Needed"},
		{volumeRow{Health: number(2), Status: []uint16{0xD00F}}, host.HealthBad, "Full Repair Needed"},
		{volumeRow{Health: number(77)}, host.HealthUnknown, ""},
	} {
		if got, detail := tt.row.health(); got != tt.want || detail != tt.detail {
			t.Errorf("%+v: %v %q, want %v %q", tt.row, got, detail, tt.want, tt.detail)
		}
	}
}

func TestC020_VolumeIDAmongAccessPaths(t *testing.T) {
	t.Parallel()
	const id = `\\?\Volume{cf468ffa-ae17-4139-a575-717547d4df09}\`
	for _, tt := range []struct {
		paths []string
		want  string
	}{
		{nil, ""},
		{[]string{`S:\`, id}, id},
		{[]string{"\x00:\\", ` :\`, "", id}, id},
		{[]string{strings.TrimSuffix(id, `\`)}, id},
		{[]string{`C:\mnt\`}, ""},
	} {
		if got := (partitionRow{AccessPaths: tt.paths}).volumeID(); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.paths, got, tt.want)
		}
	}
}
