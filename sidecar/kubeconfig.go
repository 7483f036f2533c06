package sidecar

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	snapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// KubeOptions say how the API server is reached.
type KubeOptions struct {
	// Kubeconfig is the file that says where it is; empty inside a cluster. No
	// file is taken from the environment.
	Kubeconfig string
	// Master is its address instead of the file's; empty for that one.
	Master string
	// UserAgent names the program to the server, "csi-sidecar/1.0".
	UserAgent string
	// QPS and Burst limit the requests a second, and those at once. With QPS 0
	// there is no limit here: the server's priority and fairness has it, which
	// knows what the server can do and who else asks.
	QPS   float64
	Burst int
}

// NewKubeConfig makes the configuration of clients of the API server. A file
// that would have a program started to get credentials is refused: this
// process starts none.
func NewKubeConfig(options KubeOptions) (*rest.Config, error) {
	config, err := loadKubeConfig(options)
	if err != nil {
		return nil, err
	}
	config.UserAgent = options.UserAgent
	config.QPS, config.Burst = float32(options.QPS), options.Burst
	switch {
	case options.QPS < 0 || options.Burst < 0:
		return nil, fmt.Errorf("API server: QPS %v and burst %d must not be below 0", options.QPS, options.Burst)
	case options.QPS == 0:
		config.QPS = -1 // what client-go takes for none
	case options.Burst == 0:
		config.Burst = max(1, int(2*options.QPS))
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config, nil
}

func loadKubeConfig(options KubeOptions) (*rest.Config, error) {
	if options.Kubeconfig == "" && options.Master == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("API server: outside a cluster a kubeconfig is needed: %w", err)
		}
		return config, nil
	}
	if options.Kubeconfig != "" {
		if err := checkKubeconfig(options); err != nil {
			return nil, fmt.Errorf("API server: kubeconfig %q: %w", options.Kubeconfig, err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags(options.Master, options.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("API server: kubeconfig %q: %w", options.Kubeconfig, err)
	}
	return config, nil
}

// checkKubeconfig says of a file what client-go would leave out or say in words that
// lead elsewhere: it would have a variable set that is not read here, and have the
// entry of a program put right that is refused afterwards.
func checkKubeconfig(options KubeOptions) error {
	file, err := clientcmd.LoadFromFile(options.Kubeconfig)
	if err != nil {
		return err
	}
	isServerGiven := options.Master != ""
	name := file.CurrentContext
	chosen := file.Contexts[name]
	switch {
	case name == "" && isServerGiven:
		return nil // the file has nothing to say
	case name == "":
		return fmt.Errorf("current-context is missing; the file has the contexts %s", namesIn(file.Contexts))
	case chosen == nil:
		return fmt.Errorf("current-context is %q, which is none of its contexts %s", name, namesIn(file.Contexts))
	}
	cluster, user := file.Clusters[chosen.Cluster], file.AuthInfos[chosen.AuthInfo]
	switch {
	case cluster == nil && !isServerGiven:
		return fmt.Errorf("context %q has the cluster %q, which is none of its clusters %s", name, chosen.Cluster, namesIn(file.Clusters))
	case !isServerGiven && cluster.Server == "":
		return fmt.Errorf("cluster %q has no server", chosen.Cluster)
	case user == nil && chosen.AuthInfo != "":
		return fmt.Errorf("context %q has the user %q, which is none of its users %s", name, chosen.AuthInfo, namesIn(file.AuthInfos))
	case user == nil:
		return nil
	case user.Exec != nil:
		return fmt.Errorf("credentials of the program %q: no program is started here; use a token, a token file or a certificate", user.Exec.Command)
	case user.AuthProvider != nil:
		return fmt.Errorf("credentials of the auth provider %q are not known; use a token, a token file or a certificate", user.AuthProvider.Name)
	}
	return nil
}

// namesIn are the names of a part of a kubeconfig, quoted.
func namesIn[V any](part map[string]V) string {
	names := slices.Sorted(maps.Keys(part))
	for i, name := range names {
		names[i] = strconv.Quote(name)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// Clients are those of one API server, over the same connections.
type Clients struct {
	Kube      kubernetes.Interface
	Snapshots snapshots.Interface
	// Leases is not held up by the limit of the others.
	Leases coordination.LeasesGetter
}

// NewClients makes the clients of an API server.
func NewClients(config *rest.Config) (*Clients, error) {
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	// Custom resources have no protobuf.
	custom := rest.CopyConfig(config)
	custom.ContentType, custom.AcceptContentTypes = runtime.ContentTypeJSON, ""
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1
	kube, kubeErr := kubernetes.NewForConfigAndClient(config, transport)
	snapshot, snapshotErr := snapshots.NewForConfigAndClient(custom, transport)
	leases, leasesErr := coordination.NewForConfigAndClient(unlimited, transport)
	if err := errors.Join(kubeErr, snapshotErr, leasesErr); err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	return &Clients{Kube: kube, Snapshots: snapshot, Leases: leases}, nil
}
