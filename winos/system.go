package winos

import (
	"context"
	"errors"
	"strings"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// biosRow is what is read of Win32_BIOS.
type biosRow struct {
	SerialNumber string `cim:"SerialNumber"`
}

var biosTable = cim.NewTable[biosRow](cim.NamespaceCIMV2, "Win32_BIOS")

// BIOSSerialNumber returns the serial number of the machine without surrounding
// blanks. Source: Win32_BIOS.SerialNumber.
func (o *OS) BIOSSerialNumber(ctx context.Context) (string, error) {
	rows, err := biosTable.Rows(ctx, o.session)
	if err == nil && len(rows) == 0 {
		err = errors.New("Win32_BIOS has no instance")
	}
	if err != nil {
		return "", fail("BIOSSerialNumber", "", err)
	}
	return strings.TrimSpace(rows[0].SerialNumber), nil
}

// Service describes a service. Source: QueryServiceConfigW, QueryServiceStatus.
func (o *OS) Service(ctx context.Context, name string) (host.ServiceInfo, error) {
	config, status, err := o.api.QueryService(ctx, name)
	if err != nil {
		return host.ServiceInfo{}, fail("Service", name, err)
	}
	return host.ServiceInfo{
		DisplayName: config.DisplayName,
		StartType:   startType(config.StartType),
		Status:      serviceStatus(status.State),
	}, nil
}

// startType turns a start type of Win32 into the contract's. The numbers are the
// same. There is no word for unknown, so a number that is new to us becomes the
// zero value, as csi-proxy always did.
func startType(number uint32) host.StartType {
	if number > uint32(host.StartDisabled) {
		return host.StartBoot
	}
	return host.StartType(number)
}

// serviceStatus turns a state of Win32 into the contract's. The numbers are the
// same as far as Win32 has any; a number that is new to us is unknown.
func serviceStatus(state uint32) host.ServiceStatus {
	if state > uint32(host.ServicePaused) {
		return host.ServiceUnknown
	}
	return host.ServiceStatus(state)
}

// StartService asks a service to start. Source: StartServiceW.
func (o *OS) StartService(ctx context.Context, name string) error {
	if err := o.api.StartService(ctx, name); err != nil {
		return fail("StartService", name, err)
	}
	return nil
}

// StopService asks a service to stop. Source: ControlService.
func (o *OS) StopService(ctx context.Context, name string) error {
	if err := o.api.StopService(ctx, name); err != nil {
		return fail("StopService", name, err)
	}
	return nil
}

// RunningDependents returns the running services that need this one, in the order
// in which they have to be stopped. Source: EnumDependentServicesW, which lists
// them in that order.
func (o *OS) RunningDependents(ctx context.Context, name string) ([]string, error) {
	names, err := o.api.RunningDependents(ctx, name)
	if err != nil {
		return nil, fail("RunningDependents", name, err)
	}
	return names, nil
}
