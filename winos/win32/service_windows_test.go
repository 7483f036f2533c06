package win32

import (
	"testing"

	"golang.org/x/sys/windows"
)

// What the service manager says of a handle that is no service's, but its own. Services
// themselves are in the tests of test/wine/devices.
func TestServiceHandle(t *testing.T) {
	manager, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = windows.CloseServiceHandle(manager) }()
	_, err = serviceConfig(manager)
	wantCode(t, failure("QueryServiceConfig", "", err), ErrInvalidHandle)
	_, err = dependents(manager)
	wantCode(t, failure("EnumDependentServices", "", err), ErrInvalidHandle)
}
