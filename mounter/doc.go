// Package mounter is the Interface of k8s.io/mount-utils over host.Host, and the
// host utilities that drivers keep beside it, for drivers that are written against
// that package. A driver that starts anew is better off with package csikit.
//
// Paths are Windows paths; forward slashes and a missing drive letter are
// accepted, as mount-utils does. Failures are *host.Error, except where mount-utils
// asks for others: what is missing answers to errors.Is(err, fs.ErrNotExist) and
// os.IsNotExist, what leads to a volume or share that is gone to
// mount.IsCorruptedMnt. No error holds a mount option: options may be secret.
//
// The host may be any csi-proxy. Without our additions List is KindUnsupported,
// and FormatAndMount makes NTFS only. The option "ro" keeps FormatAndMount from
// writing; a link to a volume or share is no more read-only for it, since Windows
// mounts nothing twice with other rights.
package mounter
