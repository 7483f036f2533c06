// Package fieldcases keeps the list of the faults users met in the field that have a
// test here, and notices when the last test of one is gone.
package fieldcases
