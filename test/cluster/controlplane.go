package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// auditPolicy keeps who asked for what, once a request; of a watch, when it begins.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}`

// startStore starts etcd and the API server, and waits until it is ready: then the
// roles it begins with are there as well.
func (c *Cluster) startStore() {
	c.t.Helper()
	ports, err := freePorts(2)
	if err != nil {
		c.t.Fatal(err)
	}
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	c.start(processOptions{name: "etcd", isKilled: true, program: kubernetesProgram(c.t, "etcd"), args: []string{
		"--name=default", "--data-dir=" + c.path("etcd"), "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer, "--unsafe-no-fsync", "--log-level=warn",
	}})
	policy := c.path("audit.json")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.APIServer = c.startKubernetes("kube-apiserver",
		"--etcd-servers="+client, "--bind-address=127.0.0.1", "--secure-port="+port(c.url), "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--client-ca-file="+c.path("pki", "ca.crt"), "--tls-cert-file="+c.path("pki", "server.crt"), "--tls-private-key-file="+c.path("pki", "server.key"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-signing-key-file="+c.path("pki", "accounts.key"),
		"--service-account-key-file="+c.path("pki", "accounts.crt"), "--service-cluster-ip-range=10.0.0.0/24",
		"--kubelet-preferred-address-types=Hostname", "--audit-policy-file="+policy, "--audit-log-path="+c.auditPath(), "--audit-log-mode=blocking",
	)
	c.waitFor(c.APIServer, func(ctx context.Context) error {
		return c.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// startKubernetes starts a program of Kubernetes with what the test adds to its flags.
func (c *Cluster) startKubernetes(name string, flags ...string) *Process {
	c.t.Helper()
	return c.start(processOptions{name: name, isKilled: true, program: kubernetesProgram(c.t, name), args: append(flags, c.options.Flags[name]...)})
}

// startManagers starts the controller manager and the scheduler. What it returns
// waits until pods can be made.
func (c *Cluster) startManagers() (ready func()) {
	c.t.Helper()
	ports, err := freePorts(2)
	if err != nil {
		c.t.Fatal(err)
	}
	manager := c.UserKubeconfig("system:kube-controller-manager")
	c.ControllerManager = c.startKubernetes("kube-controller-manager",
		"--kubeconfig="+manager, "--authentication-kubeconfig="+manager, "--authorization-kubeconfig="+manager,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0]), "--cert-dir="+c.path("kube-controller-manager"),
		"--service-account-private-key-file="+c.path("pki", "accounts.key"), "--root-ca-file="+c.path("pki", "ca.crt"),
		"--use-service-account-credentials=true", "--leader-elect=false",
	)
	scheduler := c.UserKubeconfig("system:kube-scheduler")
	c.Scheduler = c.startKubernetes("kube-scheduler",
		"--kubeconfig="+scheduler, "--authentication-kubeconfig="+scheduler, "--authorization-kubeconfig="+scheduler,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[1]), "--cert-dir="+c.path("kube-scheduler"), "--leader-elect=false",
	)
	return func() {
		c.t.Helper()
		c.waitFor(c.ControllerManager, func(ctx context.Context) error { return healthy(ctx, ports[0]) })
		c.waitFor(c.ControllerManager, func(ctx context.Context) error { // pods are refused before
			_, err := c.Client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
			return err
		})
		c.waitFor(c.Scheduler, func(ctx context.Context) error { return healthy(ctx, ports[1]) })
	}
}

// healthy asks a program of the control plane, which has a certificate of its own.
func healthy(ctx context.Context, port int) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	return askHealth(ctx, &http.Client{Transport: transport}, fmt.Sprintf("https://127.0.0.1:%d/healthz", port))
}

// askHealth asks a program whether it is well; the error has what it answers else.
func askHealth(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}

// UserConfig is the configuration of a user in groups.
func (c *Cluster) UserConfig(user string, groups ...string) *rest.Config {
	c.t.Helper()
	config, err := c.authority.config(c.url, user, groups...)
	if err != nil {
		c.t.Fatal(err)
	}
	return config
}

// UserKubeconfig writes the kubeconfig of a user in groups and returns its path.
func (c *Cluster) UserKubeconfig(user string, groups ...string) string {
	c.t.Helper()
	return c.kubeconfig(user, c.UserConfig(user, groups...))
}

func (c *Cluster) kubeconfig(user string, config *rest.Config) string {
	c.t.Helper()
	path := c.path("users", strings.NewReplacer(":", "-", "/", "-").Replace(user)+".yaml")
	if err := writeKubeconfig(path, config); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// port is that of a URL.
func port(url string) string { return url[strings.LastIndexByte(url, ':')+1:] }
