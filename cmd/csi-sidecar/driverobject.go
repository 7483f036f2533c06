package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-windows/csi-windows/sidecar/driverobject"
)

// driverObjectSettings are those of the CSIDriver object.
type driverObjectSettings struct {
	Config        driverobject.Config
	Modes, Policy string
	UpdateSeconds int
	Tokens        string
}

func declareDriverObject(f *flags, s *settings) {
	d := &s.DriverObject
	f.yes(&d.Config.Create, "create", "make the CSIDriver object when it is missing; without it the object is only checked")
	f.yes(&d.Config.Update, "update", "change what differs from these flags, where Kubernetes lets it change")
	f.maybe(&d.Config.AttachRequired, "attach-required", "volumes are attached to a node first; what the driver says when not given")
	f.maybe(&d.Config.PodInfoOnMount, "pod-info-on-mount", "tell the driver at NodePublishVolume for which pod")
	f.text(&d.Modes, "volume-lifecycle-modes", "Persistent, Ephemeral or both by a comma")
	f.text(&d.Policy, "fs-group-policy", "ReadWriteOnceWithFSType, File or None")
	f.maybe(&d.Config.StorageCapacity, "storage-capacity", "the scheduler looks at the published capacity")
	f.maybe(&d.Config.RequiresRepublish, "requires-republish", "NodePublishVolume is repeated from time to time")
	f.maybe(&d.Config.SELinuxMount, "selinux-mount", "volumes can be mounted with a SELinux context")
	f.text(&d.Tokens, "token-requests", `service account tokens for the driver, JSON: [{"audience":"a","expirationSeconds":3600}]`)
	f.number(&d.UpdateSeconds, "node-allocatable-update-period-seconds", "interval in which the kubelet asks how many volumes a node can take; 0 for once")
}

// finish reads what the flags hold as text.
func (d *driverObjectSettings) finish() error {
	for _, mode := range strings.Split(d.Modes, ",") {
		if mode = strings.TrimSpace(mode); mode != "" {
			d.Config.VolumeLifecycleModes = append(d.Config.VolumeLifecycleModes, storagev1.VolumeLifecycleMode(mode))
		}
	}
	if d.Policy != "" {
		policy := storagev1.FSGroupPolicy(d.Policy)
		d.Config.FSGroupPolicy = &policy
	}
	if d.UpdateSeconds != 0 {
		seconds := int64(d.UpdateSeconds)
		d.Config.NodeAllocatableUpdatePeriodSeconds = &seconds
	}
	if d.Tokens != "" {
		if err := json.Unmarshal([]byte(d.Tokens), &d.Config.TokenRequests); err != nil {
			return fmt.Errorf("--csidriver-token-requests: is no JSON list of audiences: %w", err)
		}
	}
	return nil
}

// maybe declares a switch that is nil when it is not given.
func (f *flags) maybe(value **bool, name, usage string) {
	f.Var(maybeValue{value}, f.prefix+name, usage)
}

// maybeValue is a switch that may not be given.
type maybeValue struct{ value **bool }

// String implements flag.Value.
func (m maybeValue) String() string {
	if m.value == nil || *m.value == nil {
		return ""
	}
	return strconv.FormatBool(**m.value)
}

// IsBoolFlag lets the flag stand without a value.
func (m maybeValue) IsBoolFlag() bool { return true }

// Set implements flag.Value.
func (m maybeValue) Set(text string) error {
	on, err := strconv.ParseBool(text)
	*m.value = &on
	return err
}
