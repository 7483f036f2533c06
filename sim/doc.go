// Package sim is a simulated Windows node, whole enough to stand under the
// agent in place of Windows: a [Node] implements cim.Session and win32.API.
//
// A node has disks (sparse image files with real partition tables and boot
// sectors), volumes whose content is a real folder beside the image, a file
// name space with mount points and links, an SMB redirector, an iSCSI
// initiator, services and a BIOS serial number. Its state lives in a folder
// and survives a restart of the process.
//
// Every behaviour follows the Windows documentation, return codes included;
// comments name the class and method or the function it was taken from. What
// the documentation leaves open is a documented choice, often with a switch in
// [Config].
//
// Tests and other processes change the world through [Controller]: they attach,
// detach, grow and corrupt disks, set up servers and targets, make calls fail or
// hang, and cut the power.
package sim
