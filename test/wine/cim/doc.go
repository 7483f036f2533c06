// Package cim tests the COM session of package winos/cim against the simulated
// node: WMI itself is the stand-in csiwbem.dll, which asks the node server. Its
// tests are for Windows; the script test/wine/run runs them in the lab lane.
package cim
