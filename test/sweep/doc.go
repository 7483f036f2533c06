// Package sweep breaks every node task at every single call it makes of the
// operating system: the process stops, the power is cut, or the call fails. Then the
// CSI call is repeated as a kubelet does, and the node must end as after one clean
// run, with the data that was written before.
package sweep
