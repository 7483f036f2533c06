// Package bed is what tests of the Wine lanes have in common: the shipped
// programs as processes, and the simulated node behind the stand-ins.
package bed
