package main

// stage is the part of the program's life in which it failed. Its number is the
// exit code of the process and, under the service control manager, the
// service-specific exit code. The numbers are part of the interface
// (docs/operations.md) and never change their meaning.
type stage int

// The stages.
const (
	stageRun     stage = 1 // serving stopped by itself
	stageFlags   stage = 2 // a flag's value cannot be accepted
	stageLog     stage = 3 // the log cannot be written
	stageHost    stage = 4 // the node cannot be opened
	stageListen  stage = 5 // a pipe or socket cannot be opened
	stageMetrics stage = 6 // the metrics address cannot be opened
	stageService stage = 7 // the service control manager did not start us
	stageStop    stage = 8 // the node could not be closed

	// Of the verbs only.
	stageManage     stage = 9  // the service could not be installed, changed, removed or looked at
	stageNotRunning stage = 10 // status: the service does not run
)

// String names the stage for people.
func (s stage) String() string {
	switch s {
	case stageFlags:
		return "flags"
	case stageLog:
		return "log"
	case stageHost:
		return "node"
	case stageListen:
		return "pipes"
	case stageMetrics:
		return "metrics address"
	case stageService:
		return "service control manager"
	case stageStop:
		return "closing the node"
	case stageManage:
		return "installation"
	case stageNotRunning:
		return "not running"
	default:
		return "serving"
	}
}
