package client_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

func TestMain(m *testing.M) { wiretest.Main(m) }

// open makes a client that is closed at the end of the test.
func open(t *testing.T, options client.Options) *client.Client {
	t.Helper()
	c, err := client.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// apis parses "disk/v1" and the like.
func apis(t *testing.T, names ...string) []wire.API {
	t.Helper()
	var all []wire.API
	for _, name := range names {
		parsed, err := wire.ParseAPIs(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parsed...)
	}
	return all
}

// wantKind compares the kind of an error; KindInternal stands for itself.
func wantKind(t *testing.T, err error, want host.Kind) {
	t.Helper()
	var failure *host.Error
	if !errors.As(err, &failure) || failure.Kind != want {
		t.Errorf("error %v, want one of kind %q", err, want)
	}
}

// richHost answers every question with something.
func richHost() *wiretest.Host {
	location := host.DiskLocation{Adapter: "1", Bus: "2", Target: "3", LUNID: "4"}
	ids := host.DiskIDs{Page83: "naa.6", SerialNumber: "S"}
	return &wiretest.Host{
		Locations: map[uint32]host.DiskLocation{3: location}, IDs: map[uint32]host.DiskIDs{3: ids},
		DiskStats: host.DiskStats{TotalBytes: 5 << 30}, Online: true,
		Disks: []host.DiskInfo{{
			Number: 3, Location: location, IDs: ids, FriendlyName: "F", BusType: "NVMe", Style: host.StyleGPT,
			SizeBytes: 5 << 30, Offline: true, OfflineReason: "policy", ReadOnly: true, System: true,
		}},
		VolumeIDs: []string{"v1", "v2"}, VolumeID: "v1", DiskNumber: 3, Formatted: true,
		VolumeStats: host.VolumeStats{TotalBytes: 7 << 30, UsedBytes: 1 << 30},
		Volumes: []host.VolumeInfo{{
			ID: "v1", DiskNumber: 3, PartitionNumber: 2, FileSystem: "NTFS", Label: "L", SizeBytes: 7 << 30, FreeBytes: 6 << 30,
			ClusterBytes: 4096, Health: host.HealthWarning, HealthDetail: "scan needed", MountPaths: []string{`C:\m`},
		}},
		Mounts: []host.Mount{{VolumeID: "v1", Path: `C:\m`}},
		Exists: true, Symlink: true, Link: host.LinkInfo{Kind: host.LinkJunction, Target: `C:\t`},
		Mappings: []host.SmbMapping{{RemotePath: `\\s\h`, LocalPath: "Z:", RequirePrivacy: true, Status: host.MappingOK}},
		IQNs:     []string{"iqn.a"}, Portals: []host.TargetPortal{{Address: "10.0.0.1", Port: 3260}},
		TargetDisks: []uint32{3, 4294967295}, Targets: []host.TargetInfo{{IQN: "iqn.a", Connected: true, DiskNumbers: []uint32{3}}},
		SerialNumber: "B", Service: host.ServiceInfo{DisplayName: "D", StartType: host.StartDisabled, Status: host.ServiceStopped},
	}
}

// arguments makes arguments for a method: none is a zero value.
func arguments(ctx context.Context, method reflect.Type) []reflect.Value {
	args := []reflect.Value{reflect.ValueOf(ctx)}
	for i := 1; i < method.NumIn(); i++ {
		switch method.In(i) {
		case reflect.TypeFor[host.TargetPortal]():
			args = append(args, reflect.ValueOf(host.TargetPortal{Address: "10.0.0.1", Port: 3261}))
		case reflect.TypeFor[host.ConnectOptions]():
			args = append(args, reflect.ValueOf(host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: "u", ChapSecret: "0123456789ab"}))
		case reflect.TypeFor[host.FormatOptions]():
			args = append(args, reflect.ValueOf(host.FormatOptions{FileSystem: "ReFS", ClusterBytes: 65536, Label: "L"}))
		default:
			args = append(args, map[reflect.Kind]reflect.Value{
				reflect.String: reflect.ValueOf("v1"), reflect.Bool: reflect.ValueOf(true),
				reflect.Uint32: reflect.ValueOf(uint32(300 + i)), reflect.Int64: reflect.ValueOf(int64(5 << 30)),
			}[method.In(i).Kind()])
		}
	}
	return args
}

// results turns what a method returned into plain values.
func results(values []reflect.Value) []any {
	all := make([]any, len(values))
	for i, value := range values {
		all[i] = value.Interface()
	}
	return all
}

// Every method of the contract, asked through the client and asked directly: the
// host hears the same, and the caller gets the same.
func TestClientIsTheHost(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	served, direct := richHost(), richHost()
	wiretest.Serve(t, wire.ServerConfig{Host: served, Place: place})
	c := open(t, client.Options{Place: place})
	contract := reflect.TypeFor[host.Host]()
	for i := range contract.NumMethod() {
		name := contract.Method(i).Name
		args := arguments(t.Context(), contract.Method(i).Type)
		through := results(reflect.ValueOf(c).MethodByName(name).Call(slices.Concat(args[:0:0], arguments(t.Context(), contract.Method(i).Type))))
		directly := results(reflect.ValueOf(direct).MethodByName(name).Call(args))
		if diff := cmp.Diff(directly, through); diff != "" {
			t.Errorf("%s: answers (-direct +through the client):\n%s", name, diff)
		}
		if diff := cmp.Diff(direct.Calls(), served.Calls()); diff != "" {
			t.Errorf("%s: calls (-direct +through the client):\n%s", name, diff)
		}
		direct.Reset()
		served.Reset()
	}
	want := map[string]string{
		"disk": "v1", "volume": "v2alpha1", "filesystem": "v2alpha1", "smb": "v1", "iscsi": "v1alpha2", "system": "v1alpha1", "extension": "v1alpha1",
	}
	if diff := cmp.Diff(want, c.Chosen()); diff != "" {
		t.Errorf("chosen (-want +got):\n%s", diff)
	}
}

// Every method over every version alone: what the version has gives the right
// answer, what it lacks is KindUnsupported, and nothing is in between.
func TestEveryVersionAlone(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	served := richHost()
	wiretest.Serve(t, wire.ServerConfig{Host: served, Place: place})
	has := map[wire.API]map[string]bool{}
	for _, d := range wire.Describe() {
		if has[d.API] == nil {
			has[d.API] = map[string]bool{}
		}
		has[d.API][d.Op] = true
	}
	contract := reflect.TypeFor[host.Host]()
	for _, api := range wire.APIs() {
		c := open(t, client.Options{Place: place, Groups: []string{api.Group}, Versions: map[string][]string{api.Group: {api.Version}}})
		direct := richHost()
		for i := range contract.NumMethod() {
			name := contract.Method(i).Name
			args := arguments(t.Context(), contract.Method(i).Type)
			whole := name == "ListVolumesOnDisk" && slices.Contains([]string{"v1alpha1", "v1beta1", "v1beta2"}, api.Version)
			if whole {
				args[2] = reflect.ValueOf(uint32(0)) // old versions have no partition number
			}
			got := results(reflect.ValueOf(c).MethodByName(name).Call(args))
			if !has[api][name] {
				err, _ := got[len(got)-1].(error)
				wantKind(t, err, host.KindUnsupported)
				continue
			}
			if diff := cmp.Diff(results(reflect.ValueOf(direct).MethodByName(name).Call(args)), got); diff != "" {
				t.Errorf("%s %s: (-direct +got):\n%s", api, name, diff)
			}
		}
	}
}

// A request that an old version cannot express is refused rather than changed.
func TestPartitionNumberIsNotDropped(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	h := richHost()
	wiretest.Serve(t, wire.ServerConfig{Host: h, Place: place, APIs: apis(t, "volume/v1beta2")})
	_, err := open(t, client.Options{Place: place}).ListVolumesOnDisk(t.Context(), 3, 1)
	wantKind(t, err, host.KindUnsupported)
	if calls := h.Calls(); len(calls) > 0 {
		t.Errorf("the server was asked %v", calls)
	}
}

// within fails the test unless do takes no longer than limit, in the best of a few
// tries: on a busy machine one try says little.
func within(t *testing.T, limit time.Duration, do func()) {
	t.Helper()
	var took time.Duration
	for range 5 {
		started := time.Now()
		do()
		if took = time.Since(started); took <= limit {
			return
		}
	}
	t.Errorf("took %v, want %v at the most", took, limit)
}

// C062: newest first, down to what the server has, within two seconds in total.
func TestC062_FallsBackVersionByVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		served []string
		want   string
	}{
		"all":         {[]string{"disk"}, "v1"},
		"betas":       {[]string{"disk/v1beta1", "disk/v1beta2"}, "v1beta2"},
		"only oldest": {[]string{"disk/v1alpha1"}, "v1alpha1"},
	} {
		place := wiretest.Place(t)
		wiretest.Serve(t, wire.ServerConfig{Host: richHost(), Place: place, APIs: apis(t, c.served...)})
		within(t, client.DefaultDialTimeout, func() {
			opened := open(t, client.Options{Place: place, DialTimeout: time.Minute})
			if err := opened.PartitionDisk(t.Context(), 1); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := opened.Chosen()["disk"]; got != c.want {
				t.Errorf("%s: chose %s, want %s", name, got, c.want)
			}
		})
	}
}

// C062: nothing offered gives one error that lists every pipe tried.
func TestC062_NothingOffered(t *testing.T) {
	t.Parallel()
	c := open(t, client.Options{Place: wiretest.Place(t), DialTimeout: time.Minute})
	var err error
	within(t, client.DefaultDialTimeout, func() { err = c.PartitionDisk(t.Context(), 1) })
	wantKind(t, err, host.KindUnavailable)
	for _, version := range []string{"v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1"} {
		if name := pipe.Name("disk", version); strings.Count(err.Error(), name+".sock:")+strings.Count(err.Error(), name+":") == 0 {
			t.Errorf("%q does not list %s", err, name)
		}
	}
	if len(c.Chosen()) != 0 {
		t.Errorf("chosen: %v", c.Chosen())
	}
}

// The order of preference is the caller's.
func TestPreferredVersions(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	wiretest.Serve(t, wire.ServerConfig{Host: richHost(), Place: place})
	c := open(t, client.Options{Place: place, Versions: map[string][]string{"filesystem": {"v1beta1", "v1"}}})
	if err := c.Connect(t.Context(), "filesystem", "disk"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"filesystem": "v1beta1", "disk": "v1"}, c.Chosen()); diff != "" {
		t.Errorf("chosen (-want +got):\n%s", diff)
	}
	_, err := c.GetLink(t.Context(), "x")
	if err != nil {
		t.Error(err)
	}
	wantKind(t, c.RmdirContents(t.Context(), "x"), host.KindUnsupported)
}

func TestNewChecksItsOptions(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]client.Options{
		"unknown group":       {Groups: []string{"tape"}},
		"unknown version":     {Versions: map[string][]string{"disk": {"v7"}}},
		"version of no group": {Groups: []string{"disk"}, Versions: map[string][]string{"smb": {"v1"}}},
	} {
		if _, err := client.New(options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A foreign csi-proxy lacks our group, and may lack others: its callers are told
// that, and not that it is away.
func TestMissingGroupIsUnsupported(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	wiretest.Serve(t, wire.ServerConfig{Host: richHost(), Place: place, APIs: apis(t, "disk", "volume", "filesystem")})
	c := open(t, client.Options{Place: place})
	_, err := c.ListDisks(t.Context())
	wantKind(t, err, host.KindUnsupported)
	_, err = c.GetServerInfo(t.Context())
	wantKind(t, err, host.KindUnsupported)
	wantKind(t, c.AddTargetPortal(t.Context(), host.TargetPortal{Address: "a"}), host.KindUnsupported)
	if err := c.Rescan(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestUnusedGroupIsUnsupported(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	wiretest.Serve(t, wire.ServerConfig{Host: richHost(), Place: place})
	c := open(t, client.Options{Place: place, Groups: []string{"disk"}})
	wantKind(t, c.Mkdir(t.Context(), `C:\x`), host.KindUnsupported)
}
