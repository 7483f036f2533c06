package snapshotter

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// discoveryRetry is the delay before an API server that could not say what it
// serves is asked again.
const discoveryRetry = 10 * time.Second

// await waits until the cluster serves some resources of an API group in one
// of the versions, and gives the first of those. A watch of kinds that are not
// there would list them in vain for ever.
func (s *Snapshotter) await(ctx context.Context, log *slog.Logger, group string, versions []string, resources ...string) (string, error) {
	for told := false; ; {
		version, err := s.served(ctx, group, versions, resources)
		delay := s.config.KindsCheck
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil:
			delay = min(discoveryRetry, delay)
			log.WarnContext(ctx, "The API server does not say which kinds it serves", "group", group, "again_in", delay, "error", err)
		case version != "":
			return version, nil
		case !told:
			told = true
			log.InfoContext(ctx, "The cluster does not have these kinds, nothing is done for them until it does", "group", group, "resources", resources, "again_in", delay)
		}
		timer := s.env.Clock.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return "", ctx.Err()
		case <-timer.C():
		}
	}
}

func (s *Snapshotter) served(ctx context.Context, group string, versions, resources []string) (string, error) {
	client := discovery.ToDiscoveryInterfaceWithContext(s.env.Snapshots.Discovery())
	for _, version := range versions {
		list, err := client.ServerResourcesForGroupVersionWithContext(ctx, group+"/"+version)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return "", fmt.Errorf("discovery of %s/%s: %w", group, version, err)
		case hasAll(list, resources):
			return version, nil
		}
	}
	return "", nil
}

func hasAll(list *metav1.APIResourceList, resources []string) bool {
	for _, name := range resources {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name }) {
			return false
		}
	}
	return true
}
