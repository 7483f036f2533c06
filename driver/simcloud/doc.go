// Package simcloud is the driver for disks of the simulated cloud, see sim/cloud.
//
// The controller side, a Backend, has the cloud's folder open, as the only process,
// and reaches the nodes through their controls (sim/control). It finds a node's
// control, and its zone, in the folder nodes of the cloud, one small file for
// each node; Config.Nodes writes such files, and so can whoever starts a node
// (cloud.AddNode), at any time.
//
// The node side, a Node, never opens that folder: where a disk is found on a node
// follows from the volume's id alone.
package simcloud
