package node

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// shareHold is the hold of a stage on the mapping of its share. It is of the folder as
// well: with it, a link at the staging path is known to be the one of this stage
// even where nobody can read it.
func (t *Tasks) shareHold(s sharePath, stagingPath string) hold {
	return t.newHold(heldShares, s.key(), pathKey(stagingPath)+"|"+host.FoldName(s.String()))
}

// holdShare makes the hold of a stage, unless the share is mapped by somebody
// else: a mapping that no hold tells of is used, and never removed.
func (k smbKind) holdShare(ctx context.Context, s sharePath, stagingPath string) error {
	_, err := k.holdUnlessForeign(ctx, k.shareHold(s, stagingPath), func() (bool, error) {
		mapped, err := k.isMapped(ctx, s)
		if mapped {
			k.log.Info("the share is mapped by somebody else; the mapping will stay", "share", s.key())
		}
		return mapped, err
	})
	return err
}

// isMapped reports whether the share is mapped. A host that cannot say is taken for
// one where nobody else maps shares.
func (k smbKind) isMapped(ctx context.Context, s sharePath) (bool, error) {
	if !k.knows("ListSmbGlobalMappings") {
		return false, nil
	}
	mappings, err := k.host.ListSmbGlobalMappings(ctx)
	if err != nil {
		if k.lacking("ListSmbGlobalMappings", err) {
			err = nil
		}
		return false, err
	}
	for _, m := range mappings {
		if other, err := parseShare("mapping", m.RemotePath); err == nil && other.key() == s.key() {
			return true, nil
		}
	}
	return false, nil
}

// letGoShare takes the hold of a stage away, and with the last one the mapping. A
// mapping of which no hold is left to tell is kept: somebody may be using it.
func (k smbKind) letGoShare(ctx context.Context, s sharePath, stagingPath string) error {
	h := k.shareHold(s, stagingPath)
	last, err := k.dropHold(ctx, h)
	if err != nil || !last {
		return err
	}
	made, err := k.isMade(ctx, h)
	if err != nil {
		return err
	}
	if !made {
		return k.tellKept(ctx, s, stagingPath)
	}
	if err := k.host.RemoveSmbGlobalMapping(ctx, s.shareRoot()); err != nil {
		return err
	}
	return k.forgetHold(ctx, h)
}

// tellKept says in the log that a mapping stays although its stage ends.
func (k smbKind) tellKept(ctx context.Context, s sharePath, stagingPath string) error {
	mapped, err := k.isMapped(ctx, s)
	if err == nil && (mapped || !k.knows("ListSmbGlobalMappings")) {
		k.log.Warn("nothing says that the mapping of a share was made here; it is kept", "share", s.key(), "path", stagingPath)
	}
	return err
}

// shareRoot is the path of the share itself.
func (s sharePath) shareRoot() string { return sharePath{server: s.server, share: s.share}.String() }

// reachShare checks that the share a path leads to can be used.
func (t *Tasks) reachShare(ctx context.Context, found place) error {
	if t.knows("GetPathStats") {
		_, err := t.host.GetPathStats(ctx, found.path)
		if !t.lacking("GetPathStats", err) {
			return asDead(err)
		}
	}
	// An official csi-proxy says of a link that ends nowhere that it is none.
	live, err := t.host.IsSymlink(ctx, found.path)
	if err == nil && !live {
		err = refuse(host.KindPrecondition, "the link there leads nowhere")
	}
	return err
}

// asDead makes a share whose folder is gone what it is for a task that needs it.
func asDead(err error) error {
	if host.IsKind(err, host.KindNotFound) {
		return refuse(host.KindPrecondition, "the folder on the file server is gone: %w", err)
	}
	return err
}

// shareStats returns the sizes of the share a path leads to. KindUnsupported when
// the csi-proxy of the node cannot tell.
func (t *Tasks) shareStats(ctx context.Context, found place) (Stats, error) {
	sizes, err := t.host.GetPathStats(ctx, found.path)
	if err != nil {
		return Stats{}, err
	}
	return statsOf(sizes), nil
}

// shareReasons are what is wrong with a share, by the kind of the failure to reach it.
var shareReasons = map[host.Kind]string{
	host.KindNotFound:        "FolderMissing",
	host.KindPrecondition:    "ShareNotMapped",
	host.KindUnavailable:     "ServerUnreachable",
	host.KindUnauthenticated: "CredentialsRefused",
	host.KindDenied:          "AccessDenied",
}

// shareHealth says what is wrong with the share a path leads to. Nothing is known
// where the host cannot look.
func (t *Tasks) shareHealth(ctx context.Context, found place) ([]HealthCondition, error) {
	if !t.knows("GetPathStats") {
		return nil, nil
	}
	_, err := t.host.GetPathStats(ctx, found.path)
	if err == nil || t.lacking("GetPathStats", err) {
		return nil, nil
	}
	reason := shareReasons[host.KindOf(err)]
	if reason == "" {
		return nil, err
	}
	return []HealthCondition{{Status: HealthInaccessible, Reason: reason, Message: err.Error()}}, nil
}
