// Package sanity runs csi-sanity, the conformance suite of the CSI community, against
// the shipped csi-driver with a running csi-proxy: for each backend, once over
// the group node and once with the node tasks in the driver over the official
// primitives only. docs/csi-sanity.md lists every case that is left out.
package sanity
