package service

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf16"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

// Windows is the service control manager of this machine. Every call opens what it
// needs, with the rights it needs: whoever may only look may still look.
type Windows struct{}

var _ Manager = Windows{}

// with opens a service with some rights for one piece of work.
func with(name string, access uint32, work func(*mgr.Service) error) error {
	return withManager(windows.SC_MANAGER_CONNECT, func(manager *mgr.Mgr) error {
		name16, err := windows.UTF16PtrFromString(name)
		if err != nil {
			return err
		}
		handle, err := windows.OpenService(manager.Handle, name16, access)
		if err != nil {
			return worded("open the service "+name, err)
		}
		service := &mgr.Service{Name: name, Handle: handle}
		return errors.Join(work(service), service.Close())
	})
}

// withManager opens the manager for one piece of work.
func withManager(access uint32, work func(*mgr.Mgr) error) error {
	handle, err := windows.OpenSCManager(nil, nil, access)
	if err != nil {
		return worded("open the service control manager", err)
	}
	manager := &mgr.Mgr{Handle: handle}
	return errors.Join(work(manager), manager.Disconnect())
}

// worded says what failed, and what would help where that is known.
func worded(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, windows.ERROR_ACCESS_DENIED):
		return fmt.Errorf("%s: %w", what, ErrDenied)
	case errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST):
		return fmt.Errorf("%s: %w", what, ErrNotInstalled)
	case errors.Is(err, windows.ERROR_SERVICE_MARKED_FOR_DELETE):
		return fmt.Errorf("%s: it is being removed; close whatever has it open, such as a list of services, and try again: %w", what, err)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

// Lookup implements Manager. A process that has ended without the manager having
// noticed is a stopped service.
func (Windows) Lookup(name string) (registration Registration, status Status, err error) {
	err = with(name, windows.SERVICE_QUERY_CONFIG|windows.SERVICE_QUERY_STATUS, func(service *mgr.Service) error {
		if registration, err = registrationOf(service); err != nil {
			return worded("query the registration", err)
		}
		now, err := service.Query()
		if err != nil {
			return worded("query the status", err)
		}
		status = Status{State: stateOf(now.State), PID: now.ProcessId, ExitCode: now.Win32ExitCode, ServiceExitCode: now.ServiceSpecificExitCode}
		if status.PID != 0 && hasEnded(status.PID) {
			status.State, status.PID = Stopped, 0
		}
		return nil
	})
	return registration, status, err
}

func stateOf(state svc.State) State {
	switch state {
	case svc.Stopped:
		return Stopped
	case svc.StartPending:
		return Starting
	case svc.Running:
		return Running
	case svc.StopPending:
		return Stopping
	default:
		return Other
	}
}

// hasEnded reports whether a process is known to have ended.
//
// Source: OpenProcess: an id that no process has is an invalid parameter.
func hasEnded(pid uint32) bool {
	process, err := windows.OpenProcess(windows.SYNCHRONIZE, false, pid)
	if err != nil {
		return errors.Is(err, windows.ERROR_INVALID_PARAMETER)
	}
	defer func() { _ = windows.CloseHandle(process) }()
	event, err := windows.WaitForSingleObject(process, 0)
	return err == nil && event == windows.WAIT_OBJECT_0
}

// configBytes is the most that a registration takes.
//
// Source: QueryServiceConfigW, cbBufSize.
const configBytes = 8 << 10

// registrationOf reads a registration. mgr.Service.Config would ask for settings
// that older managers do not know, and fail.
func registrationOf(service *mgr.Service) (Registration, error) {
	buffer := make([]uint64, configBytes/8) // of words, for the alignment of the struct
	config := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&buffer[0]))
	var needed uint32
	if err := windows.QueryServiceConfig(service.Handle, config, configBytes, &needed); err != nil {
		return Registration{}, err
	}
	parts, err := windows.DecomposeCommandLine(windows.UTF16PtrToString(config.BinaryPathName))
	if err != nil {
		return Registration{}, err
	}
	r := Registration{
		DisplayName: windows.UTF16PtrToString(config.DisplayName),
		Account:     windows.UTF16PtrToString(config.ServiceStartName),
		StartType:   startTypeOf(config.StartType, isDelayed(service)),
	}
	if len(parts) > 0 {
		r.Program, r.Args = parts[0], parts[1:]
	}
	return r, nil
}

func startTypeOf(startType uint32, delayed bool) string {
	switch {
	case startType == windows.SERVICE_AUTO_START && delayed:
		return "delayed"
	case startType == windows.SERVICE_AUTO_START:
		return "automatic"
	case startType == windows.SERVICE_DEMAND_START:
		return "manual"
	case startType == windows.SERVICE_DISABLED:
		return "disabled"
	default:
		return fmt.Sprintf("start type %d", startType)
	}
}

// isDelayed is false on a manager that does not know the setting.
func isDelayed(service *mgr.Service) bool {
	var info windows.SERVICE_DELAYED_AUTO_START_INFO
	var needed uint32
	err := windows.QueryServiceConfig2(service.Handle, windows.SERVICE_CONFIG_DELAYED_AUTO_START_INFO,
		(*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), &needed)
	return err == nil && info.IsDelayedAutoStartUp != 0
}

// Create implements Manager. It passes no setting that mgr would have to make after
// the service is there: for one that is refused, it would delete the service again.
func (Windows) Create(d Definition) error {
	return withManager(windows.SC_MANAGER_CONNECT|windows.SC_MANAGER_CREATE_SERVICE, func(manager *mgr.Mgr) error {
		service, err := manager.CreateService(d.Name, d.Program, mgr.Config{
			StartType: mgr.StartAutomatic, ErrorControl: mgr.ErrorNormal, DisplayName: d.DisplayName,
		}, d.Args...)
		if err != nil {
			return worded("create the service "+d.Name, err)
		}
		return service.Close()
	})
}

// Change implements Manager.
func (Windows) Change(d Definition) error {
	return with(d.Name, windows.SERVICE_CHANGE_CONFIG, func(service *mgr.Service) error {
		commandLine, err := windows.UTF16PtrFromString(windows.ComposeCommandLine(append([]string{d.Program}, d.Args...)))
		if err != nil {
			return err
		}
		displayName, err := windows.UTF16PtrFromString(d.DisplayName)
		if err != nil {
			return err
		}
		return worded("change the service "+d.Name, windows.ChangeServiceConfig(service.Handle, windows.SERVICE_NO_CHANGE,
			windows.SERVICE_AUTO_START, windows.SERVICE_NO_CHANGE, commandLine, nil, nil, nil, nil, nil, displayName))
	})
}

// Refine implements Manager. Restarting after a failure takes the right to start.
//
// Source: ChangeServiceConfig2W, dwInfoLevel.
func (Windows) Refine(d Definition) (refused []string, err error) {
	err = with(d.Name, windows.SERVICE_CHANGE_CONFIG|windows.SERVICE_START, func(service *mgr.Service) error {
		for _, setting := range settings(service, d) {
			err := setting.set()
			if errors.Is(err, windows.ERROR_INVALID_LEVEL) {
				refused = append(refused, setting.name)
			} else if err != nil {
				return worded("set "+setting.name+" of the service "+d.Name, err)
			}
		}
		return nil
	})
	return refused, err
}

// setting is one call that sets a part of what a service has.
type setting struct {
	name string
	set  func() error
}

func settings(service *mgr.Service, d Definition) []setting {
	return []setting{
		{"description", func() error {
			text, err := windows.UTF16PtrFromString(d.Description)
			if err != nil {
				return err
			}
			return change2(service, windows.SERVICE_CONFIG_DESCRIPTION, &windows.SERVICE_DESCRIPTION{Description: text})
		}},
		{"delayed start", func() error {
			return change2(service, windows.SERVICE_CONFIG_DELAYED_AUTO_START_INFO, &windows.SERVICE_DELAYED_AUTO_START_INFO{IsDelayedAutoStartUp: 1})
		}},
		{"restart after failures", func() error {
			var actions []mgr.RecoveryAction
			for _, delay := range d.RestartDelays {
				actions = append(actions, mgr.RecoveryAction{Type: mgr.ServiceRestart, Delay: delay})
			}
			return service.SetRecoveryActions(actions, uint32(d.ResetTime/time.Second))
		}},
		// A start that fails in one of its stages is no crash, and is tried again too.
		{"restart after an exit code", func() error { return service.SetRecoveryActionsOnNonCrashFailures(true) }},
		{"privileges", func() error {
			return change2(service, windows.SERVICE_CONFIG_REQUIRED_PRIVILEGES_INFO, &requiredPrivileges{multiString(d.Privileges)})
		}},
		{"time to stop before a shutdown", func() error {
			milliseconds := uint32(d.PreshutdownTime / time.Millisecond)
			return change2(service, windows.SERVICE_CONFIG_PRESHUTDOWN_INFO, &milliseconds)
		}},
	}
}

// requiredPrivileges is the list of privileges a service keeps.
//
// Source: SERVICE_REQUIRED_PRIVILEGES_INFOW.
type requiredPrivileges struct{ list *uint16 }

// multiString is a list of texts as Windows takes it: a zero after each, one more
// at the end. Names of privileges hold none.
func multiString(texts []string) *uint16 {
	var units []uint16
	for _, text := range texts {
		units = append(append(units, utf16.Encode([]rune(text))...), 0)
	}
	units = append(units, 0)
	return &units[0]
}

// change2 sets one setting.
func change2[T any](service *mgr.Service, level uint32, info *T) error {
	return windows.ChangeServiceConfig2(service.Handle, level, (*byte)(unsafe.Pointer(info)))
}

// Start implements Manager.
func (Windows) Start(name string) error {
	return with(name, windows.SERVICE_START, func(service *mgr.Service) error {
		err := service.Start()
		if errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING) {
			return nil
		}
		return worded("start the service "+name, err)
	})
}

// Stop implements Manager. A service may end, or crash, before it can be asked.
func (w Windows) Stop(name string) error {
	err := with(name, windows.SERVICE_STOP, func(service *mgr.Service) error {
		_, err := service.Control(svc.Stop)
		return worded("stop the service "+name, err)
	})
	if err == nil {
		return nil
	}
	if _, status, lookupErr := w.Lookup(name); lookupErr == nil && (status.State == Stopped || status.State == Stopping) {
		return nil
	}
	return err
}

// Delete implements Manager.
func (Windows) Delete(name string) error {
	return with(name, windows.DELETE, func(service *mgr.Service) error {
		return worded("delete the service "+name, service.Delete())
	})
}

// The registry of event sources, and the file with the texts of the events.
//
// Source: Event Sources, "EventMessageFile"; eventcreate command.
const (
	eventSources = `SYSTEM\CurrentControlSet\Services\EventLog\Application`
	eventTexts   = `%SystemRoot%\System32\EventCreate.exe`
)

// AddEventSource implements Manager.
func (Windows) AddEventSource(source string) error {
	key, _, err := registry.CreateKey(registry.LOCAL_MACHINE, eventSources+`\`+source, registry.SET_VALUE)
	if err != nil {
		return worded("register the event source "+source, err)
	}
	const levels = windows.EVENTLOG_ERROR_TYPE | windows.EVENTLOG_WARNING_TYPE | windows.EVENTLOG_INFORMATION_TYPE
	err = errors.Join(
		key.SetDWordValue("CustomSource", 1), // makes EventCreate's texts usable for it
		key.SetExpandStringValue("EventMessageFile", eventTexts),
		key.SetDWordValue("TypesSupported", levels),
		key.Close(),
	)
	return worded("register the event source "+source, err)
}

// RemoveEventSource implements Manager.
func (Windows) RemoveEventSource(source string) error {
	err := registry.DeleteKey(registry.LOCAL_MACHINE, eventSources+`\`+source)
	if errors.Is(err, registry.ErrNotExist) {
		return nil
	}
	return worded("remove the event source "+source, err)
}
