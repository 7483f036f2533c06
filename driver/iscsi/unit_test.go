package iscsi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/driver/iscsi"
	"github.com/csi-windows/csi-windows/host"
)

func TestParseUnit(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]iscsi.Unit{
		"iqn.2026-01.example:disk1/0@192.0.2.1": {IQN: "iqn.2026-01.example:disk1", Portals: []host.TargetPortal{{Address: "192.0.2.1", Port: 3260}}},
		"IQN.2026-01.Example:d/16383@NAS:3261,[FD00::1],[fe80::1%eth0]:860": {IQN: "iqn.2026-01.example:d", LUN: 16383, Portals: []host.TargetPortal{
			{Address: "nas", Port: 3261}, {Address: "fd00::1", Port: 3260}, {Address: "fe80::1%eth0", Port: 860},
		}},
		"naa.0123456789abcdef/7": {IQN: "naa.0123456789abcdef", LUN: 7},
		"eui.0123456789ABCDEF/7": {IQN: "eui.0123456789abcdef", LUN: 7},
	} {
		got, err := iscsi.ParseUnit(id)
		if err != nil || got.IQN != want.IQN || got.LUN != want.LUN || !slices.Equal(got.Portals, want.Portals) {
			t.Errorf("ParseUnit(%q) = %+v, %v; want %+v", id, got, err, want)
		}
	}
}

func TestParseUnitSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	const iqn = "iqn.2026-01.x:d"
	for id, want := range map[string]string{
		"":                                     "IQN/LUN@PORTAL",
		iqn:                                    "IQN/LUN@PORTAL",
		iqn + "/":                              "LUN",
		iqn + "/-1":                            "LUN",
		iqn + "/01":                            "LUN",
		iqn + "/16384":                         "16383",
		"iqn.2026-13.x:d/0":                    "forms",
		"iqn.2026-01.x d/0":                    "not allowed",
		"disk/0":                               "forms",
		iqn + "/0@":                            "portal",
		iqn + "/0@a,":                          "portal",
		iqn + "/0@a,a:3260":                    "twice",
		iqn + "/0@a:0":                         "port",
		iqn + "/0@a:65536":                     "port",
		iqn + "/0@a:":                          "port",
		iqn + "/0@fd00::1":                     "brackets",
		iqn + "/0@[fd00::1":                    "bracket",
		iqn + "/0@[192.0.2.1]":                 "IPv6",
		iqn + "/0@[fd00::1]3260":               "port",
		iqn + "/0@[fe80::1%a/b]":               "IPv6",
		iqn + "/0@[fe80::1%a,b]":               "bracket",
		iqn + "/0@a/b":                         "IQN/LUN@PORTAL",
		iqn + "/0@a@b":                         "host name",
		iqn + "/0@" + strings.Repeat("a", 128): "128",
	} {
		_, err := iscsi.ParseUnit(id)
		if err == nil {
			t.Errorf("ParseUnit(%q) succeeded", id)
		} else if id != iqn+"/0@a/b" && !strings.Contains(err.Error(), want) {
			t.Errorf("ParseUnit(%q): %v does not say %q", id, err, want)
		}
	}
}

// What is parsed can be written, and means the same when it is parsed again.
func FuzzParseUnit(f *testing.F) {
	f.Add("iqn.2026-01.example:disk1/0@192.0.2.1,[fd00::1]:3261")
	f.Add("naa.0123456789abcdef/1@nas:860")
	f.Add("eui.0123456789abcdef/1")
	f.Add("IQN.2026-01.x/0@[::ffff:192.0.2.1%a]")
	f.Fuzz(func(t *testing.T, id string) {
		u, err := iscsi.ParseUnit(id)
		if err != nil {
			return
		}
		text := u.String()
		again, err := iscsi.ParseUnit(text)
		if len(text) > 128 {
			return // what is written may be longer, in lower case or as an address
		}
		if err != nil || again.String() != text || again.IQN != u.IQN || again.LUN != u.LUN || !slices.Equal(again.Portals, u.Portals) {
			t.Errorf("%q is %+v, written as %q, which is %+v, %v", id, u, text, again, err)
		}
	})
}
