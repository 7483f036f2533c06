package main

import (
	"fmt"
	"time"

	"github.com/csi-windows/csi-windows/cmd/internal/service"
)

// What the service is called, for people.
const (
	programName        = "csi-proxy.exe"
	serviceDisplayName = "CSI Proxy"
	serviceDescription = "Carries out storage operations on this node for CSI node plugins of Kubernetes. Without it, pods with volumes do not start here."
)

// After a failure the service is restarted, each time after a longer pause: a
// server that another program holds back is tried again, and a node without storage
// is left alone for minutes at most.
const (
	firstRestartDelay  = 5 * time.Second
	secondRestartDelay = 30 * time.Second
	laterRestartDelay  = 2 * time.Minute
	// failureResetTime is how long it has to run well for its failures to be forgotten.
	failureResetTime = time.Hour
)

// longestStop is how long the service may take to stop, whatever its grace time is.
const longestStop = maxGraceTime + stopMargin

// The service runs as SYSTEM, which has many privileges. It keeps these alone; above
// all it cannot act as a part of the operating system, load drivers, debug processes,
// take what others own or start programs under other accounts. What an administrator may do without any
// privilege, such as asking the storage provider, needs none here either.
//
// Source: SERVICE_REQUIRED_PRIVILEGES_INFOW; Privilege Constants.
const (
	// privilegeTraverse lets paths pass through folders whose own rights leave
	// SYSTEM out, as every account may.
	privilegeTraverse = "SeChangeNotifyPrivilege"
	// privilegeVolumes lets volumes be extended, defragmented and mounted.
	privilegeVolumes = "SeManageVolumePrivilege"
	// privilegeLinks lets symbolic links be made.
	privilegeLinks = "SeCreateSymbolicLinkPrivilege"
	// privilegeBackup and privilegeRestore let folders be opened, linked and removed
	// whose rights, set by a pod, leave SYSTEM out.
	privilegeBackup  = "SeBackupPrivilege"
	privilegeRestore = "SeRestorePrivilege"
	// privilegeImpersonate is one that every process of an administrator has. Nothing
	// here uses it; it stays until a run on Windows shows that WMI's providers, which
	// act with what their caller holds, do without.
	privilegeImpersonate = "SeImpersonatePrivilege"
)

// commandLineMax is how long program and flags of a service may be, in UTF-16 units.
// What the manager tells of a service, this and some names, fits into 4096.
//
// Source: QueryServiceConfigW, cbBufSize.
const commandLineMax = 3072

// checkCommandLine refuses a service that the manager could not tell of any more. It
// counts bytes, of which there are no fewer than units, and room for quotes.
func checkCommandLine(d service.Definition) error {
	length := len(d.Program)
	for _, arg := range d.Args {
		length += len(arg) + len(` ""`)
	}
	if length > commandLineMax {
		return fmt.Errorf("program and flags of a service must not exceed %d characters, these have %d", commandLineMax, length)
	}
	return nil
}

// definition is the service as it is installed.
func definition(name, program string, args []string) service.Definition {
	displayName := serviceDisplayName
	if name != defaultServiceName { // no two services are displayed under one name
		displayName += " (" + name + ")"
	}
	return service.Definition{
		Name: name, DisplayName: displayName, Description: serviceDescription,
		Program: program, Args: args,
		RestartDelays: []time.Duration{firstRestartDelay, secondRestartDelay, laterRestartDelay},
		ResetTime:     failureResetTime,
		// Calls in flight have as long as at any stop.
		PreshutdownTime: longestStop,
		Privileges: []string{
			privilegeTraverse, privilegeVolumes, privilegeLinks, privilegeBackup, privilegeRestore, privilegeImpersonate,
		},
	}
}
