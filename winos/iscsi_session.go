package winos

import (
	"context"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// Sessions returns every session with the portals of its connections. Source:
// MSFT_iSCSISession, MSFT_iSCSISessionToiSCSIConnection.
func (o *OS) Sessions(ctx context.Context) ([]agent.ISCSISession, error) {
	rows, err := sessionTable.Rows(ctx, o.session)
	if err != nil {
		return nil, failISCSI("Sessions", "", err)
	}
	sessions := make([]agent.ISCSISession, len(rows))
	for i, row := range rows {
		connections, err := connectionTable.Associated(ctx, o.session, row.Path, "MSFT_iSCSISessionToiSCSIConnection")
		if err != nil {
			return nil, failISCSI("Sessions", row.ID, err)
		}
		sessions[i] = agent.ISCSISession{ID: row.ID, IQN: row.IQN, Persistent: row.Persistent}
		for _, c := range connections {
			sessions[i].Portals = append(sessions[i].Portals, host.TargetPortal{Address: c.Address, Port: c.Port})
		}
	}
	return sessions, nil
}

// findSession returns the object of a session; KindNotFound when there is none.
func (o *OS) findSession(ctx context.Context, op, id string) (sessionRow, error) {
	rows, err := sessionTable.Rows(ctx, o.session, cim.Equal("SessionIdentifier", id))
	if err != nil {
		return sessionRow{}, err
	}
	if len(rows) == 0 {
		return sessionRow{}, notFound(op, id)
	}
	return rows[0], nil
}

// RegisterSession makes a session persistent. Source: MSFT_iSCSISession.Register.
func (o *OS) RegisterSession(ctx context.Context, id string, options host.ConnectOptions) error {
	in := cim.Values{}
	if options.AuthType != host.AuthNone {
		in["ChapSecret"] = options.ChapSecret
		if options.ChapUsername != "" {
			in["ChapUsername"] = options.ChapUsername
		}
	}
	row, err := o.findSession(ctx, "RegisterSession", id)
	if err == nil {
		_, err = o.call(ctx, sessionTable, row.Path, "Register", in)
	}
	if err != nil {
		return failISCSI("RegisterSession", id, withoutSecrets(err, options.ChapSecret))
	}
	return nil
}

// UnregisterSession removes the persistent entry of a session. Source:
// MSFT_iSCSISession.Unregister.
func (o *OS) UnregisterSession(ctx context.Context, id string) error {
	row, err := o.findSession(ctx, "UnregisterSession", id)
	if err == nil {
		_, err = o.call(ctx, sessionTable, row.Path, "Unregister", nil)
	}
	if err != nil {
		return failISCSI("UnregisterSession", id, err)
	}
	return nil
}

// Disconnect logs out of one session. Source: MSFT_iSCSITarget.Disconnect.
func (o *OS) Disconnect(ctx context.Context, id string) error {
	if err := o.disconnect(ctx, id); err != nil {
		return failISCSI("Disconnect", id, err)
	}
	return nil
}

func (o *OS) disconnect(ctx context.Context, id string) error {
	row, err := o.findSession(ctx, "Disconnect", id)
	if err != nil {
		return err
	}
	target, err := cim.ObjectPath(targetTable.Class(), "NodeAddress", row.IQN)
	if err != nil {
		return err
	}
	_, err = o.call(ctx, targetTable, target, "Disconnect", cim.Values{"SessionIdentifier": id})
	return err
}

// SessionDisks returns the disks of one session. They arrive some time after the
// login. Source: MSFT_iSCSISessionToDisk.
func (o *OS) SessionDisks(ctx context.Context, id string) ([]uint32, error) {
	row, err := o.findSession(ctx, "SessionDisks", id)
	if err != nil {
		return nil, failISCSI("SessionDisks", id, err)
	}
	rows, err := diskNumberTable.Associated(ctx, o.session, row.Path, "MSFT_iSCSISessionToDisk")
	if err != nil {
		return nil, failISCSI("SessionDisks", id, err)
	}
	numbers := make([]uint32, len(rows))
	for i, disk := range rows {
		numbers[i] = disk.Number
	}
	return numbers, nil
}
