package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/driver/iscsi"
	"github.com/csi-windows/csi-windows/driver/simcloud"
	"github.com/csi-windows/csi-windows/driver/smb"
	"github.com/csi-windows/csi-windows/sim/cloud"
)

// cloudConfig are the settings of simcloud.
type cloudConfig struct {
	Dir        string
	Nodes      []cloud.Node
	Zone       string
	MaxVolumes int64
	Control    string
}

// smbConfig are the settings of smb.
type smbConfig struct {
	Sources           []smbSource
	AnySource         bool
	Dial              map[string]string
	RequireEncryption bool
}

// iscsiConfig are the settings of iscsi.
type iscsiConfig struct {
	PoolFile string
	StateDir string
}

// parts are what a driver is made of. Each may be nil.
type parts struct {
	controller csikit.Backend
	node       csikit.NodeBackend
	close      func() error
}

// backend is one choice of -driver.
type backend struct {
	name       string // of the driver in Kubernetes
	flagPrefix string
	check      func(c *config) error // names the flag
	open       func(c *config, log *slog.Logger) (parts, error)
}

// backends are the choices of -driver.
func backends() map[string]backend {
	return map[string]backend{
		"simcloud": {"simcloud.csi-windows.io", "cloud", checkCloud, openCloud},
		"smb":      {"smb.csi-windows.io", "smb", checkSMB, openSMB},
		"iscsi":    {iscsi.Name, "iscsi", checkISCSI, openISCSI},
	}
}

func checkCloud(c *config) error {
	switch {
	case c.servesController() && c.Cloud.Dir == "":
		return errors.New("-cloud-dir: is needed with -mode=" + c.Mode)
	case c.Cloud.MaxVolumes < 0:
		return errors.New("-cloud-max-volumes: must not be negative")
	case c.Cloud.Zone != "" && !cloud.ValidName(c.Cloud.Zone):
		return errors.New("-cloud-zone: must have a name of letters, digits, '-', '_' and '.'")
	case c.Cloud.Control != "" && checkControl(c.Cloud.Control) != nil:
		return fmt.Errorf("-cloud-control: %w", checkControl(c.Cloud.Control))
	default:
		return nil
	}
}

func openCloud(c *config, _ *slog.Logger) (p parts, err error) {
	p.close = func() error { return nil }
	if c.servesController() {
		b, err := simcloud.New(simcloud.Config{Dir: c.Cloud.Dir, Nodes: c.Cloud.Nodes})
		if err != nil {
			return parts{}, err
		}
		p.controller, p.close = b, b.Close
	}
	if !c.servesNode() {
		return p, nil
	}
	n, err := simcloud.NewNode(simcloud.NodeConfig{Zone: c.Cloud.Zone, MaxVolumes: c.Cloud.MaxVolumes, Control: c.Cloud.Control})
	if err != nil {
		return parts{}, errors.Join(err, p.close())
	}
	closeController := p.close
	p.node = n
	p.close = func() error { n.Close(); return closeController() }
	return p, nil
}

func checkSMB(c *config) error {
	if len(c.SMB.Sources) == 0 && !c.SMB.AnySource {
		return errors.New("-smb-source: is needed, or -smb-any-source")
	}
	if _, err := smb.New(c.smb(nil)); err != nil {
		return fmt.Errorf("-smb-source: %w", err)
	}
	return nil
}

func (c *config) smb(log *slog.Logger) smb.Config {
	config := smb.Config{
		AnySource: c.SMB.AnySource, Dial: c.SMB.Dial, RequireEncryption: c.SMB.RequireEncryption,
		CallTimeout: c.CallTime, Logger: log,
	}
	for _, s := range c.SMB.Sources {
		source := smb.Source{Path: s.Path}
		if s.CredentialsDir != "" {
			source.Credentials = smb.CredentialsFolder(s.CredentialsDir)
		}
		config.Sources = append(config.Sources, source)
	}
	return config
}

func openSMB(c *config, log *slog.Logger) (p parts, err error) {
	b, err := smb.New(c.smb(log))
	if err != nil {
		return parts{}, err
	}
	p.close = b.Close
	if c.servesController() {
		p.controller = b
	}
	if c.servesNode() {
		p.node = b
	}
	return p, nil
}

func checkISCSI(c *config) error {
	if c.ISCSI.PoolFile != "" && c.ISCSI.StateDir == "" {
		return errors.New("-iscsi-state-dir: is needed with -iscsi-pool-file")
	}
	return nil
}

func openISCSI(c *config, _ *slog.Logger) (p parts, err error) {
	p.close = func() error { return nil }
	if c.servesController() {
		d, err := iscsi.New(iscsi.Config{PoolFile: c.ISCSI.PoolFile, StateFolder: c.ISCSI.StateDir})
		if err != nil {
			return parts{}, err
		}
		p.controller, p.close = d, d.Close
	}
	if c.servesNode() {
		p.node = iscsi.Node{}
	}
	return p, nil
}
