package wire

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

// Versions before v1beta3 of disk and volume write disk numbers as decimal texts.
// A number and a text share no wire type, so a text that is read as a number is
// not read at all: without these shapes every such request would be for disk 0.

// The keys of wirepb.DiskIdentifiers. Both are always present.
const (
	keyPage83       = "page83"
	keySerialNumber = "serialNumber"
)

// ParseDiskNumber reads a decimal disk number of 32 bits. Empty, signed, spaced
// and larger texts are refused rather than cut.
func ParseDiskNumber(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("disk number %.40q is no decimal number of 32 bits", text)
	}
	return uint32(n), nil
}

func formatDiskNumber(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// textToNumber reads the disk number in a field of a request.
func textToNumber(text, label, field string) (uint32, error) {
	n, err := ParseDiskNumber(text)
	if err != nil {
		return 0, &host.Error{Op: "Decode", Object: label + "." + field, Kind: host.KindInvalid, Cause: err}
	}
	return n, nil
}

func numberText(n uint32) *wirepb.NumberText { return &wirepb.NumberText{DiskId: formatDiskNumber(n)} }

// partitionDiskByText is the PartitionDisk request before v1beta3.
func partitionDiskByText() *shape {
	return reshape(func(old *wirepb.NumberText, label string) (*wirepb.PartitionDiskRequest, error) {
		n, err := textToNumber(old.GetDiskId(), label, "diskID")
		return &wirepb.PartitionDiskRequest{DiskNumber: n}, err
	}, func(newest *wirepb.PartitionDiskRequest) (*wirepb.NumberText, error) {
		return numberText(newest.GetDiskNumber()), nil
	})
}

// diskStatsByText is the DiskStats request of v1beta1 and v1beta2.
func diskStatsByText() *shape {
	return reshape(func(old *wirepb.NumberText, label string) (*wirepb.GetDiskStatsRequest, error) {
		n, err := textToNumber(old.GetDiskId(), label, "diskID")
		return &wirepb.GetDiskStatsRequest{DiskNumber: n}, err
	}, func(newest *wirepb.GetDiskStatsRequest) (*wirepb.NumberText, error) {
		return numberText(newest.GetDiskNumber()), nil
	})
}

// setAttachStateByText is the SetAttachState request of v1beta2.
func setAttachStateByText() *shape {
	return reshape(func(old *wirepb.TextAndFlag, label string) (*wirepb.SetDiskStateRequest, error) {
		n, err := textToNumber(old.GetText(), label, "diskID")
		return &wirepb.SetDiskStateRequest{DiskNumber: n, IsOnline: old.GetFlag()}, err
	}, func(newest *wirepb.SetDiskStateRequest) (*wirepb.TextAndFlag, error) {
		return &wirepb.TextAndFlag{Text: formatDiskNumber(newest.GetDiskNumber()), Flag: newest.GetIsOnline()}, nil
	})
}

// getAttachStateByText is the GetAttachState request of v1beta2.
func getAttachStateByText() *shape {
	return reshape(func(old *wirepb.NumberText, label string) (*wirepb.GetDiskStateRequest, error) {
		n, err := textToNumber(old.GetDiskId(), label, "diskID")
		return &wirepb.GetDiskStateRequest{DiskNumber: n}, err
	}, func(newest *wirepb.GetDiskStateRequest) (*wirepb.NumberText, error) {
		return numberText(newest.GetDiskNumber()), nil
	})
}

// volumesByDiskText is the ListVolumesOnDisk request of volume before v1beta3. It
// has no partition number and always means all partitions.
func volumesByDiskText() *shape {
	return reshape(func(old *wirepb.NumberText, label string) (*wirepb.ListVolumesOnDiskRequest, error) {
		n, err := textToNumber(old.GetDiskId(), label, "disk_id")
		return &wirepb.ListVolumesOnDiskRequest{DiskNumber: n}, err
	}, func(newest *wirepb.ListVolumesOnDiskRequest) (*wirepb.NumberText, error) {
		if newest.GetPartitionNumber() != 0 {
			return nil, &host.Error{Op: "ListVolumesOnDisk", Object: diskObject(newest.GetDiskNumber()), Kind: host.KindUnsupported,
				Cause: errors.New("this version lists the volumes of whole disks only")}
		}
		return numberText(newest.GetDiskNumber()), nil
	})
}

func diskObject(n uint32) string { return "disk " + formatDiskNumber(n) }

// numberAsText is the GetDiskNumberByName response of v1alpha1.
func numberAsText() *shape {
	return reshape(func(old *wirepb.NumberText, _ string) (*wirepb.GetDiskNumberByNameResponse, error) {
		n, err := ParseDiskNumber(old.GetDiskId())
		return &wirepb.GetDiskNumberByNameResponse{DiskNumber: n}, err
	}, func(newest *wirepb.GetDiskNumberByNameResponse) (*wirepb.NumberText, error) {
		return numberText(newest.GetDiskNumber()), nil
	})
}

// locationsByText is the ListDiskLocations response before v1beta3.
func locationsByText() *shape {
	return reshape(func(old *wirepb.TextKeyedDiskLocations, _ string) (*wirepb.ListDiskLocationsResponse, error) {
		locations, err := numberKeys(old.GetDiskLocations())
		return &wirepb.ListDiskLocationsResponse{DiskLocations: locations}, err
	}, func(newest *wirepb.ListDiskLocationsResponse) (*wirepb.TextKeyedDiskLocations, error) {
		return &wirepb.TextKeyedDiskLocations{DiskLocations: textKeys(newest.GetDiskLocations())}, nil
	})
}

// diskIDsByText is the ListDiskIDs response of v1beta1 and v1beta2.
func diskIDsByText() *shape {
	return reshape(func(old *wirepb.TextKeyedDiskIDs, _ string) (*wirepb.ListDiskIDsResponse, error) {
		byNumber, err := numberKeys(old.GetDiskIDs())
		ids := make(map[uint32]*wirepb.DiskIDs, len(byNumber))
		for n, old := range byNumber {
			ids[n] = &wirepb.DiskIDs{Page83: old.GetIdentifiers()[keyPage83], SerialNumber: old.GetIdentifiers()[keySerialNumber]}
		}
		return &wirepb.ListDiskIDsResponse{DiskIDs: ids}, err
	}, func(newest *wirepb.ListDiskIDsResponse) (*wirepb.TextKeyedDiskIDs, error) {
		ids := make(map[string]*wirepb.DiskIdentifiers, len(newest.GetDiskIDs()))
		for n, id := range newest.GetDiskIDs() {
			ids[formatDiskNumber(n)] = &wirepb.DiskIdentifiers{Identifiers: map[string]string{
				keyPage83: id.GetPage83(), keySerialNumber: id.GetSerialNumber(),
			}}
		}
		return &wirepb.TextKeyedDiskIDs{DiskIDs: ids}, nil
	})
}

// numberKeys turns decimal keys into numbers.
func numberKeys[V any](byText map[string]V) (map[uint32]V, error) {
	byNumber := make(map[uint32]V, len(byText))
	for text, value := range byText {
		n, err := ParseDiskNumber(text)
		if err != nil {
			return nil, err
		}
		byNumber[n] = value
	}
	return byNumber, nil
}

// textKeys turns numbers into decimal keys.
func textKeys[V any](byNumber map[uint32]V) map[string]V {
	byText := make(map[string]V, len(byNumber))
	for n, value := range byNumber {
		byText[formatDiskNumber(n)] = value
	}
	return byText
}
