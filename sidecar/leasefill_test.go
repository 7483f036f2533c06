package sidecar_test

import (
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/csi-windows/csi-windows/sidecar"
)

// Whichever of the three times is given, the others go together with it, however
// many leases there are.
func TestOneTimeOfALeaseMayBeGivenAlone(t *testing.T) {
	t.Parallel()
	for _, given := range []time.Duration{2 * time.Second, 8 * time.Second, 15 * time.Second, 40 * time.Second, 137 * time.Second} {
		for leases := range 6 {
			for name, set := range map[string]func(*sidecar.LeaseConfig){
				"Duration":      func(c *sidecar.LeaseConfig) { c.Duration = given },
				"RenewDeadline": func(c *sidecar.LeaseConfig) { c.RenewDeadline = given },
				"RetryPeriod":   func(c *sidecar.LeaseConfig) { c.RetryPeriod = given },
			} {
				config := sidecar.LeaseConfig{Client: fake.NewSimpleClientset().CoordinationV1(), Namespace: "csi", Identity: "pod-1"}
				set(&config)
				if err := config.Check(leases); err != nil {
					t.Errorf("%s %s with %d leases: %v", name, given, leases, err)
				}
			}
		}
	}
}

func TestTimesOfALeaseThatContradictOneAnotherAreRefused(t *testing.T) {
	t.Parallel()
	config := sidecar.LeaseConfig{
		Client: fake.NewSimpleClientset().CoordinationV1(), Namespace: "csi", Identity: "pod-1",
		Duration: 10 * time.Second, RenewDeadline: 10 * time.Second,
	}
	if err := config.Check(1); err == nil {
		t.Error("a lease that lasts no longer than its renewal is tried was taken")
	}
}
