package provisioner

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/csi-windows/csi-windows/sidecar"
)

// Config says how volumes are provisioned. The zero value is that of the
// upstream provisioner's flags: fields are named so that false and 0 mean the
// usual thing.
type Config struct {
	// WorkerThreads is how many claims, and how many volumes to delete, are
	// worked on at once; 100 when 0. (--worker-threads)
	WorkerThreads int
	// RetryMin is the delay before a failed claim or volume is tried again; it
	// doubles with each failure up to RetryMax. 1 s and 5 min when 0.
	// (--retry-interval-start, --retry-interval-max)
	RetryMin, RetryMax time.Duration
	// Timeout is how long one CSI call may take; 10 s when 0. (--timeout)
	Timeout time.Duration

	// VolumeNamePrefix begins the name of every volume; "pvc" when empty.
	// (--volume-name-prefix)
	VolumeNamePrefix string
	// VolumeNameUUIDLength is how many characters of the claim's uid, its
	// dashes left out, the name has; 0 or less keeps the uid as it is.
	// (--volume-name-uuid-length)
	VolumeNameUUIDLength int
	// DefaultFSType is the file system of volumes whose class names none; the
	// driver chooses when empty. (--default-fstype)
	DefaultFSType string
	// ExtraCreateMetadata tells the driver names and namespace of claim and
	// volume, as parameters. (--extra-create-metadata)
	ExtraCreateMetadata bool
	// ControllerPublishReadOnly marks volumes read-only whose only access mode
	// is ReadOnlyMany. (--controller-publish-readonly)
	ControllerPublishReadOnly bool
	// AllowVolumeModeConversion lets a claim with another volume mode than the
	// snapshot's source be filled from the snapshot without the annotation that
	// permits it. (--prevent-volume-mode-conversion=false)
	AllowVolumeModeConversion bool

	// StrictTopology asks for the selected node's own topology only.
	// (--strict-topology)
	StrictTopology bool
	// NoImmediateTopology asks for no topology when the claim is bound before a
	// pod uses it. (--immediate-topology=false)
	NoImmediateTopology bool

	// CloningProtectionThreads is how many sources of clones are freed at
	// once; 1 when 0. (--cloning-protection-threads)
	CloningProtectionThreads int
	// NoVolumeAttributesClass leaves the classes of volume attributes alone.
	// (--feature-gates=VolumeAttributesClass=false)
	NoVolumeAttributesClass bool

	// SuccessEvents reports every claim's beginning and success, as upstream
	// does, and not only where something took long or failed before.
	SuccessEvents bool
	// NoJournal goes without the journal of volumes under way. Without it a
	// volume is lost when the process is killed while it is made and the claim
	// is deleted before the next start.
	NoJournal bool

	// removalDelay is set by tests that wait for an empty journal.
	removalDelay time.Duration

	// NodeDeployment is set where one provisioner runs on each node beside a
	// driver of node-local volumes. (--node-deployment)
	NodeDeployment *NodeDeployment
	// CapacityChanged, if set, is told about each volume that was made or
	// deleted: the class' name and where the volume is, nil for unknown.
	CapacityChanged func(className string, topology []*csi.Topology)
}

// NodeDeployment makes a provisioner serve one node only.
type NodeDeployment struct {
	// NodeName is the node's name in Kubernetes.
	NodeName string
	// NoImmediateBinding leaves claims alone that no node was selected for.
	// (--node-deployment-immediate-binding=false)
	NoImmediateBinding bool
	// BaseDelay is the mean wait before the node competes for a claim without
	// a selected node, so that not all nodes do so at once. MaxDelay is the mean
	// wait before it looks again when it had no room. 20 s and 60 s when 0.
	// (--node-deployment-base-delay, --node-deployment-max-delay)
	BaseDelay, MaxDelay time.Duration
}

// Limits of the settings.
const (
	maxWorkerThreads = 10_000
	maxNamePrefix    = 63
	uidDigits        = 32
)

func (c Config) withDefaults() (Config, error) {
	c.WorkerThreads = cmp.Or(c.WorkerThreads, 100)
	c.RetryMin = cmp.Or(c.RetryMin, time.Second)
	c.RetryMax = cmp.Or(c.RetryMax, 5*time.Minute)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.VolumeNamePrefix = cmp.Or(c.VolumeNamePrefix, "pvc")
	c.CloningProtectionThreads = cmp.Or(c.CloningProtectionThreads, 1)
	if c.VolumeNameUUIDLength < 0 {
		c.VolumeNameUUIDLength = 0
	}
	if c.NodeDeployment != nil {
		node := *c.NodeDeployment
		node.BaseDelay = cmp.Or(node.BaseDelay, 20*time.Second)
		node.MaxDelay = cmp.Or(node.MaxDelay, 60*time.Second)
		c.NodeDeployment = &node
	}
	return c, c.check()
}

func (c Config) check() error {
	wrong := func(field string, value any, limit string, others ...string) error {
		return &sidecar.SettingError{Of: sidecar.Provisioner, Field: field, Value: value, Must: limit, Others: others}
	}
	var errs []error
	if c.WorkerThreads < 1 || c.WorkerThreads > maxWorkerThreads {
		errs = append(errs, wrong("WorkerThreads", c.WorkerThreads, fmt.Sprintf("1 to %d", maxWorkerThreads)))
	}
	if c.CloningProtectionThreads < 1 || c.CloningProtectionThreads > maxWorkerThreads {
		errs = append(errs, wrong("CloningProtectionThreads", c.CloningProtectionThreads, fmt.Sprintf("1 to %d", maxWorkerThreads)))
	}
	if c.RetryMin < 0 {
		errs = append(errs, wrong("RetryMin", c.RetryMin, "positive"))
	}
	if c.RetryMax < c.RetryMin {
		errs = append(errs, wrong("RetryMax", c.RetryMax, "at least %s", "RetryMin"))
	}
	if c.Timeout < 0 {
		errs = append(errs, wrong("Timeout", c.Timeout, "positive"))
	}
	if len(c.VolumeNamePrefix) > maxNamePrefix {
		errs = append(errs, wrong("VolumeNamePrefix", c.VolumeNamePrefix, fmt.Sprintf("at most %d characters", maxNamePrefix)))
	}
	if len(validation.IsDNS1123Subdomain(c.VolumeNamePrefix+"-0")) > 0 {
		errs = append(errs, wrong("VolumeNamePrefix", c.VolumeNamePrefix, "of lower case letters, digits, dashes and dots, as names of objects are"))
	}
	if c.VolumeNameUUIDLength > uidDigits {
		errs = append(errs, wrong("VolumeNameUUIDLength", c.VolumeNameUUIDLength, fmt.Sprintf("at most %d", uidDigits)))
	}
	if node := c.NodeDeployment; node != nil {
		if node.NodeName == "" {
			errs = append(errs, wrong("NodeDeployment.NodeName", "", "the name of the node"))
		}
		if node.BaseDelay < 0 {
			errs = append(errs, wrong("NodeDeployment.BaseDelay", node.BaseDelay, "positive"))
		}
		if node.MaxDelay < node.BaseDelay {
			errs = append(errs, wrong("NodeDeployment.MaxDelay", node.MaxDelay, "at least %s", "NodeDeployment.BaseDelay"))
		}
	}
	return errors.Join(errs...)
}
