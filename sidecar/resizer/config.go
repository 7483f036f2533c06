package resizer

import (
	"time"

	"github.com/csi-windows/csi-windows/sidecar"
)

// Config says how the resizer works. Its zero value is upstream's default.
type Config struct {
	// Workers is how many claims are handled at once. Default 10.
	Workers int
	// RetryMin and RetryMax bound the delay before a failed call is made again.
	// The first is doubled with each failure. A request the driver called
	// infeasible comes again after RetryMax. Defaults 1 second and 5 minutes.
	RetryMin, RetryMax time.Duration
	// Timeout bounds a call to the driver. Default 10 seconds.
	Timeout time.Duration
	// ResizeTimeout and ModifyTimeout bound calls of ControllerExpandVolume and
	// ControllerModifyVolume. Default Timeout.
	ResizeTimeout, ModifyTimeout time.Duration
	// IgnoreInUse has a volume expanded again and again even when the driver
	// refused because it is in use. Without it the next attempt waits until no
	// pod uses the volume, for which pods are watched.
	IgnoreInUse bool
	// NoResizeAnnotation leaves the size before an expansion out of the
	// volume's annotations (feature gate AnnotateFsResize). With it a claim
	// that takes over a volume whose file system is still to grow has it grow.
	NoResizeAnnotation bool
	// NoModify leaves attributes classes alone (feature gate VolumeAttributesClass).
	NoModify bool
	// ExtraModifyMetadata adds the names of claim and volume to the parameters
	// of a modification.
	ExtraModifyMetadata bool
	// StartEvents has an event tell of each call that begins, as upstream's
	// does. Without it only of calls that last, or that failed before.
	StartEvents bool
}

func (c Config) withDefaults() Config {
	set := func(value *time.Duration, standard time.Duration) {
		if *value == 0 {
			*value = standard
		}
	}
	if c.Workers == 0 {
		c.Workers = 10
	}
	set(&c.RetryMin, time.Second)
	set(&c.RetryMax, 5*time.Minute)
	set(&c.Timeout, 10*time.Second)
	set(&c.ResizeTimeout, c.Timeout)
	set(&c.ModifyTimeout, c.Timeout)
	return c
}

func (c Config) validate() error {
	wrong := func(field string, value any, limit string, others ...string) error {
		return &sidecar.SettingError{Of: sidecar.Resizer, Field: field, Value: value, Must: limit, Others: others}
	}
	if c.Workers < 1 {
		return wrong("Workers", c.Workers, "at least 1")
	}
	for _, limit := range []struct {
		name  string
		value time.Duration
	}{
		{"RetryMin", c.RetryMin}, {"Timeout", c.Timeout}, {"ResizeTimeout", c.ResizeTimeout}, {"ModifyTimeout", c.ModifyTimeout},
	} {
		if limit.value <= 0 {
			return wrong(limit.name, limit.value, "above 0")
		}
	}
	if c.RetryMax < c.RetryMin {
		return wrong("RetryMax", c.RetryMax, "at least %s", "RetryMin")
	}
	return nil
}

// Resizer is the component.
type Resizer struct {
	env    *sidecar.Env
	config Config
}

// New makes a resizer.
func New(env *sidecar.Env, config Config) (*Resizer, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Resizer{env: env, config: config}, nil
}

// Name is the component's name.
func (r *Resizer) Name() string { return sidecar.Resizer }
