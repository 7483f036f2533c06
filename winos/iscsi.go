package winos

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/cim"
)

func portalObject(portal host.TargetPortal) string {
	return net.JoinHostPort(portal.Address, strconv.FormatUint(uint64(portPlain(portal)), 10))
}

// failISCSI is fail, with a word on the service without which nothing of iSCSI works.
func failISCSI(op, object string, err error) error {
	if code, ok := systemCodeOf(err); ok && isISDSC(code) && code&codeHalf == isdscServiceNotRunning {
		err = hinted(err, "the service MSiSCSI is not running")
	}
	return fail(op, object, err)
}

// portalValues are the in-parameters that name a portal. The port is 16 bits wide.
func portalValues(portal host.TargetPortal) (cim.Values, error) {
	port := portPlain(portal)
	if port > math.MaxUint16 {
		return nil, failAs(host.KindInvalid, "TargetPortal", portalObject(portal), fmt.Errorf("port %d is above 65535", port))
	}
	return cim.Values{"TargetPortalAddress": portal.Address, "TargetPortalPortNumber": uint16(port)}, nil
}

// TargetPortals returns the known portals. Source: MSFT_iSCSITargetPortal.
func (o *OS) TargetPortals(ctx context.Context) ([]host.TargetPortal, error) {
	rows, err := portalTable.Rows(ctx, o.session)
	if err != nil {
		return nil, failISCSI("TargetPortals", "", err)
	}
	portals := make([]host.TargetPortal, len(rows))
	for i, row := range rows {
		portals[i] = host.TargetPortal{Address: row.Address, Port: uint32(row.Port)}
	}
	return portals, nil
}

// findPortal returns the object of a known portal; KindNotFound when unknown.
func (o *OS) findPortal(ctx context.Context, op string, portal host.TargetPortal) (portalRow, error) {
	rows, err := portalTable.Rows(ctx, o.session)
	if err != nil {
		return portalRow{}, err
	}
	for _, row := range rows {
		if row.isPortal(portal) {
			return row, nil
		}
	}
	return portalRow{}, notFound(op, portalObject(portal))
}

// AddTargetPortal makes the initiator know a portal; KindExists when it does
// already. Source: MSFT_iSCSITargetPortal.New, which also runs discovery.
func (o *OS) AddTargetPortal(ctx context.Context, portal host.TargetPortal) error {
	const op = "AddTargetPortal"
	in, err := portalValues(portal)
	if err != nil {
		return err
	}
	switch _, err := o.findPortal(ctx, op, portal); {
	case err == nil:
		return failAs(host.KindExists, op, portalObject(portal), errors.New("the initiator knows the portal"))
	case !host.IsKind(err, host.KindNotFound):
		return failISCSI(op, portalObject(portal), err)
	}
	if _, err := o.callStatic(ctx, portalTable, "New", in); err != nil {
		return failISCSI(op, portalObject(portal), err)
	}
	return nil
}

// RefreshTargetPortal runs discovery again. Source: MSFT_iSCSITargetPortal.Update.
func (o *OS) RefreshTargetPortal(ctx context.Context, portal host.TargetPortal) error {
	return o.onPortal(ctx, "RefreshTargetPortal", "Update", portal)
}

// RemoveTargetPortal makes the initiator forget a portal. Source:
// MSFT_iSCSITargetPortal.Remove.
func (o *OS) RemoveTargetPortal(ctx context.Context, portal host.TargetPortal) error {
	return o.onPortal(ctx, "RemoveTargetPortal", "Remove", portal)
}

// onPortal calls a method of a known portal. The methods want its address
// again, in the spelling Windows has.
func (o *OS) onPortal(ctx context.Context, op, method string, portal host.TargetPortal) error {
	in, err := portalValues(portal)
	if err != nil {
		return err
	}
	row, err := o.findPortal(ctx, op, portal)
	if err == nil {
		in["TargetPortalAddress"] = row.Address
		_, err = o.call(ctx, portalTable, row.Path, method, in)
	}
	if err != nil {
		return failISCSI(op, portalObject(portal), err)
	}
	return nil
}

// Targets returns the names of the targets discovered through a portal; the zero
// portal means all. Source: MSFT_iSCSITarget, MSFT_iSCSITargetToiSCSITargetPortal.
func (o *OS) Targets(ctx context.Context, portal host.TargetPortal) ([]string, error) {
	rows, err := o.targetRows(ctx, portal)
	if err != nil {
		return nil, failISCSI("Targets", portal.Address, err)
	}
	iqns := make([]string, len(rows))
	for i, row := range rows {
		iqns[i] = row.IQN
	}
	return iqns, nil
}

func (o *OS) targetRows(ctx context.Context, portal host.TargetPortal) ([]targetRow, error) {
	if portal == (host.TargetPortal{}) {
		return targetTable.Rows(ctx, o.session)
	}
	row, err := o.findPortal(ctx, "Targets", portal)
	if err != nil {
		return nil, err
	}
	return targetTable.Associated(ctx, o.session, row.Path, "MSFT_iSCSITargetToiSCSITargetPortal")
}

// Connect logs in. IsPersistent is always given: its default differs between builds,
// and a persistent login comes back by itself after a restart of the node. Source:
// MSFT_iSCSITarget.Connect.
func (o *OS) Connect(ctx context.Context, portal host.TargetPortal, iqn string, options host.ConnectOptions) error {
	in, err := portalValues(portal)
	if err != nil {
		return err
	}
	authentication, ok := authenticationTypes[options.AuthType]
	if !ok {
		return failAs(host.KindInvalid, "Connect", iqn, fmt.Errorf("unknown kind of authentication %d", options.AuthType))
	}
	in["NodeAddress"] = iqn
	in["IsPersistent"] = options.Persistent
	in["AuthenticationType"] = authentication
	if options.AuthType != host.AuthNone {
		in["ChapSecret"] = options.ChapSecret
		if options.ChapUsername != "" {
			in["ChapUsername"] = options.ChapUsername
		}
	}
	if _, err := o.callStatic(ctx, targetTable, "Connect", in); err != nil {
		return failISCSI("Connect", iqn, withoutSecrets(err, options.ChapSecret))
	}
	return nil
}

// SetInitiatorSecret sets the initiator's own CHAP secret. A warning code says
// that it was set. Source: MSFT_iSCSISession.SetCHAPSecret.
func (o *OS) SetInitiatorSecret(ctx context.Context, secret string) error {
	_, err := o.callStatic(ctx, sessionTable, "SetCHAPSecret", cim.Values{"ChapSecret": secret})
	if code, ok := systemCodeOf(err); ok && code>>16 == isdscWarningHalf {
		return nil
	}
	if err != nil {
		return failISCSI("SetInitiatorSecret", "", withoutSecrets(err, secret))
	}
	return nil
}
