// Package arch holds the tests of how the product is built: what a room must not
// know, what no room may use, and the form of its files.
package arch
