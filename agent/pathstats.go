package agent

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// GetPathStats implements host.Filesystem.
func (a *Agent) GetPathStats(ctx context.Context, path string) (host.VolumeStats, error) {
	return follow(ctx, a, "GetPathStats", "path", path, func(ctx context.Context, w *walk) (host.VolumeStats, error) {
		switch {
		case w.remote != "":
			return a.remoteStats(ctx, w.remote)
		case w.node.info.Kind == FileMountPoint:
			return volumeStats(a.os.VolumeStats(ctx, canonicalVolumeID(w.node.info.Target)))
		case w.node.volume != "":
			return volumeStats(a.os.VolumeStats(ctx, w.node.volume))
		default:
			return host.VolumeStats{}, refuse(host.KindPrecondition, "no volume is mounted there, and it leads to no share")
		}
	})
}

// remoteStats asks a file server for the sizes of what holds a path.
func (a *Agent) remoteStats(ctx context.Context, path string) (host.VolumeStats, error) {
	remote, err := a.mappedRemote(ctx, path)
	if err != nil {
		return host.VolumeStats{}, err
	}
	return askServer(ctx, a, "RemoteStats", remote, func(ctx context.Context) (host.VolumeStats, error) {
		return volumeStats(a.os.RemoteStats(ctx, remote.String()))
	})
}

func volumeStats(totalBytes, freeBytes int64, err error) (host.VolumeStats, error) {
	if err != nil {
		return host.VolumeStats{}, err
	}
	return host.VolumeStats{TotalBytes: totalBytes, UsedBytes: totalBytes - freeBytes}, nil
}

// mappedRemote checks a path a link leads to. The share has to be mapped on this
// node: a link somebody left on a disk must not make the node log on to any
// server it names.
func (a *Agent) mappedRemote(ctx context.Context, path string) (remotePath, error) {
	remote, err := parseRemote("link target", path)
	if err != nil {
		return remotePath{}, err
	}
	mapping, err := a.findMapping(ctx, remote)
	if err != nil {
		return remotePath{}, err
	}
	if mapping == nil {
		return remotePath{}, refuse(host.KindPrecondition, "the path leads to %s, which is not mapped on this node", remote.mappingKey())
	}
	return remote, nil
}
