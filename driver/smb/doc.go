// Package smb gives volumes that are folders of SMB shares. The controller makes,
// copies and removes them through an SMB client of its own: it mounts nothing and
// needs no privilege.
//
// A source, `//server/share/base`, is where volumes are made. Each volume is one
// folder of the base. What is known of it (its name, size and origin) is one file
// below `.csi-windows\volumes` of the same base. There is a volume when there are
// both, and the file says that it is complete: the file is written first and removed
// last, and a folder comes and goes by one rename or one mkdir. So a half copy, or a
// half removed tree, is never a volume.
//
// A snapshot is a copy that is kept in the same way, in `.csi-windows\snapshots`, which
// is a base with a private folder of its own.
//
// A folder that has no such file was not made here, and is never touched.
package smb
