package main

import "errors"

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

// stageError is a failure with its stage.
type stageError struct {
	stage stage
	cause error
}

func (e *stageError) Error() string { return e.cause.Error() }
func (e *stageError) Unwrap() error { return e.cause }

// failed wraps an error with its stage; nil stays nil.
func failed(s stage, err error) error {
	if err == nil {
		return nil
	}
	return &stageError{s, err}
}

// exitCode is the process's exit code for how it ended.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	var usage *usageError
	if errors.As(err, &usage) {
		return int(stageFlags)
	}
	var staged *stageError
	if errors.As(err, &staged) {
		return int(staged.stage)
	}
	return int(stageRun)
}
