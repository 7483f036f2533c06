package smb

import (
	"context"
	"fmt"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/node"
)

// NodeSource implements csikit.NodeBackend. It asks nobody: an id says all but the
// credentials.
func (b *Backend) NodeSource(ctx context.Context, request csikit.NodeSourceRequest) (node.Source, error) {
	key, err := b.key(request.VolumeID)
	if err != nil {
		return node.Source{}, err
	}
	source := &node.SMBSource{Path: key.root().uncPath()}
	if request.Ending {
		return node.Source{SMB: source}, nil
	}
	who, err := b.accountFor(ctx, key.at, request.Secrets)
	if err != nil {
		return node.Source{}, fmt.Errorf("volume %q: %w", request.VolumeID, err)
	}
	source.Username, source.Domain, source.Password = who.user, who.domain, who.password
	return node.Source{SMB: source}, nil
}
