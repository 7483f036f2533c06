// Package driver holds the reference CSI driver: backends for disks of a simulated
// cloud, for folders on an SMB server, and for the LUNs of iSCSI targets.
package driver
