// Package bed starts what a test of a whole driver needs: the shipped csi-proxy as
// a process of its own over a simulated node, and a driver that serves CSI on a
// socket.
package bed
