// Package provisioner makes volumes for claims and deletes them again: the
// work of the external provisioner.
//
// It is built on the library that upstream's provisioner is built on
// (sig-storage-lib-external-provisioner), which decides when a claim needs a
// volume and when a volume is to go. The library sees the API server through
// a facade: that is where its surplus requests are left out and its answers to
// races mended. What a driver is asked, and how its answers are read, is here.
//
// No volume is lost: before a driver is asked for one, what it is asked is
// written to a journal in the API server. Whatever then happens to the process
// or the claim, the next leader finds the entry, asks again until the driver's
// answer is final, and deletes what nobody wants any more.
package provisioner

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller/metrics"

	"github.com/csi-windows/csi-windows/sidecar"
)

// Names on objects, as upstream's components know them.
const (
	finalizer      = "external-provisioner.volume.kubernetes.io/finalizer"
	cloneFinalizer = "provisioner.storage.kubernetes.io/cloning-protection"
	// Each keeps a snapshot while volumes are filled from it: that of the snapshot
	// controller, and that of upstream's provisioner.
	snapshotFinalizer         = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection"
	snapshotFinalizerUpstream = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection"
	annSelectedNode           = "volume.kubernetes.io/selected-node"
	annProvisioner            = "volume.kubernetes.io/storage-provisioner"
	annProvisionerBeta        = "volume.beta.kubernetes.io/storage-provisioner"
	annMigratedTo             = "pv.kubernetes.io/migrated-to"
	annDeletionSecretName     = "volume.kubernetes.io/provisioner-deletion-secret-name"
	annDeletionSecretSpace    = "volume.kubernetes.io/provisioner-deletion-secret-namespace"
	annModifySecretName       = "volume.kubernetes.io/controller-modify-secret-name"
	annModifySecretSpace      = "volume.kubernetes.io/controller-modify-secret-namespace"
	annAllowModeChange        = "snapshot.storage.kubernetes.io/allow-volume-mode-change"
	attributeProvisionerID    = "storage.kubernetes.io/csiProvisionerIdentity"
	attacherFinalizerPrefix   = "external-attacher/"
)

// Provisioner is the component.
type Provisioner struct {
	env       *sidecar.Env
	config    Config
	metrics   metrics.Metrics
	journalUp prometheus.Gauge
}

var _ sidecar.Component = (*Provisioner)(nil)

// New makes a provisioner. It says which setting is out of its limits.
func New(env *sidecar.Env, config Config) (*Provisioner, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Provisioner{env: env, config: config,
		metrics: metrics.New("controller"),
		journalUp: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "csi_sidecar_provisioner_journal_up",
			Help: "Whether volumes in the making are written down before the driver is asked: 1 yes, 0 no.",
		}),
	}, nil
}

// Name implements sidecar.Component.
func (p *Provisioner) Name() string { return sidecar.Provisioner }

// attacherFinalizer is the finalizer that the attacher puts on volumes.
func attacherFinalizer(driver string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '-'
	}, driver)
	if strings.HasSuffix(name, "-") {
		name += "X" // a name must not end with a dash
	}
	return attacherFinalizerPrefix + name
}

// handleOf is the id a volume has at the back-end, "" for a volume without CSI.
func handleOf(volume *v1.PersistentVolume) string {
	if volume.Spec.CSI == nil {
		return ""
	}
	return volume.Spec.CSI.VolumeHandle
}
