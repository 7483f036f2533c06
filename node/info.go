package node

import (
	"context"
	"math"

	"github.com/csi-windows/csi-windows/host"
)

// Info implements Node.
func (t *Tasks) Info(ctx context.Context) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, t.options.CallTimeout)
	defer cancel()
	var info Info
	serial, err := t.host.GetBIOSSerialNumber(ctx)
	if err != nil && !host.IsKind(err, host.KindUnsupported) {
		return info, named("Info", "", err)
	}
	info.BIOSSerialNumber = serial
	for method, ask := range t.additions() {
		switch err := ask(ctx); {
		case t.lacking(method, err):
		case host.IsKind(err, host.KindTimeout), host.IsKind(err, host.KindUnavailable):
			return info, named("Info", "", err)
		}
	}
	info.Lacks = t.lackingMethods()
	return info, nil
}

// additions are the contract's additions, each with a call of it that changes
// nothing: a question, or a change of a disk or volume that no node has.
func (t *Tasks) additions() map[string]func(context.Context) error {
	const noDisk, noVolume, noPath = math.MaxUint32, "none", "none"
	h := t.host
	return map[string]func(context.Context) error{
		"ListDisks":             func(ctx context.Context) error { _, err := h.ListDisks(ctx); return err },
		"SetDiskReadOnly":       func(ctx context.Context) error { return h.SetDiskReadOnly(ctx, noDisk, false) },
		"ListVolumes":           func(ctx context.Context) error { _, err := h.ListVolumes(ctx); return err },
		"GetVolume":             func(ctx context.Context) error { _, err := h.GetVolume(ctx, noVolume); return err },
		"FormatVolumeWith":      func(ctx context.Context) error { return h.FormatVolumeWith(ctx, noVolume, host.FormatOptions{}) },
		"ListMounts":            func(ctx context.Context) error { _, err := h.ListMounts(ctx); return err },
		"GetLink":               func(ctx context.Context) error { _, err := h.GetLink(ctx, noPath); return err },
		"GetPathStats":          func(ctx context.Context) error { _, err := h.GetPathStats(ctx, noPath); return err },
		"ListSmbGlobalMappings": func(ctx context.Context) error { _, err := h.ListSmbGlobalMappings(ctx); return err },
		"ListTargets":           func(ctx context.Context) error { _, err := h.ListTargets(ctx); return err },
	}
}
