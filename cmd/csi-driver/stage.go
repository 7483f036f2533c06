package main

// stage is the part of the program's life in which it failed. Its number is the
// exit code of the process. The numbers are part of the interface
// (docs/driver.md) and never change their meaning; those that csi-proxy has as
// well mean the same there.
type stage int

// The stages.
const (
	stageRun     stage = 1  // serving stopped by itself, or calls in flight did not end
	stageFlags   stage = 2  // a flag's value cannot be accepted
	stageHost    stage = 4  // the node's storage cannot be opened
	stageListen  stage = 5  // the endpoint cannot be opened
	stageMetrics stage = 6  // the metrics address cannot be opened
	stageStop    stage = 8  // something could not be closed
	stageBackend stage = 11 // the backend cannot be opened
)
