package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/sidecar"
)

// programName is the name under which any components may be run together.
const programName = "csi-sidecar"

// programs are the components by the names of upstream's programs.
func programs() map[string]string {
	return map[string]string{
		"csi-node-driver-registrar": sidecar.Registrar,
		"node-driver-registrar":     sidecar.Registrar,
		"csi-provisioner":           sidecar.Provisioner,
		"external-provisioner":      sidecar.Provisioner,
		"csi-attacher":              sidecar.Attacher,
		"external-attacher":         sidecar.Attacher,
		"csi-resizer":               sidecar.Resizer,
		"external-resizer":          sidecar.Resizer,
		"csi-snapshotter":           sidecar.Snapshotter,
		"external-snapshotter":      sidecar.Snapshotter,
		"livenessprobe":             sidecar.LivenessProbe,
		"csi-livenessprobe":         sidecar.LivenessProbe,
	}
}

// components are all there are, in the order in which they are started.
func components() []string {
	return []string{
		sidecar.LivenessProbe, sidecar.Registrar, sidecar.DriverObject,
		sidecar.Provisioner, sidecar.Attacher, sidecar.Resizer, sidecar.Snapshotter,
	}
}

// chooseProgram says under which of upstream's names the program was called,
// by the file or the link it was started through or by its first argument; it
// gives programName for none, and the arguments that are left.
func chooseProgram(args []string) (name string, rest []string) {
	if len(args) == 0 {
		return programName, nil
	}
	if called := baseName(args[0]); programs()[called] != "" {
		return called, args[1:]
	}
	if len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		if called := baseName(args[1]); programs()[called] != "" || called == programName {
			return called, args[2:]
		}
	}
	return programName, args[1:]
}

// helpOf is the command that lists the flags of a command line.
func helpOf(args []string) string {
	name, rest := chooseProgram(args)
	if called := baseName(args[0]); called != name {
		name = called + " " + name
	}
	if len(rest) == len(args)-1 && name != baseName(args[0]) {
		name = baseName(args[0])
	}
	return name + " --help"
}

// unexpected says of an argument that is no flag what it may have been meant as.
func unexpected(program, arg string, isFirst bool) error {
	switch {
	case isFirst && program == programName:
		names := append(slices.Sorted(maps.Keys(programs())), programName)
		return fmt.Errorf("unexpected argument %q: before the flags there may be the name of a program to be, one of %s; components are chosen by --controllers",
			arg, strings.Join(names, ", "))
	case arg == "true" || arg == "false":
		return fmt.Errorf("unexpected argument %q: a switch takes its value after an equals sign, --flag=%s", arg, arg)
	default:
		return fmt.Errorf("unexpected argument %q: every option starts with a dash", arg)
	}
}

// baseName is the last part of a path of either system, without ".exe".
func baseName(file string) string {
	name := path.Base(strings.ReplaceAll(file, `\`, "/"))
	if len(name) > 4 && strings.EqualFold(name[len(name)-4:], ".exe") {
		name = name[:len(name)-4]
	}
	return name
}

// isComponent reports whether --controllers may name it.
func isComponent(name string) bool { return slices.Contains(components(), name) }
