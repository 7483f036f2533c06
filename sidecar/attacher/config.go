package attacher

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/csi-windows/csi-windows/sidecar"
)

// Config says how volumes are attached. The zero value is that of the upstream
// attacher's flags, but for the number of workers.
type Config struct {
	// WorkerThreads is how many attachments are worked on at once; 100 when 0.
	// A worker mostly waits for the driver, so that many cost little, and fewer
	// would let one slow volume hold up others. (--worker-threads)
	WorkerThreads int
	// RetryMin is the delay before a failed attachment is tried again; it
	// doubles with each failure up to RetryMax. 1 s and 5 min when 0.
	// (--retry-interval-start, --retry-interval-max)
	RetryMin, RetryMax time.Duration
	// Timeout is how long one CSI call may take; 15 s when 0. (--timeout)
	Timeout time.Duration
	// ReconcileSync is the interval in which attachments are compared with what
	// a driver that can lists as published; 1 min when 0. (--reconcile-sync)
	ReconcileSync time.Duration
	// MaxEntries is how many volumes the driver is asked for at once when it
	// lists them; the driver chooses when 0. (--max-entries)
	MaxEntries int
	// DefaultFSType is the file system of volumes that name none; the driver
	// chooses when empty. (--default-fstype)
	DefaultFSType string
}

// maxWorkerThreads is more than any back-end attaches at once.
const maxWorkerThreads = 10_000

func (c Config) withDefaults() Config {
	c.WorkerThreads = cmp.Or(c.WorkerThreads, 100)
	c.RetryMin = cmp.Or(c.RetryMin, time.Second)
	c.RetryMax = cmp.Or(c.RetryMax, 5*time.Minute)
	c.Timeout = cmp.Or(c.Timeout, 15*time.Second)
	c.ReconcileSync = cmp.Or(c.ReconcileSync, time.Minute)
	return c
}

func (c Config) check() error {
	var errs []error
	limit := func(ok bool, field string, value any, limit string, others ...string) {
		if !ok {
			errs = append(errs, &sidecar.SettingError{Of: sidecar.Attacher, Field: field, Value: value, Must: limit, Others: others})
		}
	}
	limit(c.WorkerThreads >= 1 && c.WorkerThreads <= maxWorkerThreads,
		"WorkerThreads", c.WorkerThreads, fmt.Sprintf("1 to %d", maxWorkerThreads))
	limit(c.RetryMin > 0, "RetryMin", c.RetryMin, "positive")
	limit(c.RetryMax >= c.RetryMin, "RetryMax", c.RetryMax, "at least %s", "RetryMin")
	limit(c.Timeout > 0, "Timeout", c.Timeout, "positive")
	limit(c.ReconcileSync > 0, "ReconcileSync", c.ReconcileSync, "positive")
	limit(c.MaxEntries >= 0 && c.MaxEntries <= math.MaxInt32, "MaxEntries", c.MaxEntries, "0 to 2147483647")
	return errors.Join(errs...)
}

// Attacher attaches and detaches the volumes of one driver.
type Attacher struct {
	env    *sidecar.Env
	config Config
}

// New makes an attacher; Run has it work.
func New(env *sidecar.Env, config Config) (*Attacher, error) {
	config = config.withDefaults()
	if err := config.check(); err != nil {
		return nil, err
	}
	return &Attacher{env: env, config: config}, nil
}

// Name implements sidecar.Component.
func (*Attacher) Name() string { return sidecar.Attacher }
