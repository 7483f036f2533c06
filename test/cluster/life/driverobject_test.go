package life

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// objectAccount may make and look at CSIDriver objects, which upstream's roles do not
// let a sidecar do.
const objectAccount = "csi-driverobject"

const objectRoles = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: csi-driverobject, namespace: csi}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: csi-driverobject}
rules:
- {apiGroups: [storage.k8s.io], resources: [csidrivers], verbs: [list, watch, create]}
- {apiGroups: [storage.k8s.io], resources: [csinodes], verbs: [list, watch]}
- {apiGroups: [""], resources: [nodes], verbs: [list, watch]}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: csi-driverobject}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: csi-driverobject}
subjects: [{kind: ServiceAccount, name: csi-driverobject, namespace: csi}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: csi-driverobject, namespace: csi}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: csi-leases}
subjects: [{kind: ServiceAccount, name: csi-driverobject, namespace: csi}]
`

// driverObjects has the CSIDriver object of one driver made, and that of another
// checked.
func (b *bed) driverObjects(t *testing.T, checked *target) {
	t.Helper()
	b.Apply([]byte(objectRoles))
	b.AwaitRights(cluster.AccountUser(cluster.Namespace, objectAccount),
		authorizationv1.ResourceAttributes{Group: "storage.k8s.io", Resource: "csidrivers", Verb: "create"},
		authorizationv1.ResourceAttributes{Group: "coordination.k8s.io", Resource: "leases", Namespace: cluster.Namespace, Verb: "create"})
	kubeconfig := b.AccountKubeconfig(cluster.Namespace, objectAccount)
	made := b.NamedPlainDriver("made.example.com", "-capabilities=controller,attach")
	for _, driver := range []*cluster.Driver{made, checked.driver.driver} {
		b.Start("csi-sidecar-csidriver", cluster.Program(t, "csi-sidecar"), "--controllers=csidriver", "--csidriver-create",
			"--csidriver-fs-group-policy=None", "--csi-address="+driver.SocketPath, "--kubeconfig="+kubeconfig, "--leader-election-namespace="+cluster.Namespace)
	}
}

// checkDriverObjects looks at what came of that.
func (b *bed) checkDriverObjects(t *testing.T, checked *target) {
	t.Helper()
	s := &scene{target: checked, t: t, c: b.Cluster, name: metav1.NamespaceDefault}
	s.wait("the object is made", func(ctx context.Context) error {
		object, err := b.Client.StorageV1().CSIDrivers().Get(ctx, "made.example.com", metav1.GetOptions{})
		if err != nil {
			return err
		}
		spec := object.Spec
		if spec.AttachRequired == nil || !*spec.AttachRequired || spec.FSGroupPolicy == nil || *spec.FSGroupPolicy != "None" {
			return fmt.Errorf("it is %+v", spec)
		}
		return nil
	})
	s.event(checked.name, "AttachWithoutCapability", "attachRequired")
	s.event(checked.name, "CSIDriverDiffers", "fsGroupPolicy")
	for _, r := range b.Requests(cluster.AccountUser(cluster.Namespace, objectAccount)) {
		if r.Code == 403 || r.Code == 401 {
			t.Error(errors.New("forbidden"), r)
		}
		if strings.Contains(r.Resource, "csidrivers") && r.Verb != "list" && r.Verb != "watch" && r.Name == checked.name {
			t.Errorf("an object that was there was touched: %+v", r)
		}
	}
}
