// Package capacity publishes how much room a driver has left, as
// CSIStorageCapacity objects that the scheduler looks at before it chooses a
// node for a pod whose volumes are yet to be made.
//
// There is one object for each storage class of the driver and each segment of
// the cluster's topology. The driver is asked (GetCapacity) in an interval, and
// soon after a volume was made or deleted. An object is written only when it
// would change, and is removed when its class or its segment is gone.
//
// Objects carry the labels of the upstream provisioner, so that either takes
// over the other's. Names are derived from what an object is about: two
// processes that run at once for a moment cannot make it twice.
//
// # Owners
//
// One process for the whole cluster: the owner is the pod's owner as far up as
// Config.OwnerLevel says. It goes with the deployment, and only then. Objects
// of another owner, made before an upgrade, are given the new one.
//
// One process on each node: the owner is the pod. The garbage collector
// removes an object with the last of its owners, so one with pod and node as
// owners would stay until both are gone; the pod alone goes with the node, with
// the DaemonSet and with the pod itself. The new pod of an upgrade takes over
// what the collector has not removed by then.
package capacity
