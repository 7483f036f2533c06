// Package csikit makes a CSI driver for Windows nodes of a small Backend.
//
// It serves Identity, Controller, GroupController, SnapshotMetadata and Node of CSI
// v1.13 on unix, tcp and (on Windows) named-pipe endpoints. It checks every
// request against the rules of the specification, keeps calls on one volume apart,
// bounds their time, keeps secrets out of everything that is written down, and
// says exactly the capabilities that the backend has. docs/writing-a-driver.md
// begins at the beginning.
package csikit
