package driverobject

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// wish is the object as Config and the driver want it.
func wish(info csiclient.Info, config Config) storagev1.CSIDriverSpec {
	spec := storagev1.CSIDriverSpec{
		AttachRequired:                     config.AttachRequired,
		PodInfoOnMount:                     config.PodInfoOnMount,
		VolumeLifecycleModes:               config.VolumeLifecycleModes,
		StorageCapacity:                    config.StorageCapacity,
		FSGroupPolicy:                      config.FSGroupPolicy,
		TokenRequests:                      config.TokenRequests,
		RequiresRepublish:                  config.RequiresRepublish,
		SELinuxMount:                       config.SELinuxMount,
		NodeAllocatableUpdatePeriodSeconds: config.NodeAllocatableUpdatePeriodSeconds,
	}
	if spec.AttachRequired == nil && hasController(info) {
		attaches := canAttach(info)
		spec.AttachRequired = &attaches
	}
	return spec
}

// hasController reports whether the driver speaks for its controller. A node
// plugin does not, and then says nothing of what the controller can do.
func hasController(info csiclient.Info) bool {
	return info.Plugin[csi.PluginCapability_Service_CONTROLLER_SERVICE]
}

func canAttach(info csiclient.Info) bool {
	return info.Controller[csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME]
}

// difference is a field that is not what it is wanted to be.
type difference struct {
	field      string
	have, want any
	immutable  bool
}

// differences compares the fields that Config gives. Those it does not give
// are whoever's made the object.
func differences(have *storagev1.CSIDriverSpec, config Config) []difference {
	var found []difference
	compare := func(field string, have, want any, immutable bool) {
		wanted := reflect.ValueOf(want)
		if wanted.IsNil() || wanted.Kind() == reflect.Slice && wanted.Len() == 0 || reflect.DeepEqual(have, want) {
			return
		}
		found = append(found, difference{field, have, want, immutable})
	}
	compare("attachRequired", have.AttachRequired, config.AttachRequired, true)
	compare("volumeLifecycleModes", sortedModes(have.VolumeLifecycleModes), sortedModes(config.VolumeLifecycleModes), true)
	compare("podInfoOnMount", have.PodInfoOnMount, config.PodInfoOnMount, false)
	compare("fsGroupPolicy", have.FSGroupPolicy, config.FSGroupPolicy, false)
	compare("storageCapacity", have.StorageCapacity, config.StorageCapacity, false)
	compare("requiresRepublish", have.RequiresRepublish, config.RequiresRepublish, false)
	compare("seLinuxMount", have.SELinuxMount, config.SELinuxMount, false)
	compare("tokenRequests", have.TokenRequests, config.TokenRequests, false)
	compare("nodeAllocatableUpdatePeriodSeconds", have.NodeAllocatableUpdatePeriodSeconds, config.NodeAllocatableUpdatePeriodSeconds, false)
	return found
}

func sortedModes(modes []storagev1.VolumeLifecycleMode) []storagev1.VolumeLifecycleMode {
	return slices.Sorted(slices.Values(modes))
}

// text is the difference in words a reader of the object knows.
func (d difference) text() string {
	have, want := inJSON(d.have), inJSON(d.want)
	if have == "null" {
		have = "not set"
	}
	return fmt.Sprintf("%s is %s, not %s", d.field, have, want)
}

func inJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value) // fields of the API have a JSON form
	}
	return string(text)
}

// create makes the object. It is there afterwards, whoever was first.
func (r *run) create(ctx context.Context) error {
	object := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: r.driver}, Spec: wish(r.info, r.config)}
	_, err := r.env.Kube.StorageV1().CSIDrivers().Create(ctx, object, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create CSIDriver %s: %w", r.driver, err)
	}
	if err == nil {
		r.log.InfoContext(ctx, "Made the CSIDriver object", "driver", r.driver)
	}
	return nil
}

// update changes what may be changed, in one request. It tells whether there
// was anything; if so, the cache is about to show it.
func (r *run) update(ctx context.Context, object *storagev1.CSIDriver, changes []difference) (changed bool, err error) {
	fields := map[string]any{}
	var texts []string
	for _, change := range changes {
		if !change.immutable {
			fields[change.field] = change.want
			texts = append(texts, change.text())
		}
	}
	if len(fields) == 0 {
		return false, nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.UID}, "spec": fields})
	if err == nil {
		_, err = r.env.Kube.StorageV1().CSIDrivers().Patch(ctx, r.driver, types.MergePatchType, body, metav1.PatchOptions{})
	}
	if err != nil {
		return false, fmt.Errorf("patch CSIDriver %s: %w", r.driver, err)
	}
	r.log.InfoContext(ctx, "Changed the CSIDriver object", "driver", r.driver, "before", strings.Join(texts, "; "))
	return true, nil
}
