package conformance

import (
	"context"
	"slices"
)

// Group is the API group a case belongs to.
type Group string

// The groups.
const (
	GroupDisk       Group = "disk"
	GroupVolume     Group = "volume"
	GroupFilesystem Group = "filesystem"
	GroupSMB        Group = "smb"
	GroupISCSI      Group = "iscsi"
	GroupSystem     Group = "system"
)

// Need is something a case cannot run without, besides a host and files.
type Need string

// The needs.
const (
	NeedDisk  Need = "scratch disk"
	NeedSMB   Need = "SMB share"
	NeedISCSI Need = "iSCSI target"
)

// Case is one row of the table.
type Case struct {
	// Name is the group, a slash and what is checked: "disk/partition".
	Name  string
	Group Group
	Needs []Need
	run   func(ctx context.Context, s *scene)
}

// missing returns the first need of the case that the environment does not meet,
// or "".
func (c Case) missing(env *Env) Need {
	for _, need := range c.Needs {
		met := map[Need]bool{NeedDisk: env.Scratch != nil, NeedSMB: env.SMB != nil, NeedISCSI: env.ISCSI != nil}
		if !met[need] {
			return need
		}
	}
	return ""
}

// Cases returns the whole table, in the order in which it is run.
func Cases() []Case {
	return slices.Concat(
		diskCases(), volumeCases(), mountCases(), growCases(),
		filesystemCases(), confinementCases(), smbCases(), iscsiCases(), systemCases(),
	)
}

// Reporter takes what a case finds.
type Reporter interface {
	// Errorf makes the case fail and lets it go on.
	Errorf(format string, args ...any)
	// Fatalf makes the case fail and ends it: it does not return. It is called on
	// the goroutine of the case only.
	Fatalf(format string, args ...any)
	// Notef records something that is worth knowing and no failure.
	Notef(format string, args ...any)
}
