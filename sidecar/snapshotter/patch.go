package snapshotter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patchMeta changes a content's metadata. The object is named by its uid: one
// of the same name that was made later is not changed.
func (m *machine) patchMeta(ctx context.Context, c *content, fields map[string]any) (*content, error) {
	fields = maps.Clone(fields)
	fields["uid"] = c.meta.UID
	return m.patch(ctx, c, map[string]any{"metadata": fields})
}

// patchStatus changes fields of a content's status.
func (m *machine) patchStatus(ctx context.Context, c *content, fields map[string]any) (*content, error) {
	return m.patch(ctx, c, map[string]any{"metadata": map[string]any{"uid": c.meta.UID}, "status": fields}, "status")
}

func (m *machine) patch(ctx context.Context, c *content, body map[string]any, subresources ...string) (*content, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("patch of %s %s: %w", c.words.kind, c.meta.Name, err)
	}
	next, err := m.kind.patch(ctx, c.meta.Name, data, subresources...)
	switch {
	case noMore(err):
		return nil, fmt.Errorf("patch %s %s: %w", c.words.kind, c.meta.Name, errGone)
	case err != nil:
		return nil, fmt.Errorf("patch %s %s: %w", c.words.kind, c.meta.Name, err)
	}
	return next, nil
}

// noMore reports that a patch failed because there is no such object any more,
// or another one of its name, whose uid cannot be changed.
func noMore(err error) bool {
	if apierrors.IsNotFound(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" })
}

// mark puts the marker on a content, and with it what may miss: the finalizer,
// and the annotations that name the secret for the removal. It fails with a
// conflict if the object is not the one that was decided on: one that is
// marked already is marked again for that, which writes nothing.
func (m *machine) mark(ctx context.Context, c *content, secret *secretRef) (*content, error) {
	annotations := map[string]any{c.words.marker: "yes"}
	if secret != nil && !c.has(c.words.secretName) {
		annotations[c.words.secretName] = secret.name
		annotations[c.words.secretNamespace] = secret.namespace
	}
	fields := map[string]any{"annotations": annotations, "resourceVersion": c.meta.ResourceVersion}
	if !c.protected() && !c.deleting() {
		fields["finalizers"] = append(append([]string{}, c.meta.Finalizers...), c.words.finalizer)
	}
	return m.patchMeta(ctx, c, fields)
}

// unmark takes the marker off.
func (m *machine) unmark(ctx context.Context, c *content) (*content, error) {
	return m.patchMeta(ctx, c, map[string]any{"annotations": map[string]any{c.words.marker: nil}})
}

// letGo takes the finalizer off, and the marker with it.
func (m *machine) letGo(ctx context.Context, c *content) (*content, error) {
	rest := []string{}
	for _, finalizer := range c.meta.Finalizers {
		if finalizer != c.words.finalizer {
			rest = append(rest, finalizer)
		}
	}
	fields := map[string]any{"finalizers": rest, "resourceVersion": c.meta.ResourceVersion}
	if c.marked() {
		fields["annotations"] = map[string]any{c.words.marker: nil}
	}
	return m.patchMeta(ctx, c, fields)
}
