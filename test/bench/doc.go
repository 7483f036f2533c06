// Package bench measures what the product promises to cost. Every figure of a
// call is a ratio: the two sides take turns in one run, so that neither the
// machine nor its load is in the figure. Start and memory are those of the
// program itself, started as its own process.
//
// Run it with make bench. Nothing here is a test: a slow machine fails nothing.
package bench
