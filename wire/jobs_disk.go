package wire

import (
	"context"
	"errors"
	"fmt"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

func listDiskLocations(ctx context.Context, s *site, _ *wirepb.ListDiskLocationsRequest) (*wirepb.ListDiskLocationsResponse, error) {
	locations, err := s.host.ListDiskLocations(ctx)
	if err != nil {
		return nil, err
	}
	answer := make(map[uint32]*wirepb.DiskLocation, len(locations))
	for number, location := range locations {
		answer[number] = diskLocation(location)
	}
	return &wirepb.ListDiskLocationsResponse{DiskLocations: answer}, nil
}

func diskLocation(l host.DiskLocation) *wirepb.DiskLocation {
	return &wirepb.DiskLocation{Adapter: text(l.Adapter), Bus: text(l.Bus), Target: text(l.Target), LUNID: text(l.LUNID)}
}

func partitionDisk(ctx context.Context, s *site, q *wirepb.PartitionDiskRequest) (*wirepb.PartitionDiskResponse, error) {
	return &wirepb.PartitionDiskResponse{}, s.host.PartitionDisk(ctx, q.GetDiskNumber())
}

func rescan(ctx context.Context, s *site, _ *wirepb.RescanRequest) (*wirepb.RescanResponse, error) {
	return &wirepb.RescanResponse{}, s.host.Rescan(ctx)
}

func listDiskIDs(ctx context.Context, s *site, _ *wirepb.ListDiskIDsRequest) (*wirepb.ListDiskIDsResponse, error) {
	ids, err := s.host.ListDiskIDs(ctx)
	if err != nil {
		return nil, err
	}
	answer := make(map[uint32]*wirepb.DiskIDs, len(ids))
	for number, id := range ids {
		answer[number] = diskIDs(id)
	}
	return &wirepb.ListDiskIDsResponse{DiskIDs: answer}, nil
}

func diskIDs(id host.DiskIDs) *wirepb.DiskIDs {
	return &wirepb.DiskIDs{Page83: text(id.Page83), SerialNumber: text(id.SerialNumber)}
}

func getDiskStats(ctx context.Context, s *site, q *wirepb.GetDiskStatsRequest) (*wirepb.GetDiskStatsResponse, error) {
	stats, err := s.host.GetDiskStats(ctx, q.GetDiskNumber())
	return &wirepb.GetDiskStatsResponse{TotalBytes: stats.TotalBytes}, err
}

func setDiskState(ctx context.Context, s *site, q *wirepb.SetDiskStateRequest) (*wirepb.SetDiskStateResponse, error) {
	return &wirepb.SetDiskStateResponse{}, s.host.SetDiskState(ctx, q.GetDiskNumber(), q.GetIsOnline())
}

func getDiskState(ctx context.Context, s *site, q *wirepb.GetDiskStateRequest) (*wirepb.GetDiskStateResponse, error) {
	online, err := s.host.GetDiskState(ctx, q.GetDiskNumber())
	return &wirepb.GetDiskStateResponse{IsOnline: online}, err
}

// getDiskNumberByName serves the one method that no newer version has: it looks a
// page 0x83 id up among the disks. Two disks with one id are refused, since
// either could be the wrong one.
func getDiskNumberByName(ctx context.Context, s *site, q *wirepb.GetDiskNumberByNameRequest) (*wirepb.GetDiskNumberByNameResponse, error) {
	const op = "GetDiskNumberByName"
	name := q.GetDiskName()
	if name == "" {
		return nil, &host.Error{Op: op, Object: "disk_name", Kind: host.KindInvalid, Cause: errors.New("the name is empty")}
	}
	ids, err := s.host.ListDiskIDs(ctx)
	if err != nil {
		return nil, err
	}
	var found []uint32
	for number, id := range ids {
		if id.Page83 == name {
			found = append(found, number)
		}
	}
	object := fmt.Sprintf("disk with page 83 id %.200q", name)
	switch len(found) {
	case 0:
		return nil, &host.Error{Op: op, Object: object, Kind: host.KindNotFound}
	case 1:
		return &wirepb.GetDiskNumberByNameResponse{DiskNumber: found[0]}, nil
	default:
		return nil, &host.Error{Op: op, Object: object, Kind: host.KindPrecondition, Cause: fmt.Errorf("%d disks have this id", len(found))}
	}
}
