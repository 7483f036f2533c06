// Package cluster starts a real Kubernetes on one machine for a test: etcd, API
// server, controller manager and scheduler on loopback, and where a test wants
// them kubelets with containers, nodes that only look like Windows ones, the
// controller of snapshots, and the programs of this product beside them.
//
// Every process of a cluster ends with its test, and what a kubelet has mounted
// goes with the kubelet's own name spaces. Nothing of it needs the network.
//
// The programs of Kubernetes come from bin/cluster, which make test-cluster fills.
// A kubelet needs root, containerd and runc.
package cluster
