// Package resizer makes volumes what their claims ask for after they were
// made: larger, or of another attributes class.
//
// A claim is handled by one worker at a time, which expands and modifies its
// volume one after the other. What it is about to do stands in the claim's
// status before the driver is called, so that a process that ends in between
// goes on with the same size or class when it is started again, and one call
// whose end is not known is repeated until it is, before any other begins.
package resizer
