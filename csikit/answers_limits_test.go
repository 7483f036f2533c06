package csikit_test

import (
	"context"
	"errors"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/csikit/kittest"
)

// controllerOf is the Controller service over a backend, without a server.
func controllerOf(t *testing.T, backend csikit.Backend) csi.ControllerServer {
	t.Helper()
	driver, err := csikit.New(csikit.Config{Name: "test.example.com", Version: "1", Backend: backend})
	if err != nil {
		t.Fatal(err)
	}
	return driver.Services().Controller
}

func TestAnswersBeyondWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	c := controllerOf(t, honest()) // of two volumes of 1 GiB
	_, err := c.ListVolumes(within(t), &csi.ListVolumesRequest{MaxEntries: 1})
	expect(t, "an entry too many", err, codes.Internal, "2 entries, asked was for at most 1")
	_, err = c.ControllerExpandVolume(within(t), &csi.ControllerExpandVolumeRequest{
		VolumeId: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 1, LimitBytes: 1<<30 - 1}})
	if !errors.Is(err, csikit.ErrOutOfRange) {
		t.Errorf("a volume that would have to shrink: %v", err)
	}
}

// An id that could not come back in a request would be a volume that cannot be deleted.
func TestIDsThatCouldNotComeBackAreADefect(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a\nb", "a\x00", "a\xc3\x28", "a\u0085"} {
		l := honest()
		l.volume.ID, l.snapshot.ID = id, id
		errs := askAll(t, l)
		for _, call := range []string{"CreateVolume", "ListVolumes", "CreateSnapshot"} {
			expect(t, call, errs[call], codes.Internal, "the backend's answer: ", "control character")
		}
	}
	l := honest()
	l.volume.Context = map[string]string{"k": "\xc3\x28"}
	expect(t, "context", askAll(t, l)["CreateVolume"], codes.Internal, "UTF-8")
	l = honest()
	l.next = "a\nb"
	expect(t, "token", askAll(t, l)["ListVolumes"], codes.Internal, "the next token")
}

// plain is a backend that does only what it has to.
type plain struct{ csikit.Backend }

func TestParametersNobodyCheckedAreNotConfirmed(t *testing.T) {
	t.Parallel()
	memory := kittest.NewBackend()
	made, err := memory.CreateVolume(within(t), csikit.CreateVolumeRequest{Name: "v"})
	if err != nil {
		t.Fatal(err)
	}
	for name, backend := range map[string]csikit.Backend{"checked": memory, "not checked": plain{memory}} {
		answer, err := controllerOf(t, backend).ValidateVolumeCapabilities(within(t), &csi.ValidateVolumeCapabilitiesRequest{
			VolumeId: made.ID, VolumeCapabilities: []*csi.VolumeCapability{writer()}, Parameters: map[string]string{csikit.ContextLabel: "data"}})
		if err != nil || answer.GetConfirmed() == nil {
			t.Fatalf("%s: %v %v", name, answer, err)
		}
		if confirmed := len(answer.GetConfirmed().GetParameters()) == 1; confirmed != (name == "checked") {
			t.Errorf("%s: %v", name, answer)
		}
	}
}

// asked remembers the request of a list.
type asked struct {
	*kittest.Backend
	list csikit.ListSnapshotsRequest
}

func (a *asked) ListSnapshots(_ context.Context, r csikit.ListSnapshotsRequest) (csikit.SnapshotPage, error) {
	a.list = r
	return csikit.SnapshotPage{}, nil
}

func TestABackendGetsAllThatAListIsAskedFor(t *testing.T) {
	t.Parallel()
	a := &asked{Backend: kittest.NewBackend()}
	_, err := controllerOf(t, a).ListSnapshots(within(t), &csi.ListSnapshotsRequest{
		MaxEntries: 3, StartingToken: "t", SourceVolumeId: "v", SnapshotId: "s", Secrets: map[string]string{"k": "x"}})
	if r := a.list; err != nil || r.MaxEntries != 3 || r.Token != "t" || r.SourceVolumeID != "v" || r.SnapshotID != "s" || r.Secrets["k"] != "x" {
		t.Errorf("the backend got %+v, %v", r, err)
	}
}
