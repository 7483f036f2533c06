package wire

import "github.com/csi-windows/csi-windows/wire/wirepb"

// rmdirWithContext is the Rmdir request before v1beta2. Its second field is a
// context, which has no effect; read as the newest message, the context POD would
// be taken for force, and a plain remove for a recursive one.
func rmdirWithContext() *shape {
	return reshape(func(old *wirepb.ContextualRmdirRequest, _ string) (*wirepb.RmdirRequest, error) {
		return &wirepb.RmdirRequest{Path: old.GetPath(), Force: old.GetForce()}, nil
	}, func(newest *wirepb.RmdirRequest) (*wirepb.ContextualRmdirRequest, error) {
		return &wirepb.ContextualRmdirRequest{Path: newest.GetPath(), Force: newest.GetForce()}, nil
	})
}

// existsAfterError is the PathExists response before v1beta2: the first field is
// an error text, which stays empty because failures are statuses.
func existsAfterError() *shape {
	return reshape(func(old *wirepb.TextAndFlag, _ string) (*wirepb.PathExistsResponse, error) {
		return &wirepb.PathExistsResponse{Exists: old.GetFlag()}, nil
	}, func(newest *wirepb.PathExistsResponse) (*wirepb.TextAndFlag, error) {
		return &wirepb.TextAndFlag{Flag: newest.GetExists()}, nil
	})
}

// isLinkAfterError is the IsMountPoint response of v1alpha1 and v1beta1, built
// like existsAfterError.
func isLinkAfterError() *shape {
	return reshape(func(old *wirepb.TextAndFlag, _ string) (*wirepb.IsSymlinkResponse, error) {
		return &wirepb.IsSymlinkResponse{IsSymlink: old.GetFlag()}, nil
	}, func(newest *wirepb.IsSymlinkResponse) (*wirepb.TextAndFlag, error) {
		return &wirepb.TextAndFlag{Flag: newest.GetIsSymlink()}, nil
	})
}
