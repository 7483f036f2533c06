// Package tree is the file name space of a simulated Windows node over real
// folders of the machine that runs it: volumes, drive letters, mount points,
// junctions, symbolic links, share modes, 8.3 names and case-insensitive
// lookup, with the error numbers Windows gives.
//
// A volume's files are ordinary files below its host folder. The tree walks
// that folder one name at a time, through open objects, and never lets the
// host's kernel follow a link; so nothing it does leaves the mapped folders,
// whatever other processes do to them meanwhile.
//
// Reparse points are rows of a table. Where the host has symbolic links, the
// object that carries one is also a host link to the host folder it leads to,
// so that an ordinary process of the host that writes below a mounted path
// writes into that volume. Elsewhere an empty folder or file stands for it.
//
// Limits of the model: no named streams (a colon in a name is
// ERROR_INVALID_NAME, as on a file system without them), no access control
// lists, no current folder (relative paths are ERROR_INVALID_NAME), and a
// reparse point's file id may be another one after a restart of the simulator.
package tree
