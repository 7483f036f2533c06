package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/csi-windows/csi-windows/sidecar"
)

// NoOwner is an OwnerLevel: the objects have no owner, and stay when the driver
// is removed.
const NoOwner = -1

// Config says how free capacity is published.
type Config struct {
	// Workers is how many objects are brought up to date at once; 1 when 0.
	// (--capacity-threads)
	Workers int
	// PollInterval is how often the driver is asked for each class and segment;
	// 1 min when 0. (--capacity-poll-interval)
	PollInterval time.Duration
	// RefreshDelay is the time between the news that a volume was made or
	// deleted and the question to the driver. All news in between are answered
	// by one question. 1 s when 0.
	RefreshDelay time.Duration
	// RetryMin is the delay before a failed question or write is tried again;
	// it doubles with each failure up to RetryMax. 1 s and 5 min when 0.
	// (--retry-interval-start, --retry-interval-max)
	RetryMin, RetryMax time.Duration
	// Timeout is how long one CSI call may take; 15 s when 0. (--timeout)
	Timeout time.Duration
	// ImmediateBinding publishes also for classes whose claims are bound before
	// a pod uses them. The scheduler does not look at these.
	// (--capacity-for-immediate-binding)
	ImmediateBinding bool

	// PodName is the name of the pod this process runs in, in Env.Namespace; the
	// owner is found from it. (environment variable POD_NAME)
	PodName string
	// OwnerLevel says how far up from the pod the owner of the objects is: 0 is
	// the pod itself, 1 its StatefulSet or DaemonSet, 2 the Deployment above its
	// ReplicaSet, NoOwner none. Where NodeName is set, the owner is the pod
	// whatever the level: a DaemonSet outlives its pods and nodes, and the
	// objects would outlive them with it. (--capacity-ownerref-level)
	OwnerLevel int

	// NodeName is the node that this process serves alone, where the driver's
	// volumes are local to nodes; empty for one process for the whole cluster.
	// (--node-deployment with the environment variable NODE_NAME)
	NodeName string
}

// Limits of the settings.
const (
	workersMax    = 1000
	ownerLevelMax = 10
	pollMin       = time.Second
)

func (c Config) withDefaults() Config {
	c.Workers = cmp.Or(c.Workers, 1)
	c.PollInterval = cmp.Or(c.PollInterval, time.Minute)
	c.RefreshDelay = cmp.Or(c.RefreshDelay, time.Second)
	c.RetryMin = cmp.Or(c.RetryMin, time.Second)
	c.RetryMax = cmp.Or(c.RetryMax, 5*time.Minute)
	c.Timeout = cmp.Or(c.Timeout, 15*time.Second)
	if c.NodeName != "" && c.OwnerLevel > 0 {
		c.OwnerLevel = 0
	}
	return c
}

func (c Config) check(env *sidecar.Env) error {
	var errs []error
	must := func(ok bool, field string, value any, limit string, others ...string) {
		if !ok {
			errs = append(errs, &sidecar.SettingError{Of: Name, Field: field, Value: value, Must: limit, Others: others})
		}
	}
	must(c.Workers >= 1 && c.Workers <= workersMax, "Workers", c.Workers, fmt.Sprintf("1 to %d", workersMax))
	must(c.PollInterval >= pollMin, "PollInterval", c.PollInterval, "at least "+pollMin.String())
	must(c.RefreshDelay > 0, "RefreshDelay", c.RefreshDelay, "positive")
	must(c.RetryMin > 0, "RetryMin", c.RetryMin, "positive")
	must(c.RetryMax >= c.RetryMin, "RetryMax", c.RetryMax, "at least %s", "RetryMin")
	must(c.Timeout > 0, "Timeout", c.Timeout, "positive")
	must(c.OwnerLevel >= NoOwner && c.OwnerLevel <= ownerLevelMax, "OwnerLevel", c.OwnerLevel, fmt.Sprintf("-1 to %d", ownerLevelMax))
	must(c.OwnerLevel == NoOwner || c.PodName != "", "PodName", "", "the pod's name, unless %s is -1", "OwnerLevel")
	must(env.Namespace != "", "Env.Namespace", "", "the namespace of the objects")
	return errors.Join(errs...)
}

// New makes the component. Nothing is touched before Run.
func New(env *sidecar.Env, config Config) (*Capacity, error) {
	config = config.withDefaults()
	if err := config.check(env); err != nil {
		return nil, err
	}
	return &Capacity{env: env, config: config, log: env.Log.With("component", Name)}, nil
}
