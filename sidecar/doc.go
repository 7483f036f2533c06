// Package sidecar holds what the external components of a CSI driver share:
// the registrar, the provisioner, the attacher, the resizer, the snapshotter
// and the liveness probe each have a package below it.
//
// A component is a value with Run. It owns no flag, ends no process and keeps
// no state in its package. It takes what all share from an [Env]: the clients
// of the API server, one set of informers, one connection to the driver. [Run]
// runs components side by side, each under its own leader lease, and starts
// one again that has failed while the others go on.
package sidecar
