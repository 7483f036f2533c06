// Package devices tests, as Windows programs, the product's calls on disks, volumes and
// services against the stand-ins of the Wine lab: the kernel driver csidisk.sys, the
// service MSiSCSI and virtdisk.dll. What comes back through Wine is compared with what
// the simulated node says itself. It needs an active lab; test/wine/run provides one.
package devices
