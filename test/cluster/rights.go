package cluster

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AwaitRights waits until a user has rights that were just given. The API server takes
// roles from a cache that is a little behind.
func (c *Cluster) AwaitRights(user string, rights ...authorizationv1.ResourceAttributes) {
	c.t.Helper()
	for _, right := range rights {
		c.Wait("the rights of "+user, startTime, func(ctx context.Context) error {
			answer, err := c.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &right},
			}, metav1.CreateOptions{})
			if err == nil && !answer.Status.Allowed {
				err = fmt.Errorf("%s %s is not allowed: %s", right.Verb, right.Resource, answer.Status.Reason)
			}
			return err
		})
	}
}

// awaitRoles waits until everything in roles.yaml holds: the last role and the last
// binding of each kind do.
func (c *Cluster) awaitRoles() {
	c.t.Helper()
	c.AwaitRights(AccountUser(metav1.NamespaceSystem, "snapshot-controller"), authorizationv1.ResourceAttributes{
		Group: "groupsnapshot.storage.k8s.io", Resource: "volumegroupsnapshotcontents", Verb: "list",
	})
	c.AwaitRights(AccountUser(Namespace, SidecarAccount), authorizationv1.ResourceAttributes{
		Group: "storage.k8s.io", Resource: "csistoragecapacities", Namespace: Namespace, Verb: "create",
	})
}
