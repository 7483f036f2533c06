package attacher

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/grpc/status"
)

// requestTimeout bounds a request to the API server.
const requestTimeout = 30 * time.Second

// object is a part of a JSON merge patch. What is nil in it is removed.
type object = map[string]any

// writeError is a write that the API server did not take.
type writeError struct {
	what string
	err  error
}

func (w *writeError) Error() string { return w.what + ": " + w.err.Error() }

func (w *writeError) Unwrap() error { return w.err }

// patchAttachment changes a VolumeAttachment, but never another one of the
// same name that was made since.
func (r *run) patchAttachment(ctx context.Context, va *storagev1.VolumeAttachment, what string, patch object, subresource ...string) (*storagev1.VolumeAttachment, error) {
	what = fmt.Sprintf("%s VolumeAttachment %s", what, va.Name)
	body, err := encode(va, patch)
	if err != nil {
		return nil, &writeError{what, err}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	written, err := r.env.Kube.StorageV1().VolumeAttachments().Patch(ctx, va.Name, types.MergePatchType, body, metav1.PatchOptions{}, subresource...)
	if err != nil {
		return nil, &writeError{what, err}
	}
	return written, nil
}

func (r *run) patchVolume(ctx context.Context, pv *v1.PersistentVolume, what string, patch object) error {
	what = fmt.Sprintf("%s PersistentVolume %s", what, pv.Name)
	body, err := encode(pv, patch)
	if err != nil {
		return &writeError{what, err}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err = r.env.Kube.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		return &writeError{what, err}
	}
	return nil
}

// encode makes the body of a patch that holds for one object only.
func encode(target metav1.Object, patch object) ([]byte, error) {
	metadata, _ := patch["metadata"].(object)
	if metadata == nil {
		metadata = object{}
	}
	metadata["uid"] = target.GetUID()
	patch["metadata"] = metadata
	return json.Marshal(patch)
}

// withFinalizer is the metadata that adds the attacher's finalizer. A list is
// replaced whole, so that it must be the list of the version that was read.
func (r *run) withFinalizer(target metav1.Object) object {
	return object{
		"resourceVersion": target.GetResourceVersion(),
		"finalizers":      append(slices.Clone(target.GetFinalizers()), r.finalizer),
	}
}

// withoutFinalizer is the metadata that removes the attacher's finalizer. It
// needs no version where the object is being deleted: the API server refuses
// to add a finalizer to one, so that no other one can be lost or come back.
func (r *run) withoutFinalizer(target metav1.Object) (metadata object, isLast bool) {
	metadata = object{"finalizers": nil}
	var rest []string
	for _, one := range target.GetFinalizers() {
		if one != r.finalizer {
			rest = append(rest, one)
		}
	}
	if len(rest) > 0 {
		metadata["finalizers"] = rest
	}
	if target.GetDeletionTimestamp() == nil {
		metadata["resourceVersion"] = target.GetResourceVersion()
	}
	return metadata, len(rest) == 0
}

func (r *run) hasFinalizer(target metav1.Object) bool {
	return slices.Contains(target.GetFinalizers(), r.finalizer)
}

// attachedStatus is the change of a status to attached; nil if it is that
// already.
func attachedStatus(va *storagev1.VolumeAttachment, publishContext map[string]string) object {
	old := va.Status.AttachmentMetadata
	if va.Status.Attached && va.Status.AttachError == nil && maps.Equal(old, publishContext) {
		return nil
	}
	change := object{"attached": true, "attachError": nil}
	if !maps.Equal(old, publishContext) {
		metadata := object{}
		for key := range old {
			metadata[key] = nil // gone, unless it is set below
		}
		for key, value := range publishContext {
			metadata[key] = value
		}
		change["attachmentMetadata"] = metadata
	}
	return change
}

// messageMaxBytes is the longest message the API server takes.
const messageMaxBytes = 1024

// failure is a VolumeError; nil if the one given says the same already.
func failure(old *storagev1.VolumeError, err error, now metav1.Time) object {
	message := strings.ToValidUTF8(err.Error(), "?")
	if len(message) > messageMaxBytes {
		const cut = " ..."
		end := messageMaxBytes - len(cut)
		for !utf8.RuneStart(message[end]) {
			end--
		}
		message = message[:end] + cut
	}
	var code any // removes the one of an earlier error
	if s, ok := status.FromError(err); ok {
		code = int32(s.Code())
	}
	if old != nil && old.Message == message && sameCode(old.ErrorCode, code) {
		return nil
	}
	return object{"message": message, "time": now, "errorCode": code}
}

// sameCode reports whether an error of the same message has the same code. An
// API server that does not keep codes is not told of it again and again.
func sameCode(old *int32, code any) bool { return old == nil || code == *old }
