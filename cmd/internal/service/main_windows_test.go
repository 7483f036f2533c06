package service_test

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/windows/svc"
)

// asService makes the test binary a service: it runs until it is stopped, ends with
// exit code 5 or hangs in its start when it is asked to.
const asService = "-as-service"

func TestMain(m *testing.M) {
	if slices.Contains(os.Args, asService) {
		_ = svc.Run("", testService{})
		return
	}
	os.Exit(m.Run())
}

type testService struct{}

func (testService) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	status <- svc.Status{State: svc.StartPending}
	if slices.Contains(os.Args, "-fail") {
		return true, 5
	}
	if slices.Contains(os.Args, "-hang") {
		for range requests { // none comes while it starts
		}
	}
	status <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop}
	for request := range requests {
		if request.Cmd == svc.Stop {
			break
		}
	}
	return false, 0
}
