// Package liveness tells over HTTP whether a CSI driver is alive, so that the
// kubelet can restart the container of one that is not.
//
// Each answer comes from a probe over a connection of its own: one that is kept
// goes on working after the driver's socket has been deleted, and nobody else
// reaches the driver then. Requests that come together share one probe, so that
// a driver that hangs gets no more of them than one that answers.
//
// The component lives longer than the driver: it starts without one, stays
// when it crashes, and needs no API server.
package liveness
