package wire_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wirepb"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

var (
	diskV1      = wire.API{Group: wire.GroupDisk, Version: "v1"}
	volumeV1    = wire.API{Group: wire.GroupVolume, Version: "v1"}
	rescanPath  = "/v1.Disk/Rescan"
	waitTimeout = 30 * time.Second
)

// dial connects to one pipe the way csi-proxy's client does.
func dial(t testing.TB, place pipe.Place, api wire.API, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return place.Dial(ctx, api.Group, api.Version)
		}))
	conn, err := grpc.NewClient("passthrough:///"+pipe.Name(api.Group, api.Version), options...)
	if err != nil {
		t.Fatalf("dial %s: %v", api, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// rescan makes the plainest of calls.
func rescan(ctx context.Context, conn *grpc.ClientConn) error {
	return conn.Invoke(ctx, rescanPath, &wirepb.RescanRequest{}, &wirepb.RescanResponse{})
}

// One pipe cannot reach what another serves, not even another version of its group.
func TestPipesAreIsolated(t *testing.T) {
	t.Parallel()
	h := &wiretest.Host{}
	place := serve(t, h)
	rows := wire.Rows()
	for _, api := range wire.APIs() {
		conn := dial(t, place, api)
		for _, row := range rows {
			if row.API == api {
				continue
			}
			err := conn.Invoke(t.Context(), "/"+row.Service+"/"+row.Name, row.Request(), row.Response())
			wantCode(t, err, codes.Unimplemented)
		}
	}
	wantCalls(t, h)
}

func TestNewServerChecksItsConfiguration(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]wire.ServerConfig{
		"no host":     {},
		"unknown API": {Host: &wiretest.Host{}, APIs: []wire.API{{Group: "disk", Version: "v9"}}},
		"no API":      {Host: &wiretest.Host{}, APIs: []wire.API{}},
	} {
		if _, err := wire.NewServer(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Only the pipes of the chosen APIs exist.
func TestServesOnlyWhatIsAsked(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	server := wiretest.Serve(t, wire.ServerConfig{Host: &wiretest.Host{}, Place: place, APIs: []wire.API{volumeV1, diskV1, volumeV1}})
	if got := server.APIs(); len(got) != 2 || got[0] != diskV1 || got[1] != volumeV1 {
		t.Errorf("serves %v, want %v and %v", got, diskV1, volumeV1)
	}
	for _, api := range wire.APIs() {
		conn, err := place.Dial(t.Context(), api.Group, api.Version)
		wanted := api == diskV1 || api == volumeV1
		if (err == nil) != wanted {
			t.Errorf("dial %s: %v, served: %t", api, err, wanted)
		}
		if err == nil {
			_ = conn.Close()
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("dial %s: %v is not fs.ErrNotExist", api, err)
		}
	}
}

// C058: a second server names the pipe in use and leaves the first alone; what it
// had opened by then is closed again.
func TestC058_SecondServerNamesThePipe(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	wiretest.Serve(t, wire.ServerConfig{Host: &wiretest.Host{}, Place: place, APIs: []wire.API{volumeV1}})
	second, err := wire.NewServer(wire.ServerConfig{Host: &wiretest.Host{}, Place: place})
	if err != nil {
		t.Fatal(err)
	}
	err = second.Start(t.Context())
	if !errors.Is(err, pipe.ErrInUse) || err.Error() != "pipe csi-proxy-volume-v1 is in use" {
		t.Errorf("second server: %v", err)
	}
	if _, err := place.Dial(t.Context(), "disk", "v1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a pipe of the failed start is still there: %v", err)
	}
	conn := dial(t, place, volumeV1)
	if err := conn.Invoke(t.Context(), "/v1.Volume/WriteVolumeCache", &wirepb.WriteVolumeCacheRequest{}, &wirepb.WriteVolumeCacheResponse{}); err != nil {
		t.Errorf("the first server no longer serves: %v", err)
	}
	if err := second.Shutdown(t.Context()); err != nil {
		t.Errorf("shut down a server that never started: %v", err)
	}
}

func TestServerStartsOnce(t *testing.T) {
	t.Parallel()
	server := wiretest.Serve(t, wire.ServerConfig{Host: &wiretest.Host{}, Place: wiretest.Place(t), APIs: []wire.API{diskV1}})
	if err := server.Start(t.Context()); err == nil {
		t.Error("a started server started again")
	}
}

// After Shutdown no pipe is left, and another server may take the names.
func TestShutdownLeavesNothing(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	for range 2 {
		server, err := wire.NewServer(wire.ServerConfig{Host: &wiretest.Host{}, Place: place})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := server.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" {
			if left, _ := filepath.Glob(filepath.Join(place.Dir, "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		}
	}
}

func TestHealthKnowsOnlyThisPipe(t *testing.T) {
	t.Parallel()
	client := healthpb.NewHealthClient(dial(t, serve(t, &wiretest.Host{}), diskV1))
	for service, want := range map[string]codes.Code{"": codes.OK, "v1.Disk": codes.OK, "v1.Volume": codes.NotFound} {
		answer, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		wantCode(t, err, want)
		if want == codes.OK && answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("service %q is %s", service, answer.GetStatus())
		}
	}
}

// C061: the version and what is served are visible by a call.
func TestC061_ServerInfo(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	extension := wire.API{Group: wire.GroupExtension, Version: "v1alpha1"}
	wiretest.Serve(t, wire.ServerConfig{Host: &wiretest.Host{}, Place: place, APIs: []wire.API{diskV1, extension}, Version: "v1.2.3"})
	var answer wirepb.GetServerInfoResponse
	err := dial(t, place, extension).Invoke(t.Context(), "/v1alpha1.Extension/GetServerInfo", &wirepb.GetServerInfoRequest{}, &answer)
	if err != nil {
		t.Fatal(err)
	}
	if answer.GetVersion() != "v1.2.3" || len(answer.GetApis()) != 2 || answer.GetApis()[0].GetVersion() != "v1" {
		t.Errorf("got %v", &answer)
	}
}

// A name that is no valid UTF-8 does not hide the others.
func TestOddNamesDoNotBreakAnAnswer(t *testing.T) {
	t.Parallel()
	h := &wiretest.Host{IDs: map[uint32]host.DiskIDs{1: {Page83: "good"}, 2: {Page83: "bad\xff"}}}
	var answer wirepb.ListDiskIDsResponse
	err := dial(t, serve(t, h), diskV1).Invoke(t.Context(), "/v1.Disk/ListDiskIDs", &wirepb.ListDiskIDsRequest{}, &answer)
	if err != nil || answer.GetDiskIDs()[1].GetPage83() != "good" || !strings.HasPrefix(answer.GetDiskIDs()[2].GetPage83(), "bad") {
		t.Errorf("got %v, %v", &answer, err)
	}
}
