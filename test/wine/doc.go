// Package wine tests csi-proxy.exe as a program: console, service control
// manager, pipes. Its tests are for Windows; the script run in this folder runs
// them under Wine.
package wine
