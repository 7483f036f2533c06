// Package worlds calls every method of every version of a running csi-proxy with
// csi-proxy's own client, on a simulated node in the state that the call needs
// (its world), and looks at the node afterwards: the answer is right, and the
// node is changed as it says. It runs as a Windows program, as that client does.
package worlds
