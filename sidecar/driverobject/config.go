package driverobject

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-windows/csi-windows/sidecar"
)

// Config says what the CSIDriver object is to be like. A nil field is left to
// the API server when the object is made, and is never looked at in one that
// is there.
type Config struct {
	// Create makes the object when it is missing. Without it the object is only
	// checked.
	Create bool
	// Update changes fields of an object that is there and differs from this
	// Config, where Kubernetes lets them change: all but AttachRequired and
	// VolumeLifecycleModes. Without it a difference is only reported.
	Update bool

	// AttachRequired says that volumes are attached to a node before they are
	// used there. Nil is what the driver says: whether it has the controller
	// capability PUBLISH_UNPUBLISH_VOLUME.
	AttachRequired *bool
	// PodInfoOnMount tells the driver at NodePublishVolume for which pod.
	PodInfoOnMount *bool
	// VolumeLifecycleModes are Persistent, Ephemeral or both; Persistent when
	// empty.
	VolumeLifecycleModes []storagev1.VolumeLifecycleMode
	// FSGroupPolicy says when the kubelet changes the group of a volume's files:
	// ReadWriteOnceWithFSType, File or None.
	FSGroupPolicy *storagev1.FSGroupPolicy
	// StorageCapacity makes the scheduler look at the published capacity.
	StorageCapacity *bool
	// RequiresRepublish has the kubelet repeat NodePublishVolume from time to
	// time.
	RequiresRepublish *bool
	// SELinuxMount says that volumes can be mounted with a SELinux context.
	SELinuxMount *bool
	// TokenRequests are the service account tokens that the driver gets at
	// NodePublishVolume: audiences, and how long a token lives in seconds
	// (600 at least).
	TokenRequests []storagev1.TokenRequest
	// NodeAllocatableUpdatePeriodSeconds is how often the kubelet asks the
	// driver how many volumes a node can take, 10 at least; nil for once.
	NodeAllocatableUpdatePeriodSeconds *int64

	// PublishesCapacity says that a process of this deployment makes
	// CSIStorageCapacity objects. An object that makes the scheduler ignore them
	// is then reported.
	PublishesCapacity bool
}

// Limits of the API, see CSIDriverSpec and TokenRequest.
const (
	tokenSecondsMin  = 600
	updateSecondsMin = 10
)

func (c Config) check() error {
	var errs []error
	must := func(ok bool, field string, value any, limit string) {
		if !ok {
			errs = append(errs, &sidecar.SettingError{Of: sidecar.DriverObject, Field: field, Value: value, Must: limit})
		}
	}
	modes := []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral}
	for _, mode := range c.VolumeLifecycleModes {
		must(slices.Contains(modes, mode), "VolumeLifecycleModes", mode, "Persistent or Ephemeral")
	}
	policies := []storagev1.FSGroupPolicy{storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy, storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy}
	if c.FSGroupPolicy != nil {
		must(slices.Contains(policies, *c.FSGroupPolicy), "FSGroupPolicy", *c.FSGroupPolicy, "ReadWriteOnceWithFSType, File or None")
	}
	audiences := map[string]bool{}
	for _, token := range c.TokenRequests {
		must(!audiences[token.Audience], "TokenRequests", token.Audience, "of one audience each")
		audiences[token.Audience] = true
		if seconds := token.ExpirationSeconds; seconds != nil {
			must(*seconds >= tokenSecondsMin, "TokenRequests.ExpirationSeconds", *seconds, fmt.Sprintf("at least %d", tokenSecondsMin))
		}
	}
	if seconds := c.NodeAllocatableUpdatePeriodSeconds; seconds != nil {
		must(*seconds >= updateSecondsMin, "NodeAllocatableUpdatePeriodSeconds", *seconds, fmt.Sprintf("at least %d", updateSecondsMin))
	}
	return errors.Join(errs...)
}

// New makes the component. Nothing is touched before Run.
func New(env *sidecar.Env, config Config) (*DriverObject, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	return &DriverObject{
		env: env, config: config, log: env.Log.With("component", sidecar.DriverObject),
		findings: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "csi_sidecar_driver_findings",
			Help: "Number of things that are wrong with the CSIDriver object or with what nodes registered, by reason.",
		}, []string{"reason"}),
	}, nil
}
