package snapshotter

import (
	"errors"
	"fmt"
	"time"

	"github.com/csi-windows/csi-windows/sidecar"
)

// Config says how snapshots are taken. Fields left zero have the defaults of
// upstream's csi-snapshotter.
type Config struct {
	// Workers is how many contents of a kind are handled at once; 10 if zero.
	Workers int
	// RetryMin and RetryMax bound the delay before a content whose handling
	// failed, or whose snapshot is not ready yet, is looked at again; 1 s and
	// 5 min if zero.
	RetryMin, RetryMax time.Duration
	// Timeout is how long a call of the driver may take; 1 min if zero.
	Timeout time.Duration
	// NamePrefix begins the names of snapshots at the back-end, before the uid
	// of the VolumeSnapshot; "snapshot" if empty.
	NamePrefix string
	// NameUIDLength is how many characters of the uid, counted without its
	// dashes, a name has; all with the dashes if zero or below.
	NameUIDLength int
	// ExtraCreateMetadata adds the names of the snapshot, its namespace and
	// its content to the parameters that the driver gets.
	ExtraCreateMetadata bool
	// Groups has group snapshots taken too, if the driver can and the cluster
	// knows the kind.
	Groups bool
	// GroupNamePrefix and GroupNameUIDLength are those of group snapshots;
	// the prefix is "groupsnapshot" if empty.
	GroupNamePrefix    string
	GroupNameUIDLength int
	// NodeName has only those contents handled that are managed by the node:
	// the sidecar runs on each node, beside a driver of volumes that are local
	// to it. Empty for one sidecar that handles all.
	NodeName string
	// KindsCheck is how long a cluster without the kinds of snapshots is left
	// alone before it is asked for them again; 30 min if zero.
	KindsCheck time.Duration
}

// uidLengthMax is the length of a uid without its dashes.
const uidLengthMax = 32

func (c Config) withDefaults() Config {
	orElse := func(value *time.Duration, otherwise time.Duration) {
		if *value == 0 {
			*value = otherwise
		}
	}
	orElse(&c.RetryMin, time.Second)
	orElse(&c.RetryMax, 5*time.Minute)
	orElse(&c.Timeout, time.Minute)
	orElse(&c.KindsCheck, 30*time.Minute)
	if c.Workers == 0 {
		c.Workers = 10
	}
	if c.NamePrefix == "" {
		c.NamePrefix = "snapshot"
	}
	if c.GroupNamePrefix == "" {
		c.GroupNamePrefix = "groupsnapshot"
	}
	return c
}

func (c Config) validate() error {
	var problems []error
	must := func(ok bool, field string, value any, limit string, others ...string) {
		if !ok {
			problems = append(problems, &sidecar.SettingError{Of: sidecar.Snapshotter, Field: field, Value: value, Must: limit, Others: others})
		}
	}
	must(c.Workers >= 1, "Workers", c.Workers, "1 or more")
	must(c.RetryMin > 0, "RetryMin", c.RetryMin, "above 0")
	must(c.RetryMax >= c.RetryMin, "RetryMax", c.RetryMax, "at least %s", "RetryMin")
	must(c.Timeout > 0, "Timeout", c.Timeout, "above 0")
	must(c.KindsCheck > 0, "KindsCheck", c.KindsCheck, "above 0")
	must(c.NameUIDLength <= uidLengthMax, "NameUIDLength", c.NameUIDLength, fmt.Sprintf("%d or less", uidLengthMax))
	must(c.GroupNameUIDLength <= uidLengthMax, "GroupNameUIDLength", c.GroupNameUIDLength, fmt.Sprintf("%d or less", uidLengthMax))
	return errors.Join(problems...)
}

// Snapshotter is the component that takes and removes snapshots.
type Snapshotter struct {
	env    *sidecar.Env
	config Config
}

// New makes a snapshotter. What the driver can do is asked at Run.
func New(env *sidecar.Env, config Config) (*Snapshotter, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Snapshotter{env: env, config: config}, nil
}

// Name implements sidecar.Component.
func (*Snapshotter) Name() string { return sidecar.Snapshotter }
