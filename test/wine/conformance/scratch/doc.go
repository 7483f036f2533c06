// Package scratch tests the conformance suite's scratch disks in files where making
// them goes wrong. It runs in the lab lane: virtdisk.dll is a stand-in.
package scratch
