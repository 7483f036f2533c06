package wire

// filesystemVersions are the five versions of the filesystem group. The two oldest
// are one, and so are v1beta2 and v1.
//
// PathExists and Mkdir of the two oldest carry a context in their second field.
// The newest messages do not declare that field; it is read as unknown and has no
// effect. Their responses have an error text, which stays empty.
func filesystemVersions() []version {
	oldest := func() []method {
		return []method{
			row("PathExists", pathExists).answers(existsAfterError()),
			row("Mkdir", mkdir),
			row("Rmdir", rmdir).asks(rmdirWithContext()),
			row("LinkPath", createSymlink),
			row("IsMountPoint", isSymlink).answers(isLinkAfterError()),
		}
	}
	stable := func() []method {
		return []method{
			row("PathExists", pathExists),
			row("Mkdir", mkdir),
			row("Rmdir", rmdir),
			row("CreateSymlink", createSymlink),
			row("IsSymlink", isSymlink),
		}
	}
	return []version{
		{API{GroupFilesystem, "v1alpha1"}, "Filesystem", oldest()},
		{API{GroupFilesystem, "v1beta1"}, "Filesystem", oldest()},
		{API{GroupFilesystem, "v1beta2"}, "Filesystem", stable()},
		{API{GroupFilesystem, "v1"}, "Filesystem", stable()},
		{API{GroupFilesystem, "v2alpha1"}, "Filesystem", append(stable(), row("RmdirContents", rmdirContents))},
	}
}
