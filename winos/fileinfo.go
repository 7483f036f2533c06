package winos

import (
	"context"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// nameSurrogate marks reparse tags that stand for another place. Tags without it
// (deduplicated, compressed or cloud content) are the file itself as far as
// naming goes. Source: IsReparseTagNameSurrogate, winnt.h.
const nameSurrogate = 0x20000000

// fileInfo describes an open object.
func (o *OS) fileInfo(ctx context.Context, h win32.Handle) (agent.FileInfo, error) {
	raw, err := o.api.Info(ctx, h)
	if err != nil {
		return agent.FileInfo{}, err
	}
	info := agent.FileInfo{Kind: agent.FileRegular, Identity: identityOf(raw)}
	if raw.Attributes&win32.AttrDirectory != 0 {
		info.Kind = agent.FileFolder
	}
	if raw.Attributes&win32.AttrReparse == 0 || raw.ReparseTag&nameSurrogate == 0 {
		return info, nil
	}
	if raw.ReparseTag != win32.TagSymlink && raw.ReparseTag != win32.TagMountPoint {
		info.Kind = agent.FileReparse
		return info, nil
	}
	reparse, err := o.readReparse(ctx, h)
	if err != nil {
		return agent.FileInfo{}, err
	}
	describeLink(&info, reparse)
	info.FolderLink = info.Kind == agent.FileSymlink && raw.Attributes&win32.AttrDirectory != 0
	return info, nil
}

// describeLink sets kind and target of a link. Symbolic links never count as
// mount points, even one that leads to a volume.
func describeLink(info *agent.FileInfo, reparse win32.Reparse) {
	info.Kind, info.Target = agent.FileJunction, reparse.Target
	if reparse.Tag == win32.TagSymlink {
		info.Kind = agent.FileSymlink
	} else if id, ok := reparse.VolumeID(); ok {
		info.Kind, info.Target = agent.FileMountPoint, id
	}
}

// readReparse reads the link data. Source: FSCTL_GET_REPARSE_POINT.
func (o *OS) readReparse(ctx context.Context, h win32.Handle) (win32.Reparse, error) {
	answer, err := o.control(ctx, h, win32.FsctlGetReparsePoint, nil, win32.ReparseBufferMaxBytes)
	if err != nil {
		return win32.Reparse{}, err
	}
	return win32.DecodeReparse(answer)
}

func identityOf(info win32.FileInfo) agent.FileIdentity {
	return agent.FileIdentity{VolumeSerial: info.VolumeSerial, FileID: info.FileID}
}
