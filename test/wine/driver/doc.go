// Package driver runs csi-driver.exe, as it is shipped, in the lab lane: over
// csi-proxy.exe or on the machine itself, and looks at the node for what its CSI
// calls have done there.
package driver
