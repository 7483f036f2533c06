package cluster

import (
	"context"
	_ "embed" // the roles
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// snapshotModule is where the definitions of the kinds of snapshots are from.
const snapshotModule = "github.com/kubernetes-csi/external-snapshotter/client/v8"

// fieldManager is who the test's objects are from.
const fieldManager = "test-cluster"

// Namespace is the one of the programs under test.
const Namespace = "csi"

// SidecarAccount may do all that the components of a sidecar may do together.
const SidecarAccount = "csi-sidecar"

//go:embed roles.yaml
var roles []byte

var documentEnd = regexp.MustCompile(`(?m)^---\s*$`)

// applyTime is how long kinds that were made just now may be unknown to whoever
// applies objects of them.
const applyTime = 30 * time.Second

// Apply applies every object of a text of YAML documents, in their order, as an
// administrator does.
func (c *Cluster) Apply(text []byte) {
	c.t.Helper()
	c.Wait("objects are applied", applyTime, func(ctx context.Context) error { return c.apply(ctx, text) })
}

func (c *Cluster) apply(ctx context.Context, text []byte) error {
	groups, err := restmapper.GetAPIGroupResources(c.Client.Discovery())
	if err != nil {
		return err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for _, document := range documentEnd.Split(string(text), -1) {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return err
		}
		if len(object.Object) == 0 {
			continue // nothing but comments
		}
		if err := c.applyOne(ctx, mapper, &object); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func (c *Cluster) applyOne(ctx context.Context, mapper meta.RESTMapper, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	var resource dynamic.ResourceInterface = c.Dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		resource = c.Dynamic.Resource(mapping.Resource).Namespace(namespace)
	}
	_, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}

// installSnapshots installs the kinds of snapshots and group snapshots, and waits
// until they are served.
func (c *Cluster) installSnapshots() {
	c.t.Helper()
	folder, err := snapshotKinds()
	if err != nil {
		c.t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*snapshot*.yaml"))
	if err != nil || len(files) == 0 {
		c.t.Fatalf("no kinds of snapshots in %s: %v", folder, err)
	}
	var text []byte
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			c.t.Fatal(err)
		}
		text = append(append(text, "\n---\n"...), data...)
	}
	c.Apply(text)
	c.Wait("kinds of snapshots", startTime, func(ctx context.Context) error { return c.establish(ctx, len(files)) })
}

// establish fails while not every definition is served.
func (c *Cluster) establish(ctx context.Context, count int) error {
	list, err := c.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	served := 0
	for _, item := range list.Items {
		data, err := json.Marshal(item.Object["status"])
		if err != nil {
			return err
		}
		var status struct{ Conditions []metav1.Condition }
		if err := json.Unmarshal(data, &status); err != nil {
			return err
		}
		if meta.IsStatusConditionTrue(status.Conditions, "Established") {
			served++
		}
	}
	if served < count {
		return fmt.Errorf("%d of %d are served", served, count)
	}
	return c.listAll(ctx, list.Items)
}

// listAll fails while objects of the kinds that are defined cannot be listed, or are
// not among what the API server says it has: that comes a little later.
func (c *Cluster) listAll(ctx context.Context, definitions []unstructured.Unstructured) error {
	groups, err := restmapper.GetAPIGroupResources(c.Client.Discovery())
	if err != nil {
		return err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for i := range definitions {
		group, _, _ := unstructured.NestedString(definitions[i].Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(definitions[i].Object, "spec", "names", "kind")
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind})
		if err != nil {
			return err
		}
		if _, err := c.Dynamic.Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return fmt.Errorf("list %s: %w", mapping.Resource.Resource, err)
		}
	}
	return nil
}

// snapshotKinds is the folder of the definitions in the module cache.
var snapshotKinds = sync.OnceValues(func() (string, error) {
	command := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", snapshotModule)
	command.Dir = here()
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", snapshotModule, err)
	}
	return filepath.Join(strings.TrimSpace(string(output)), "config", "crd"), nil
})

// installRoles makes the namespace and the accounts of the programs under test.
func (c *Cluster) installRoles() {
	c.t.Helper()
	c.Apply(roles)
}

// AccountKubeconfig writes the kubeconfig of a service account with a token for it.
func (c *Cluster) AccountKubeconfig(namespace, account string) string {
	c.t.Helper()
	ctx, cancel := c.context()
	defer cancel()
	seconds := int64(certificateTime.Seconds())
	answer, err := c.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	config := *c.Config
	config.CertData, config.KeyData, config.BearerToken = nil, nil, answer.Status.Token
	return c.kubeconfig(AccountUser(namespace, account), &config)
}

// AccountUser is the user that a service account is to the API server.
func AccountUser(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

// startSnapshotController starts the cluster's controller of snapshots.
func (c *Cluster) startSnapshotController() {
	c.t.Helper()
	ports, err := freePorts(1)
	if err != nil {
		c.t.Fatal(err)
	}
	c.SnapshotController = c.startKubernetes("snapshot-controller",
		"--kubeconfig="+c.AccountKubeconfig(metav1.NamespaceSystem, "snapshot-controller"),
		fmt.Sprintf("--http-endpoint=127.0.0.1:%d", ports[0]), "--kube-api-qps=100", "--kube-api-burst=200",
	)
}

// condition returns whether a pod or node condition is true.
func condition(conditions []corev1.NodeCondition, kind corev1.NodeConditionType) error {
	for _, c := range conditions {
		if c.Type == kind {
			if c.Status == corev1.ConditionTrue {
				return nil
			}
			return fmt.Errorf("%s is %s: %s", kind, c.Status, c.Message)
		}
	}
	return errors.New("it has not been reported yet")
}
