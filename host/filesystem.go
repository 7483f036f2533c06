package host

import "context"

// LinkKind says what a path is, without following it.
type LinkKind string

// The kinds of links.
const (
	NotALink       LinkKind = ""           // a plain file or folder
	LinkSymlink    LinkKind = "Symlink"    // symbolic link
	LinkJunction   LinkKind = "Junction"   // mount-point reparse tag that leads to a folder
	LinkMountPoint LinkKind = "MountPoint" // mount-point reparse tag that leads to a volume
	LinkOther      LinkKind = "Other"      // any other reparse point
)

// LinkInfo is what a link says of itself.
type LinkInfo struct {
	Kind LinkKind
	// Target is the stored target: a path, or a volume id for a mount point.
	Target string
}

// Filesystem is the filesystem group. Every path must be absolute and lie below
// one of the agent's working folders, links followed on the way included.
type Filesystem interface {
	// PathExists reports whether something is at the path; a dangling link is.
	PathExists(ctx context.Context, path string) (bool, error)
	// Mkdir makes a folder and its missing parents. A folder that exists is success.
	Mkdir(ctx context.Context, path string) error
	// Rmdir removes an empty folder, a link or a mount point (the link only).
	// With force it removes a whole tree, never what a link in it leads to. A
	// missing path is success.
	Rmdir(ctx context.Context, path string, force bool) error
	// RmdirContents removes what is in a folder, and keeps the folder.
	RmdirContents(ctx context.Context, path string) error
	// CreateSymlink makes a link at targetPath that leads to sourcePath. (The
	// names are those of csi-proxy: the target is where the link is made.)
	CreateSymlink(ctx context.Context, sourcePath, targetPath string) error
	// IsSymlink reports whether the path is a symbolic link, junction or mount
	// point, dangling or not.
	IsSymlink(ctx context.Context, path string) (bool, error)
	// GetLink says what the link at the path is and where it leads. Addition.
	GetLink(ctx context.Context, path string) (LinkInfo, error)
	// GetPathStats returns the sizes of the volume or share a path leads to. A
	// path that leads to neither is KindPrecondition: the drive that holds it is
	// never meant. A share that is not mapped on the node is KindPrecondition too,
	// one that does not answer KindUnavailable. Addition.
	GetPathStats(ctx context.Context, path string) (VolumeStats, error)
}
