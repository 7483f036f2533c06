package cluster

import (
	"path/filepath"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ControllerSidecar starts csi-sidecar beside a driver, with the components of a
// controller and with the rights of upstream's sidecars together.
func (c *Cluster) ControllerSidecar(driver *Driver, flags ...string) *Process {
	c.t.Helper()
	return c.Start("csi-sidecar", Program(c.t, "csi-sidecar"), append([]string{
		"--controllers=provisioner,attacher,resizer,snapshotter", "--csi-address=" + driver.SocketPath,
		"--kubeconfig=" + c.SidecarKubeconfig(), "--leader-election-namespace=" + Namespace,
	}, flags...)...)
}

// SidecarKubeconfig is the kubeconfig of SidecarAccount.
func (c *Cluster) SidecarKubeconfig() string {
	c.t.Helper()
	return c.AccountKubeconfig(Namespace, SidecarAccount)
}

// NodeSidecar starts csi-sidecar beside the driver of a node, which it registers with
// the kubelet.
func (k *Kubelet) NodeSidecar(driver *Driver, flags ...string) *Process {
	k.c.t.Helper()
	return k.c.Start(k.Node+"-csi-sidecar", Program(k.c.t, "csi-sidecar"), append([]string{
		"--controllers=node-driver-registrar", "--csi-address=" + driver.SocketPath,
		"--plugin-registration-path=" + k.Path(filepath.Join(KubeletDir, "plugins_registry")),
		"--kubelet-registration-path=" + filepath.Join(KubeletDir, "plugins", DriverName, "csi.sock"),
	}, flags...)...)
}

// GrantSecrets lets the sidecar read secrets, as a deployment does whose storage
// classes name some.
func (c *Cluster) GrantSecrets() {
	c.t.Helper()
	ctx, cancel := c.context()
	defer cancel()
	_, err := c.Client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-secrets"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "csi-secrets"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: SidecarAccount}},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.AwaitRights(AccountUser(Namespace, SidecarAccount), authorizationv1.ResourceAttributes{Resource: "secrets", Verb: "list"})
}
