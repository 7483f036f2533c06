package sidecartest

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// statusRule says what a write of the status may change besides it.
type statusRule int

const (
	// noStatus is a kind whose objects are written whole.
	noStatus statusRule = iota
	// statusAndMetadata is a kind whose spec alone is kept.
	statusAndMetadata
	// statusOnly is a kind whose metadata is kept too.
	statusOnly
)

// statusRuleOf is the rule of a kind that the product knows.
//
// Source: the strategies of the kinds in kube-apiserver; API conventions,
// "Spec and Status", for custom resources.
func statusRuleOf(gvr schema.GroupVersionResource) statusRule {
	switch gvr.Resource {
	case "persistentvolumeclaims", "persistentvolumes", "nodes", "pods":
		return statusAndMetadata
	case "volumeattachments", "volumesnapshots", "volumesnapshotcontents", "volumegroupsnapshots", "volumegroupsnapshotcontents":
		return statusOnly
	default:
		return noStatus
	}
}

// keepOther sets what a request must not change back to what is stored: the
// status, or all but the status.
func keepOther(gvr schema.GroupVersionResource, subresource string, old, object runtime.Object) error {
	rule := statusRuleOf(gvr)
	if rule == noStatus {
		return nil
	}
	stored, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	if err != nil {
		return err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	if subresource != "status" {
		keep(fields, stored, "status")
	} else {
		keep(fields, stored, "spec")
		if rule == statusOnly {
			keep(fields, stored, "metadata")
		}
	}
	return fill(fields, object)
}

func keep(fields, stored map[string]any, name string) {
	if value, ok := stored[name]; ok {
		fields[name] = value
	} else {
		delete(fields, name)
	}
}

// fill makes an object of its fields, with nothing left of what it held.
func fill(fields map[string]any, object runtime.Object) error {
	target := reflect.ValueOf(object).Elem()
	target.SetZero()
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, object)
}
