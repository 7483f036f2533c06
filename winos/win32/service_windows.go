package win32

import (
	"context"
	"errors"
	"unsafe"

	"golang.org/x/sys/windows"
)

// withService opens a service with the rights that one question or request
// needs, and closes it again. Source: OpenSCManagerW, OpenServiceW.
func withService(ctx context.Context, name string, access uint32, use func(windows.Handle) error) error {
	const call = "OpenService"
	if err := ctx.Err(); err != nil {
		return err
	}
	service, err := wide(call, name)
	if err != nil {
		return err
	}
	manager, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	if err != nil {
		return failure("OpenSCManager", "", err)
	}
	defer func() { _ = windows.CloseServiceHandle(manager) }()
	h, err := windows.OpenService(manager, service, access)
	if err != nil {
		return failure(call, name, err)
	}
	defer func() { _ = windows.CloseServiceHandle(h) }()
	return use(h)
}

// QueryService implements API.
func (system) QueryService(ctx context.Context, name string) (config ServiceConfig, status ServiceStatus, err error) {
	const access = windows.SERVICE_QUERY_CONFIG | windows.SERVICE_QUERY_STATUS
	err = withService(ctx, name, access, func(h windows.Handle) error {
		if config, err = serviceConfig(h); err != nil {
			return failure("QueryServiceConfig", name, err)
		}
		var now windows.SERVICE_STATUS
		if err := windows.QueryServiceStatus(h, &now); err != nil {
			return failure("QueryServiceStatus", name, err)
		}
		status = ServiceStatus{State: now.CurrentState, Win32ExitCode: now.Win32ExitCode}
		return nil
	})
	return config, status, err
}

func serviceConfig(h windows.Handle) (ServiceConfig, error) {
	size := uint32(1024)
	for {
		words := make([]uint64, size/8+1) // the structure holds pointers
		config := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&words[0]))
		err := windows.QueryServiceConfig(h, config, uint32(len(words)*8), &size)
		if errors.Is(err, windows.ERROR_INSUFFICIENT_BUFFER) && int(size) > len(words)*8 {
			continue
		}
		if err != nil {
			return ServiceConfig{}, err
		}
		return ServiceConfig{DisplayName: windows.UTF16PtrToString(config.DisplayName), StartType: config.StartType}, nil
	}
}

// StartService implements API.
func (system) StartService(ctx context.Context, name string) error {
	return withService(ctx, name, windows.SERVICE_START, func(h windows.Handle) error {
		return failure("StartService", name, windows.StartService(h, 0, nil))
	})
}

// StopService implements API.
func (system) StopService(ctx context.Context, name string) error {
	return withService(ctx, name, windows.SERVICE_STOP, func(h windows.Handle) error {
		var status windows.SERVICE_STATUS
		return failure("ControlService", name, windows.ControlService(h, windows.SERVICE_CONTROL_STOP, &status))
	})
}

// RunningDependents implements API.
func (system) RunningDependents(ctx context.Context, name string) (names []string, err error) {
	err = withService(ctx, name, windows.SERVICE_ENUMERATE_DEPENDENTS, func(h windows.Handle) error {
		names, err = dependents(h)
		return failure("EnumDependentServices", name, err)
	})
	return names, err
}

func dependents(h windows.Handle) ([]string, error) {
	const entryBytes = uint32(unsafe.Sizeof(windows.ENUM_SERVICE_STATUS{}))
	entries := make([]windows.ENUM_SERVICE_STATUS, 16)
	for {
		var needed, count uint32
		err := windows.EnumDependentServices(h, windows.SERVICE_ACTIVE, &entries[0], uint32(len(entries))*entryBytes, &needed, &count)
		if errors.Is(err, windows.ERROR_MORE_DATA) {
			entries = make([]windows.ENUM_SERVICE_STATUS, needed/entryBytes+1)
			continue
		}
		if err != nil {
			return nil, err
		}
		names := make([]string, count)
		for i := range names {
			names[i] = windows.UTF16PtrToString(entries[i].ServiceName)
		}
		return names, nil
	}
}
