package node

import "context"

// sourceKind is what staging does differently for disks, iSCSI and SMB. Its
// methods are called with a request that Validate has passed and with the locks of
// the volume and of the staging path held; they take further ones with
// lockTable.acquire, in the order of lockClass.
type sourceKind interface {
	// stage makes the source usable at r.StagingPath. found is what is there.
	// What is dead there (see place.dead) is to be replaced, a live thing that is
	// not this source is KindExists.
	stage(ctx context.Context, r StageRequest, found place) error
	// unstage takes away what is there and lets go of what lies under it. The
	// source in r is a hint and may be empty. Nothing there is not the end: an
	// earlier run may have been cut off after it had removed the path.
	unstage(ctx context.Context, r UnstageRequest, found place) error
}

// kindOf returns the kind of a source of which exactly one field is set.
func (t *Tasks) kindOf(source Source) (sourceKind, error) {
	var kinds []sourceKind
	if source.Disk != nil {
		kinds = append(kinds, diskKind{t})
	}
	if source.ISCSI != nil {
		kinds = append(kinds, iscsiKind{t})
	}
	if source.SMB != nil {
		kinds = append(kinds, smbKind{t})
	}
	if len(kinds) != 1 {
		return nil, invalid("Source", "%d of Disk, ISCSI and SMB are set, exactly one is wanted", len(kinds))
	}
	return kinds[0], nil
}

// kindToUnstage returns the kind that takes away what is found at a path. What is
// there counts for more than the hint.
func (t *Tasks) kindToUnstage(ctx context.Context, hint Source, found place) (sourceKind, error) {
	switch {
	case found.kind == placeRemote:
		return smbKind{t}, nil
	case found.kind == placeVolume && hint.ISCSI == nil:
		return diskKind{t}, nil
	case hint == (Source{}):
		return t.kindByHold(ctx, found)
	default:
		return t.kindOf(hint)
	}
}
