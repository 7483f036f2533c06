package conformance_test

import (
	"context"
	"errors"

	"github.com/csi-windows/csi-windows/host"
)

// wrongKinds are hosts that fail where they should, and say the wrong thing of it.
func wrongKinds() []defect {
	turn := func(from, to host.Kind) func(host.Host) host.Host {
		return func(h host.Host) host.Host { return turnsKind{h, from, to} }
	}
	return []defect{
		{"a missing disk is internal", plain(turn(host.KindNotFound, host.KindInternal)), "disk/absent"},
		{"a missing volume is invalid", plain(turn(host.KindNotFound, host.KindInvalid)), "volume/absent"},
		{"a bad volume id is not found", plain(turn(host.KindInvalid, host.KindNotFound)), "volume/bad-id"},
		{"a bad path is a refusal", plain(turn(host.KindInvalid, host.KindPrecondition)), "filesystem/bad-path"},
		{"somebody's data is invalid", plain(turn(host.KindPrecondition, host.KindInvalid)), "disk/partition-refuses-data"},
		{"no room is invalid", plain(turn(host.KindExhausted, host.KindInvalid)), "volume/grow"},
		{"a wrong password is denied", plain(turn(host.KindUnauthenticated, host.KindDenied)), "smb/wrong-password"},
		{"a missing service is internal", plain(turn(host.KindNotFound, host.KindInternal)), "system/service-absent"},
		{"a password in the error", plain(func(h host.Host) host.Host { return tellsPassword{h} }), "smb/bad-input"},
		{"a secret in the error", plain(func(h host.Host) host.Host { return tellsSecret{h} }), "iscsi/bad-input"},
	}
}

// turnsKind is a host whose failures of one kind are of another.
type turnsKind struct {
	host.Host
	from, to host.Kind
}

func (h turnsKind) turn(err error) error {
	var e *host.Error
	if !errors.As(err, &e) || e.Kind != h.from {
		return err
	}
	return &host.Error{Op: e.Op, Object: e.Object, Kind: h.to, Cause: e.Cause}
}

func (h turnsKind) GetDiskStats(ctx context.Context, n uint32) (host.DiskStats, error) {
	stats, err := h.Host.GetDiskStats(ctx, n)
	return stats, h.turn(err)
}

func (h turnsKind) PartitionDisk(ctx context.Context, n uint32) error {
	return h.turn(h.Host.PartitionDisk(ctx, n))
}

func (h turnsKind) GetVolumeStats(ctx context.Context, id string) (host.VolumeStats, error) {
	stats, err := h.Host.GetVolumeStats(ctx, id)
	return stats, h.turn(err)
}

func (h turnsKind) ResizeVolume(ctx context.Context, id string, sizeBytes int64) error {
	return h.turn(h.Host.ResizeVolume(ctx, id, sizeBytes))
}

func (h turnsKind) PathExists(ctx context.Context, path string) (bool, error) {
	there, err := h.Host.PathExists(ctx, path)
	return there, h.turn(err)
}

func (h turnsKind) NewSmbGlobalMapping(ctx context.Context, remote, local, user, password string) error {
	return h.turn(h.Host.NewSmbGlobalMapping(ctx, remote, local, user, password))
}

func (h turnsKind) GetService(ctx context.Context, name string) (host.ServiceInfo, error) {
	info, err := h.Host.GetService(ctx, name)
	return info, h.turn(err)
}

type tellsPassword struct{ host.Host }

func (h tellsPassword) NewSmbGlobalMapping(ctx context.Context, remote, local, user, password string) error {
	err := h.Host.NewSmbGlobalMapping(ctx, remote, local, user, password)
	if err == nil {
		return nil
	}
	return &host.Error{Op: "NewSmbGlobalMapping", Object: user + ":" + password, Kind: host.KindOf(err), Cause: err}
}

type tellsSecret struct{ host.Host }

func (h tellsSecret) SetMutualChapSecret(ctx context.Context, secret string) error {
	err := h.Host.SetMutualChapSecret(ctx, secret)
	if err == nil {
		return nil
	}
	return &host.Error{Op: "SetMutualChapSecret", Object: secret, Kind: host.KindOf(err), Cause: err}
}
