// Package e2e holds the tests of the whole stack: csi-proxy's own client stubs on
// one side, the state of the simulated node on the other. Its harness is package
// stack.
package e2e
