// Package files tests, as Windows programs, the product's calls on files, links, mount
// points and volumes against the simulated node of the Wine lab: package win32 asks
// Windows, the shim answers with what the node says. Every answer is compared with the
// one the node gives past Wine. It needs an active lab; test/wine/run provides one.
package files
