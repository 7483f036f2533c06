package conformance

import "context"

// RunCases is Run over cases of a test's own.
func RunCases(ctx context.Context, env Env, options Options, cases ...Case) ([]Result, error) {
	return runCases(ctx, env, options, cases)
}
