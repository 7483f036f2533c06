package conformance

import (
	"context"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

func systemCases() []Case {
	return []Case{
		{"system/bios", GroupSystem, nil, systemBIOS},
		{"system/service", GroupSystem, nil, systemService},
		{"system/service-absent", GroupSystem, nil, systemServiceAbsent},
		{"system/service-start-stop", GroupSystem, nil, systemServiceStartStop},
	}
}

// The machine has one serial number.
func systemBIOS(ctx context.Context, s *scene) {
	first, err := s.host.GetBIOSSerialNumber(ctx)
	s.must(err, "GetBIOSSerialNumber")
	second, err := s.host.GetBIOSSerialNumber(ctx)
	s.must(err, "GetBIOSSerialNumber")
	if first != second || s.env.BIOSSerial != "" && first != s.env.BIOSSerial {
		s.Errorf("GetBIOSSerialNumber = %q and %q; want %q", first, second, s.env.BIOSSerial)
	}
	if first == "" {
		s.Notef("the machine has no serial number")
	}
}

// A service that every Windows Server has is described, however it is spelled.
func systemService(ctx context.Context, s *scene) {
	info, err := s.host.GetService(ctx, initiatorService)
	s.must(err, "GetService")
	if info.DisplayName == "" || info.StartType < host.StartBoot || info.StartType > host.StartDisabled || info.Status < host.ServiceStopped || info.Status > host.ServicePaused {
		s.Errorf("GetService = %+v", info)
	}
	if again, err := s.host.GetService(ctx, strings.ToLower(initiatorService)); err != nil || again.DisplayName != info.DisplayName {
		s.Errorf("GetService in lower case = %+v, %v; want %+v", again, err, info)
	}
}

// A service that is not there is not found, and what is no name is invalid.
func systemServiceAbsent(ctx context.Context, s *scene) {
	calls := map[string]func(name string) error{
		"GetService":   func(name string) error { _, err := s.host.GetService(ctx, name); return err },
		"StartService": func(name string) error { return s.host.StartService(ctx, name) },
		"StopService":  func(name string) error { return s.host.StopService(ctx, name, false) },
	}
	for name, call := range calls {
		s.fails(call(s.run), name+" of a service that is not there", host.KindNotFound)
		for _, bad := range []string{"", `a\b`, "a/b", s.run + "\x01", s.run + strings.Repeat("x", 256)} {
			s.fails(call(bad), name+" "+bad, host.KindInvalid)
		}
	}
}

// A stopped service is started and stopped, once each however often it is asked.
func systemServiceStartStop(ctx context.Context, s *scene) {
	before, err := s.host.GetService(ctx, initiatorService)
	s.must(err, "GetService")
	switch {
	case before.Status == host.ServiceRunning:
		s.must(s.host.StartService(ctx, initiatorService), "StartService of a running service")
		s.Notef("%s runs, so it was not stopped", initiatorService)
		return
	case before.Status != host.ServiceStopped:
		s.Notef("%s is on its way between states, so it was left alone", initiatorService)
		return
	case before.StartType == host.StartDisabled:
		s.fails(s.host.StartService(ctx, initiatorService), "StartService of a disabled service", host.KindPrecondition)
		s.Notef("%s is disabled, so it was not started", initiatorService)
		return
	}
	s.later(func(ctx context.Context) error { return s.host.StopService(ctx, initiatorService, false) })
	for range 2 {
		s.must(s.host.StartService(ctx, initiatorService), "StartService")
		s.inState(ctx, host.ServiceRunning)
	}
	for range 2 {
		s.must(s.host.StopService(ctx, initiatorService, false), "StopService")
		s.inState(ctx, host.ServiceStopped)
	}
}

// inState makes the case fail unless the initiator's service is in a state.
func (s *scene) inState(ctx context.Context, want host.ServiceStatus) {
	info, err := s.host.GetService(ctx, initiatorService)
	if err != nil || info.Status != want {
		s.Errorf("GetService = %+v, %v; want status %d", info, err, want)
	}
}
