// Package provider tests the COM session of package winos/cim against a WMI
// provider that says what a test wants, however absurd: the stand-in csiwbem.dll
// asks this very process. Its tests are for Windows; the script test/wine/run
// runs them in the lab lane.
package provider
