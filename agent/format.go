package agent

import (
	"context"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// labelUnitsMax is the longest label of NTFS, in UTF-16 units.
// Source: MSFT_Volume.Format, FileSystemLabel.
const labelUnitsMax = 32

// fileSystem is a file system Windows can make.
type fileSystem struct {
	name            string
	clusterBytesMin uint32
	clusterBytesMax uint32
	labelUnitsMax   int
}

// fileSystems lists what FormatVolumeWith accepts. Source: Format-Volume and
// the cluster sizes supported from Windows Server 2019 on.
func fileSystems() []fileSystem {
	return []fileSystem{
		{"NTFS", 512, 2 << 20, labelUnitsMax},
		{"ReFS", 4 << 10, 64 << 10, labelUnitsMax},
		{"exFAT", 512, 32 << 20, 11},
		{"FAT32", 512, 64 << 10, 11},
	}
}

// hasFileSystem reports whether Windows has recognised a file system on the volume.
func hasFileSystem(volume OSVolume) bool { return isFileSystem(volume.FileSystem) }

func isFileSystem(name string) bool {
	switch strings.ToUpper(name) {
	case "", "RAW", "UNKNOWN":
		return false
	default:
		return true
	}
}

// IsVolumeFormatted implements host.Volume. A volume that holds anything but a
// file system of Windows is KindPrecondition, not "unformatted".
func (a *Agent) IsVolumeFormatted(ctx context.Context, volumeID string) (bool, error) {
	return volumeQuery(ctx, a, "IsVolumeFormatted", volumeID, func(ctx context.Context, id string) (bool, error) {
		// Asked at every stage of every volume, and nearly always true: one cheap call.
		if name, err := a.os.VolumeFileSystem(ctx, id); err == nil && isFileSystem(name) {
			return true, nil
		}
		volume, err := a.os.Volume(ctx, id)
		if err != nil {
			return false, err
		}
		if hasFileSystem(volume) {
			return true, nil
		}
		return false, a.mustBeBlankVolume(ctx, volume)
	})
}

// FormatVolume implements host.Volume.
func (a *Agent) FormatVolume(ctx context.Context, volumeID string) error {
	return a.volumeChange(ctx, "FormatVolume", volumeID, func(ctx context.Context, id string) error {
		volume, err := a.os.Volume(ctx, id)
		if err != nil || hasFileSystem(volume) {
			return err
		}
		return a.format(ctx, volume, host.FormatOptions{FileSystem: "NTFS"})
	})
}

// FormatVolumeWith implements host.Volume.
func (a *Agent) FormatVolumeWith(ctx context.Context, volumeID string, options host.FormatOptions) error {
	options, err := checkFormat(options)
	if err != nil {
		return a.mutation(ctx, "FormatVolumeWith", host.PrintableText(volumeID)).refused(err)
	}
	return a.volumeChange(ctx, "FormatVolumeWith", volumeID, func(ctx context.Context, id string) error {
		volume, err := a.os.Volume(ctx, id)
		if err != nil {
			return err
		}
		if !hasFileSystem(volume) {
			return a.format(ctx, volume, options)
		}
		if !strings.EqualFold(volume.FileSystem, options.FileSystem) {
			return refuse(host.KindPrecondition, "it is formatted with %s, not %s", volume.FileSystem, options.FileSystem)
		}
		return nil
	})
}

// checkFormat checks the options and gives the file system its canonical name.
func checkFormat(options host.FormatOptions) (host.FormatOptions, error) {
	if options.FileSystem == "" {
		options.FileSystem = "NTFS"
	}
	for _, fs := range fileSystems() {
		if !strings.EqualFold(fs.name, options.FileSystem) {
			continue
		}
		options.FileSystem = fs.name
		c := options.ClusterBytes
		if c != 0 && (c&(c-1) != 0 || c < fs.clusterBytesMin || c > fs.clusterBytesMax) {
			return options, invalid("clusterBytes", "%d is no power of two from %d to %d, as %s wants it",
				c, fs.clusterBytesMin, fs.clusterBytesMax, fs.name)
		}
		if utf16Units(options.Label, fs.labelUnitsMax) > fs.labelUnitsMax {
			return options, invalid("label", "longer than the %d characters %s allows", fs.labelUnitsMax, fs.name)
		}
		if hasControl(options.Label) {
			return options, invalid("label", "has control characters")
		}
		return options, nil
	}
	return options, invalid("fileSystem", "%q is none of NTFS, ReFS, exFAT and FAT32", host.PrintableText(options.FileSystem))
}

// format makes a file system on a volume Windows sees none on, once its bytes
// say that nobody else does either.
func (a *Agent) format(ctx context.Context, volume OSVolume, options host.FormatOptions) error {
	disk, err := a.os.Disk(ctx, volume.DiskNumber)
	if err != nil {
		return err
	}
	if disk.System {
		return refuse(host.KindPrecondition, "it lies on disk %d, which holds the operating system", disk.Number)
	}
	if err := a.mustBeBlankVolume(ctx, volume); err != nil {
		return err
	}
	if err := a.os.FormatVolume(ctx, volume.ID, options); err != nil {
		return err
	}
	after, err := a.os.Volume(ctx, volume.ID)
	if err != nil {
		return err
	}
	if !strings.EqualFold(after.FileSystem, options.FileSystem) {
		return refuse(host.KindInternal, "the node says file system %q after formatting", after.FileSystem)
	}
	return nil
}
