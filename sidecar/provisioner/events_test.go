package provisioner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// reasons are those of the events, repeats left out.
func (b *bed) reasons() []string {
	var reasons []string
	for _, event := range b.Events() {
		reasons = append(reasons, strings.Fields(event)[1])
	}
	return slices.Compact(reasons)
}

func TestEventsOfAVolume(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		all   bool
		fails []codes.Code
		want  []string
	}{
		"quick":             {false, nil, nil},
		"quick, all wanted": {true, nil, []string{reasonProvisioning, reasonSucceeded}},
		"after a failure":   {false, []codes.Code{codes.Internal}, []string{reasonFailed, reasonProvisioning, reasonSucceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
			b.config.SuccessEvents = test.all
			for _, code := range test.fails {
				b.Driver.Once("CreateVolume", sidecartest.Fail(code, "no"))
			}
			stop := b.start()
			b.writes("create persistentvolumes " + pvName)
			b.wait("events", func() bool { return len(b.reasons()) >= len(test.want) })
			stop()
			got := b.reasons()
			slices.Sort(got) // the library sends its own a moment later
			slices.Sort(test.want)
			if !slices.Equal(got, test.want) {
				t.Errorf("events %q, want %q", b.Events(), test.want)
			}
		})
	}
}

func TestSlowVolumeIsReported(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
	clock := clocktesting.NewFakeClock(time.Now())
	b.Env.Clock = clock
	b.config.NoJournal = true
	b.config.Timeout = time.Minute
	b.Driver.Once("CreateVolume", sidecartest.Hang)
	b.start()
	b.wait("asked", func() bool { return len(b.Driver.Calls("CreateVolume")) == 1 && clock.HasWaiters() })
	if b.saw("Normal Provisioning ") {
		t.Error("reported at once")
	}
	b.wait("reported", func() bool { clock.Step(slow); return b.saw("Normal Provisioning ") })
}
