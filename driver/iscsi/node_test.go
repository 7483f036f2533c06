package iscsi_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/driver/iscsi"
	"github.com/csi-windows/csi-windows/host"
)

const (
	staticID = "iqn.2026-01.example:disk1/3@192.0.2.1,[fd00::1]:3261"
	secret   = "MARKER-secret"
)

func TestNodeSourceOfAStaticVolume(t *testing.T) {
	t.Parallel()
	source, err := iscsi.Node{}.NodeSource(t.Context(), csikit.NodeSourceRequest{
		VolumeID:      staticID,
		VolumeContext: map[string]string{iscsi.ContextPortals: "192.0.2.2, 192.0.2.1:3260"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []host.TargetPortal{{Address: "192.0.2.1", Port: 3260}, {Address: "fd00::1", Port: 3261}, {Address: "192.0.2.2", Port: 3260}}
	if s := source.ISCSI; s == nil || s.IQN != "iqn.2026-01.example:disk1" || s.LUN != 3 || !slices.Equal(s.Portals, want) || s.CHAP != (host.ConnectOptions{}) {
		t.Errorf("got %+v", source.ISCSI)
	}
}

func TestC050_CredentialsAreThoseOfTheVolume(t *testing.T) {
	t.Parallel()
	const user, password = "node.session.auth.username", "node.session.auth.password"
	for name, test := range map[string]struct {
		secrets map[string]string
		want    host.ConnectOptions
		mutual  string
		problem string
	}{
		"none":    {secrets: map[string]string{"other": "x"}},
		"one-way": {secrets: map[string]string{user: "u", password: secret}, want: host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: "u", ChapSecret: secret}},
		"mutual": {
			secrets: map[string]string{user: "u", password: secret, password + "_in": secret + "2", user + "_in": "t"},
			want:    host.ConnectOptions{AuthType: host.AuthMutualCHAP, ChapUsername: "u", ChapSecret: secret}, mutual: secret + "2",
		},
		"no password":      {secrets: map[string]string{user: "MARKER"}, problem: password},
		"no user":          {secrets: map[string]string{password: secret}, problem: user},
		"mutual alone":     {secrets: map[string]string{password + "_in": secret}, problem: password},
		"user of a mutual": {secrets: map[string]string{user: "u", password: secret, user + "_in": "MARKER"}, problem: password + "_in"},
		"too short":        {secrets: map[string]string{user: "u", password: "MARKER"}, problem: "12 to 16"},
		"mutual too short": {secrets: map[string]string{user: "u", password: secret, password + "_in": "MARKER"}, problem: password + "_in must have 12 to 16"},
		"mutual the same":  {secrets: map[string]string{user: "u", password: "MARKERMARKER", password + "_in": "MARKERMARKER"}, problem: "differ"},
		"too long":         {secrets: map[string]string{user: "u", password: secret + secret}, problem: "12 to 16"},
	} {
		source, err := iscsi.Node{}.NodeSource(t.Context(), csikit.NodeSourceRequest{VolumeID: staticID, Secrets: test.secrets})
		if test.problem != "" {
			if !errors.Is(err, csikit.ErrInvalid) || !strings.Contains(err.Error(), test.problem) || strings.Contains(err.Error(), "MARKER") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || source.ISCSI.CHAP != test.want || source.ISCSI.MutualSecret != test.mutual {
			t.Errorf("%s: %+v, %v", name, source.ISCSI, err)
		}
	}
}

func TestNodeSourceAtTheEndNeedsTheIDAlone(t *testing.T) {
	t.Parallel()
	source, err := iscsi.Node{}.NodeSource(t.Context(), csikit.NodeSourceRequest{VolumeID: staticID, Ending: true})
	if err != nil || source.ISCSI == nil || source.ISCSI.LUN != 3 || len(source.ISCSI.Portals) != 2 {
		t.Errorf("got %+v, %v", source, err)
	}
	for _, id := range []string{"iqn.2026-01.x:d/0", "nonsense"} {
		if source, err := (iscsi.Node{}).NodeSource(t.Context(), csikit.NodeSourceRequest{VolumeID: id, Ending: true}); err != nil || source.ISCSI != nil {
			t.Errorf("%s: got %+v, %v", id, source, err)
		}
	}
}

func TestNodeSourceRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		id, portals string
		want        error
	}{
		"unknown volume (C068)": {"nonsense", "", csikit.ErrNotFound},
		"no portal":             {"iqn.2026-01.x:d/0", "", csikit.ErrInvalid},
		"bad portal":            {"iqn.2026-01.x:d/0", "a b", csikit.ErrInvalid},
	} {
		_, err := iscsi.Node{}.NodeSource(t.Context(), csikit.NodeSourceRequest{VolumeID: test.id, VolumeContext: map[string]string{iscsi.ContextPortals: test.portals}})
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// C052, the option: a volume's context asks for a login that lasts, nothing else does.
func TestC052_PersistentLoginIsAskedFor(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"": false, "false": false, "true": true} {
		volumeContext := map[string]string{iscsi.Persistent: value}
		if value == "" {
			volumeContext = nil
		}
		source, err := iscsi.Node{}.NodeSource(t.Context(), csikit.NodeSourceRequest{VolumeID: staticID, VolumeContext: volumeContext})
		if err != nil || source.ISCSI.CHAP.Persistent != want {
			t.Errorf("%q: got %+v, %v", value, source.ISCSI, err)
		}
	}
	_, err := iscsi.Node{}.NodeSource(t.Context(), csikit.NodeSourceRequest{VolumeID: staticID, VolumeContext: map[string]string{iscsi.Persistent: "yes"}})
	if !errors.Is(err, csikit.ErrInvalid) || !strings.Contains(err.Error(), "volume_context[persistent]") {
		t.Errorf("a wrong value: %v", err)
	}
}
