package csikit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// readAllocated returns how many pieces came, and the error that ended them.
func (s *testServer) readAllocated(ctx context.Context, id string) (pieces int, err error) {
	stream, err := csi.NewSnapshotMetadataClient(s.conn).GetMetadataAllocated(ctx, &csi.GetMetadataAllocatedRequest{SnapshotId: id})
	for err == nil {
		if _, err = stream.Recv(); err == nil {
			pieces++
		}
	}
	return pieces, err
}

func TestAStreamIsCheckedAndAnswered(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeServices{allocated: func(stream csi.SnapshotMetadata_GetMetadataAllocatedServer) error {
		for range 3 {
			if err := stream.Send(&csi.GetMetadataAllocatedResponse{}); err != nil {
				return err
			}
		}
		return nil
	}}, nil)
	if pieces, err := s.readAllocated(t.Context(), "s"); pieces != 3 || !errors.Is(err, io.EOF) {
		t.Errorf("got %d pieces, %v", pieces, err)
	}
	if pieces, err := s.readAllocated(t.Context(), ""); pieces != 0 || status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %d pieces, %v", pieces, err)
	}
	if lines := s.log.lines("GetMetadataAllocated"); len(lines) != 2 {
		t.Errorf("the log: %v", lines)
	}
}

// The limit is for each piece: many that come in time may take longer together.
func TestALongStreamIsNotCutOff(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	s := serve(t, &fakeServices{allocated: func(stream csi.SnapshotMetadata_GetMetadataAllocatedServer) error {
		for range 25 {
			time.Sleep(limit / 20)
			if err := stream.Send(&csi.GetMetadataAllocatedResponse{}); err != nil {
				return err
			}
		}
		return nil
	}}, func(c *ServerConfig) { c.CallTimeout = limit })
	if pieces, err := s.readAllocated(t.Context(), "s"); pieces != 25 || !errors.Is(err, io.EOF) {
		t.Errorf("got %d pieces, %v", pieces, err)
	}
}

func TestC064_AHungStreamIsCutOffAndNotRepeated(t *testing.T) {
	t.Parallel()
	leave, sent := make(chan struct{}), make(chan error, 1)
	s := serve(t, &fakeServices{allocated: func(stream csi.SnapshotMetadata_GetMetadataAllocatedServer) error {
		<-leave
		err := stream.Send(&csi.GetMetadataAllocatedResponse{})
		sent <- err
		return err
	}}, func(c *ServerConfig) { c.CallTimeout = 50 * time.Millisecond })
	if _, err := s.readAllocated(t.Context(), "s"); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	for range 5 {
		if _, err := s.readAllocated(t.Context(), "s"); status.Code(err) != codes.Aborted {
			t.Errorf("got %v", err)
		}
	}
	close(leave)
	if err := <-sent; err == nil {
		t.Error("a piece was sent on a call that had ended")
	}
	eventually(t, "free", func() bool {
		_, err := s.readAllocated(t.Context(), "s")
		return status.Code(err) != codes.Aborted
	})
}

// Reads do not keep each other out, also when they end at the same moment.
func TestReadsRunSideBySide(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeServices{}, nil)
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for range 100 {
				_, err := s.node().NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: fmt.Sprint("p", i)})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
