package main

import (
	"time"

	"github.com/csi-windows/csi-windows/sidecar"
)

// prefixes are what the flags of a component begin with when several may run.
func prefixes() map[string]string {
	return map[string]string{
		sidecar.Registrar:     "registrar-",
		sidecar.LivenessProbe: "livenessprobe-",
		sidecar.DriverObject:  "csidriver-",
		sidecar.Provisioner:   "provisioner-",
		sidecar.Attacher:      "attacher-",
		sidecar.Resizer:       "resizer-",
		sidecar.Snapshotter:   "snapshotter-",
	}
}

// declareComponent declares the flags of one component.
func declareComponent(f *flags, component string, s *settings) {
	switch component {
	case sidecar.Registrar:
		declareRegistrar(f, s)
	case sidecar.LivenessProbe:
		declareLiveness(f, s)
	case sidecar.DriverObject:
		declareDriverObject(f, s)
	case sidecar.Provisioner:
		declareProvisioner(f, s)
		declareCapacity(f, s)
	case sidecar.Attacher:
		declareAttacher(f, s)
	case sidecar.Resizer:
		declareResizer(f, s)
	case sidecar.Snapshotter:
		declareSnapshotter(f, s)
	}
}

// retries declares the flags most components have.
func (f *flags) retries(least, most *time.Duration) {
	f.time(least, "retry-interval-start", "delay before something that failed is tried again; it doubles with each failure (1s)")
	f.time(most, "retry-interval-max", "longest such delay (5m)")
}

func declareProvisioner(f *flags, s *settings) {
	c := &s.Provisioner
	f.number(&c.WorkerThreads, "worker-threads", "how many claims are worked on at once (100)")
	f.retries(&c.RetryMin, &c.RetryMax)
	f.time(&c.Timeout, "timeout", "how long one call of the driver may take (10s)")
	f.text(&c.VolumeNamePrefix, "volume-name-prefix", "beginning of the name of every volume (pvc)")
	f.number(&c.VolumeNameUUIDLength, "volume-name-uuid-length", "how many characters of the claim's uid the name has; all if not above 0")
	f.text(&c.DefaultFSType, "default-fstype", "file system of volumes whose class names none")
	f.yes(&c.ExtraCreateMetadata, "extra-create-metadata", "tell the driver the names of claim and volume as parameters")
	f.yes(&c.ControllerPublishReadOnly, "controller-publish-readonly", "mark volumes read-only whose only access mode is ReadOnlyMany")
	f.no(&c.AllowVolumeModeConversion, "prevent-volume-mode-conversion", "refuse another volume mode than that of a snapshot's source unless it is permitted")
	f.yes(&c.StrictTopology, "strict-topology", "ask for the selected node's own topology only")
	f.no(&c.NoImmediateTopology, "immediate-topology", "ask for topology when a claim is bound before a pod uses it")
	f.number(&c.CloningProtectionThreads, "cloning-protection-threads", "how many sources of clones are freed at once (1)")
	f.yes(&c.SuccessEvents, "success-events", "report every claim's beginning and success, not only where it took long or failed before")
	f.no(&c.NoJournal, "journal", "write down what is under way, so that no volume is lost if the process is killed")
	f.gates(&s.ProvisionerGates, "feature-gates", "NAME=BOOL,…: VolumeAttributesClass; others have no effect")
	f.yes(&s.NodeDeployment.On, "node-deployment", "serve one node's volumes only; the node's name is in the environment as NODE_NAME")
	f.no(&s.NodeDeployment.NoImmediateBinding, "node-deployment-immediate-binding", "compete for claims that no node was selected for")
	f.time(&s.NodeDeployment.BaseDelay, "node-deployment-base-delay", "mean wait before such a competition (20s)")
	f.time(&s.NodeDeployment.MaxDelay, "node-deployment-max-delay", "longest such wait (60s)")
	f.ignore("snapshot-orphan-sweep-interval", "finalizer-threads")
}

func declareCapacity(f *flags, s *settings) {
	c := &s.Capacity
	f.yes(&c.On, "enable-capacity", "publish the driver's free capacity as CSIStorageCapacity objects")
	f.number(&c.Threads, "capacity-threads", "how many of them are refreshed at once (1)")
	f.time(&c.PollInterval, "capacity-poll-interval", "interval in which the driver is asked (1m)")
	f.yes(&c.Immediate, "capacity-for-immediate-binding", "also for classes with immediate binding")
	f.number(&c.OwnerLevel, "capacity-ownerref-level", "which owner of the pod NAMESPACE/POD_NAME owns them: 0 the pod, 1 its owner, …; -1 none")
	f.ignore("kube-api-capacity-qps", "kube-api-capacity-burst", "capacity-controller-deployment-mode")
}

func declareAttacher(f *flags, s *settings) {
	c := &s.Attacher
	f.number(&c.WorkerThreads, "worker-threads", "how many attachments are worked on at once (100)")
	f.retries(&c.RetryMin, &c.RetryMax)
	f.time(&c.Timeout, "timeout", "how long one call of the driver may take (15s)")
	f.time(&c.ReconcileSync, "reconcile-sync", "interval in which attachments are compared with what the driver lists (1m)")
	f.number(&c.MaxEntries, "max-entries", "how many volumes the driver is asked for at once; 0 for its own choice")
	f.text(&c.DefaultFSType, "default-fstype", "file system of volumes that name none")
	f.gates(&s.AttacherGates, "feature-gates", "NAME=BOOL,…; none has an effect")
	f.ignore("max-grpc-log-length", "resync")
}

func declareResizer(f *flags, s *settings) {
	c := &s.Resizer
	f.number(&c.Workers, "workers", "how many claims are worked on at once (10)")
	f.retries(&c.RetryMin, &c.RetryMax)
	f.time(&c.Timeout, "timeout", "how long one call of the driver may take (10s)")
	f.time(&c.ResizeTimeout, "resize-timeout", "the same for ControllerExpandVolume")
	f.time(&c.ModifyTimeout, "modify-timeout", "the same for ControllerModifyVolume")
	f.no(&c.IgnoreInUse, "handle-volume-inuse-error", "wait until no pod uses a volume that the driver refused to expand in use")
	f.yes(&c.ExtraModifyMetadata, "extra-modify-metadata", "tell the driver the names of claim and volume as parameters")
	f.yes(&c.StartEvents, "start-events", "report every call's beginning, not only of those that last or failed before")
	f.gates(&s.ResizerGates, "feature-gates", "NAME=BOOL,…: VolumeAttributesClass, AnnotateFsResize; others have no effect")
	f.ignore("resync-period")
}

func declareSnapshotter(f *flags, s *settings) {
	c := &s.Snapshotter
	f.number(&c.Workers, "worker-threads", "how many snapshots are worked on at once (10)")
	f.retries(&c.RetryMin, &c.RetryMax)
	f.time(&c.Timeout, "timeout", "how long one call of the driver may take (1m)")
	f.text(&c.NamePrefix, "snapshot-name-prefix", "beginning of the name of every snapshot (snapshot)")
	f.number(&c.NameUIDLength, "snapshot-name-uuid-length", "how many characters of the uid the name has; all if not above 0")
	f.text(&c.GroupNamePrefix, "groupsnapshot-name-prefix", "beginning of the name of every group snapshot (groupsnapshot)")
	f.number(&c.GroupNameUIDLength, "groupsnapshot-name-uuid-length", "the same length for group snapshots")
	f.yes(&c.ExtraCreateMetadata, "extra-create-metadata", "tell the driver the names of snapshot, namespace and content as parameters")
	f.yes(&s.SnapshotterNodeDeployment, "node-deployment", "handle contents managed by this node only; its name is in the environment as NODE_NAME")
	f.gates(&s.SnapshotterGates, "feature-gates", "NAME=BOOL,…: CSIVolumeGroupSnapshot; others have no effect")
	f.yes(&c.Groups, "enable-volume-group-snapshots", "take group snapshots, if the driver can; false is the same as the gate's false")
	f.ignore("resync-period")
}

func declareRegistrar(f *flags, s *settings) {
	c := &s.Registrar
	// The two that every manifest of a registrar has are known without a prefix too.
	plain := f.of("")
	plain.text(&c.KubeletRegistrationPath, "kubelet-registration-path", "path of the driver's socket as the kubelet sees it; needed")
	plain.text(&c.PluginRegistrationPath, "plugin-registration-path", `the kubelet's plugins_registry as this process sees it (/registration, on Windows C:\registration)`)
	f.text(&s.RegistrarMode, "mode", "registration, or kubelet-registration-probe to tell by the exit code whether the driver is registered")
	f.time(&c.Timeout, "operation-timeout", "how long one call of the driver may take (1s)")
	f.again(&c.Timeout, "timeout")
	f.ignore("connection-timeout", "max-grpc-log-length")
	if f.prefix == "" {
		f.number(&s.HealthPort, "health-port", "port of /healthz on all addresses; 0 for none")
		return
	}
	f.again(&c.KubeletRegistrationPath, "kubelet-registration-path")
	f.again(&c.PluginRegistrationPath, "plugin-registration-path")
}

func declareLiveness(f *flags, s *settings) {
	c := &s.Liveness
	f.time(&c.ProbeTimeout, "probe-timeout", "how long the driver may take to answer (1s)")
	f.number(&c.HealthPort, "health-port", "port of /healthz on all addresses (9808)")
	f.ignore("max-grpc-log-length")
	if f.prefix != "" {
		f.text(&c.HTTPEndpoint, "http-endpoint", "address of /healthz and the metrics instead of the port")
	}
}
