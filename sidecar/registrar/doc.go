// Package registrar registers a CSI driver with the kubelet of its node.
//
// The kubelet watches a folder for sockets. The registrar makes one there, the
// kubelet calls it, asks for the driver's name and for the path of the
// driver's own socket, and says in a second call how the registration ended.
// After that it finds the driver by itself, as long as the socket's file stays.
//
// Three things can go wrong without a word of the kubelet: it misses a new
// socket, somebody deletes the file, or the driver is replaced by one with
// other limits and another topology. The registrar makes its socket anew in
// each case, which the kubelet takes for a new registration.
//
// All versions of the kubelet's registration API have one service under one
// name with the same messages; only their Go packages differ. A process can
// hold one of these packages only, and one server answers every version.
package registrar
