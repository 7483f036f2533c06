// Package conformance runs the conformance suite with the shipped programs, over
// named pipes: csi-proxyctl.exe against csi-proxy.exe. In the plain lane csi-proxy.exe
// serves a simulated node of its own; in the lab lane it serves the machine, as on
// Windows, and the suite makes its scratch disks through virtdisk.dll.
package conformance
