// Package conformance is one table of cases that says what a host.Host does on a
// node, and a runner for it. It runs against the agent in process, over pipes,
// under Wine and on Windows: as a Go test, and as `csi-proxyctl conformance`.
//
// A case checks effects, not answers alone. What it arranges and looks at, it does
// beside the host under test: disks through a Scratch, files through a Files. So a
// host that answers well and does nothing fails.
//
// The suite changes only what it made itself. Every call that changes something
// goes through a guard, which lets it pass only for a scratch disk of the running
// case, looked at again just before, and for paths with the name of this run in
// them. docs/conformance.md is the manual.
package conformance
