package conformance

import (
	"context"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// mayChangeShare passes the share of the environment, names of the run, and what
// is no share at all.
func (g *guard) mayChangeShare(path string) error {
	plain := strings.ReplaceAll(path, "/", `\`)
	given := g.scene.env.SMB != nil && strings.EqualFold(shareRoot(plain), shareRoot(g.scene.env.SMB.Path))
	server, share, _ := strings.Cut(strings.TrimPrefix(plain, `\\`), `\`)
	if given || strings.Contains(plain, g.scene.run) || !strings.HasPrefix(plain, `\\`) || server == "" || share == "" {
		return nil
	}
	return refused("%s", path)
}

// shareRoot is the server and the share of a path: `\\server\share`.
func shareRoot(path string) string {
	parts := strings.SplitN(strings.TrimPrefix(strings.ReplaceAll(path, "/", `\`), `\\`), `\`, 3)
	return `\\` + strings.Join(parts[:min(len(parts), 2)], `\`)
}

// mayChangePortal passes the portal of the environment, the loopback addresses of
// the cases, and what is no portal at all.
func (g *guard) mayChangePortal(portal host.TargetPortal) error {
	target := g.scene.env.ISCSI
	switch {
	case target != nil && target.Portal == portal, portal == silentPortal(), !isPlainAddress(portal):
		return nil
	}
	return refused("portal %s", portal.Address)
}

// mayChangeTarget passes the target of the environment and names that have the
// name of the run in them or are none.
func (g *guard) mayChangeTarget(iqn string) error {
	target := g.scene.env.ISCSI
	if target != nil && target.IQN == iqn || strings.Contains(iqn, g.scene.run) || !strings.HasPrefix(strings.ToLower(iqn), "iqn.") {
		return nil
	}
	return refused("target %s", iqn)
}

// NewSmbGlobalMapping implements host.SMB.
func (g *guard) NewSmbGlobalMapping(ctx context.Context, remotePath, localPath, username, password string) error {
	if err := g.mayChangeShare(remotePath); err != nil {
		return err
	}
	if err := g.mayChangePath(localPath); err != nil {
		return err
	}
	return g.Host.NewSmbGlobalMapping(ctx, remotePath, localPath, username, password)
}

// RemoveSmbGlobalMapping implements host.SMB.
func (g *guard) RemoveSmbGlobalMapping(ctx context.Context, remotePath string) error {
	if err := g.mayChangeShare(remotePath); err != nil {
		return err
	}
	return g.Host.RemoveSmbGlobalMapping(ctx, remotePath)
}

// AddTargetPortal implements host.ISCSI.
func (g *guard) AddTargetPortal(ctx context.Context, portal host.TargetPortal) error {
	if err := g.mayChangePortal(portal); err != nil {
		return err
	}
	return g.Host.AddTargetPortal(ctx, portal)
}

// RemoveTargetPortal implements host.ISCSI.
func (g *guard) RemoveTargetPortal(ctx context.Context, portal host.TargetPortal) error {
	if err := g.mayChangePortal(portal); err != nil {
		return err
	}
	return g.Host.RemoveTargetPortal(ctx, portal)
}

// ConnectTarget implements host.ISCSI.
func (g *guard) ConnectTarget(ctx context.Context, portal host.TargetPortal, iqn string, options host.ConnectOptions) error {
	if err := g.mayChangeTarget(iqn); err != nil {
		return err
	}
	return g.Host.ConnectTarget(ctx, portal, iqn, options)
}

// DisconnectTarget implements host.ISCSI.
func (g *guard) DisconnectTarget(ctx context.Context, portal host.TargetPortal, iqn string) error {
	if err := g.mayChangeTarget(iqn); err != nil {
		return err
	}
	return g.Host.DisconnectTarget(ctx, portal, iqn)
}

// SetMutualChapSecret implements host.ISCSI. The node's secret cannot be read, so
// it could not be put back: only secrets that no host takes may pass.
func (g *guard) SetMutualChapSecret(ctx context.Context, secret string) error {
	if len(secret) >= 12 && len(secret) <= 16 {
		return refused("the initiator's CHAP secret")
	}
	return g.Host.SetMutualChapSecret(ctx, secret)
}

// mayChangeService passes the initiator's service, names of the run, and what no
// service is called.
func (g *guard) mayChangeService(name string) error {
	if name == initiatorService || strings.Contains(name, g.scene.run) || name == "" || strings.ContainsAny(name, `/\`) {
		return nil
	}
	return refused("service %s", name)
}

// StartService implements host.System.
func (g *guard) StartService(ctx context.Context, name string) error {
	if err := g.mayChangeService(name); err != nil {
		return err
	}
	return g.Host.StartService(ctx, name)
}

// StopService implements host.System.
func (g *guard) StopService(ctx context.Context, name string, force bool) error {
	if err := g.mayChangeService(name); err != nil {
		return err
	}
	return g.Host.StopService(ctx, name, force)
}
