//go:build !unix

package client

// isRefused is never true: a pipe goes with its server.
func isRefused(error) bool { return false }
