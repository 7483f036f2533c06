package bed

import (
	"context"
	"errors"

	"github.com/csi-windows/csi-windows/host"
)

// Official is a host without the contract's additions, as any csi-proxy but ours
// offers it.
func Official(h host.Host) host.Host { return official{h} }

type official struct{ host.Host }

func lacks(op string) error {
	return &host.Error{Op: op, Kind: host.KindUnsupported, Cause: errors.New("an official csi-proxy has no such method")}
}

func (official) ListDisks(context.Context) ([]host.DiskInfo, error) { return nil, lacks("ListDisks") }

func (official) SetDiskReadOnly(context.Context, uint32, bool) error { return lacks("SetDiskReadOnly") }

func (official) ListVolumes(context.Context) ([]host.VolumeInfo, error) {
	return nil, lacks("ListVolumes")
}

func (official) GetVolume(context.Context, string) (host.VolumeInfo, error) {
	return host.VolumeInfo{}, lacks("GetVolume")
}

func (official) FormatVolumeWith(context.Context, string, host.FormatOptions) error {
	return lacks("FormatVolumeWith")
}

func (official) ListMounts(context.Context) ([]host.Mount, error) { return nil, lacks("ListMounts") }

func (official) GetLink(context.Context, string) (host.LinkInfo, error) {
	return host.LinkInfo{}, lacks("GetLink")
}

func (official) GetPathStats(context.Context, string) (host.VolumeStats, error) {
	return host.VolumeStats{}, lacks("GetPathStats")
}

func (official) ListSmbGlobalMappings(context.Context) ([]host.SmbMapping, error) {
	return nil, lacks("ListSmbGlobalMappings")
}

func (o official) ConnectTarget(ctx context.Context, portal host.TargetPortal, iqn string, options host.ConnectOptions) error {
	if options.Persistent {
		return lacks("ConnectTarget with a persistent login")
	}
	return o.Host.ConnectTarget(ctx, portal, iqn, options)
}

func (official) ListTargets(context.Context) ([]host.TargetInfo, error) {
	return nil, lacks("ListTargets")
}
