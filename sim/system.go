package sim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/csi-windows/csi-windows/sim/image"
)

// Sizes of the system disk.
const (
	systemDiskBytes = 128 << 30
	efiBytes        = 100 << 20
	systemBytes     = 60 << 30
	driveBytes      = 8 << 30
)

// prepareSystemDisk makes sure that the system disk is there, with a volume for
// every mapped drive.
func (n *Node) prepareSystemDisk() error {
	path := filepath.Join(n.config.Dir, disksFolder, "system.img")
	img, err := image.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		img, err = newSystemDisk(path)
		n.state.Disks = append([]*diskState{{
			Spec:   DiskSpec{Image: path, Bus: "SATA", Serial: "SIMSYSTEM0", FriendlyName: "Simulated system disk"},
			System: true, SizeBytes: systemDiskBytes,
		}}, n.state.Disks...)
	}
	if err != nil {
		return err
	}
	for _, d := range n.state.Disks {
		if d.System {
			d.Spec.Image = path // the node's folder may have moved
		}
	}
	for _, letter := range n.driveLetters() {
		if err == nil && n.state.SystemVolumes[letter] == "" {
			err = n.addSystemVolume(img, letter)
		}
		if err == nil {
			err = os.MkdirAll(n.driveFolder(letter), 0o755)
		}
	}
	if err == nil && n.config.Drives['C'] == "" {
		err = os.MkdirAll(filepath.Join(n.driveFolder("C"), "Windows", "System32"), 0o755)
	}
	return errors.Join(err, img.Close())
}

// newSystemDisk has the reserved partition and that of the firmware.
func newSystemDisk(path string) (*image.Image, error) {
	img, err := image.Create(path, systemDiskBytes)
	if err != nil {
		return nil, err
	}
	if err := img.InitGPT(uuid.NewString()); err != nil {
		return nil, errors.Join(err, img.Close())
	}
	_, err = img.AddPartition(image.PartitionSpec{SizeBytes: efiBytes, GPTType: image.GPTTypeEFI, Name: "EFI system partition"})
	if err != nil {
		return nil, errors.Join(err, img.Close())
	}
	return img, nil
}

func (n *Node) addSystemVolume(img *image.Image, letter string) error {
	size := int64(driveBytes)
	if letter == "C" {
		size = systemBytes
	}
	e, err := img.AddPartition(image.PartitionSpec{SizeBytes: size})
	if err != nil {
		return err
	}
	n.state.SystemVolumes[letter] = `\\?\Volume` + e.GUID + `\`
	return image.Format(img, e.OffsetBytes, e.SizeBytes, image.FormatSpec{Name: image.NTFS, Serial: newSerial(image.NTFS)})
}
