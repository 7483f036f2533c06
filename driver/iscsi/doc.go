// Package iscsi is a driver for logical units that an administrator has made: as
// static volumes, and handed out from a pool. docs/driver.md describes the volume
// ids, the pool file and the secrets.
//
// The driver talks to no target. A volume that is deleted keeps its data, so its unit
// is handed out again only after the administrator has said in the pool file that
// it was wiped.
package iscsi
