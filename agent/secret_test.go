package agent_test

import (
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// TestC098_NoSecretInErrorsAndLogs lets each call of the operating system fail in
// turn, with a text that repeats the secret of the request.
func TestC098_NoSecretInErrorsAndLogs(t *testing.T) {
	t.Parallel()
	const secret = "marker-5ecret" // fits as a password and as a CHAP secret
	portal := host.TargetPortal{Address: "10.0.0.9", Port: 3260}
	const iqn = "iqn.2000-01.com.example:t"
	for name, operation := range map[string]func(l *lab) error{
		"NewSmbGlobalMapping": func(l *lab) error {
			return l.agent.NewSmbGlobalMapping(l.ctx, `\\files\share\sub`, root+`\link`, `domain\user`, secret)
		},
		"ConnectTarget": func(l *lab) error {
			return l.agent.ConnectTarget(l.ctx, portal, iqn, host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: "user", ChapSecret: secret})
		},
		"SetMutualChapSecret": func(l *lab) error { return l.agent.SetMutualChapSecret(l.ctx, secret) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failures := 0
			for nth := 1; nth <= 8; nth++ {
				l := newLab(t)
				l.ok(l.node.SetSMBServer(l.ctx, sim.SMBServer{Name: "files"}))
				l.ok(l.agent.StartService(l.ctx, "MSiSCSI"))
				l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "*", Nth: nth, Count: -1,
					CIM: &cim.Error{Op: "Exec", HRESULT: 0x80041001, Text: "login with " + secret + " failed"}}))
				err := operation(l)
				if err != nil {
					failures++
				}
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("failure of call %d tells the caller: %v", nth, err)
				}
				if log := l.log.String(); strings.Contains(log, secret) || !strings.Contains(log, name) {
					t.Errorf("failure of call %d, want a record without the secret:\n%s", nth, log)
				}
			}
			if failures == 0 {
				t.Error("nothing failed")
			}
		})
	}
}
