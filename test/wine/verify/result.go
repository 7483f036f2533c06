package main

import (
	"cmp"
	"slices"
	"strings"
)

// result is what the runs say of one function.
type result struct {
	*function
	statements, executed int
	// by are the tests that executed some of it, by what they stand on.
	by map[string][]test
	// together are packages whose tests executed some of it when all ran at once.
	together map[string][]string
	// missed is the code that no test executed, a line for each piece.
	missed []string
}

// test names a test by the folder of its package.
type test struct{ folder, name string }

// evaluate joins functions and runs. The whole is the profile of all runs.
func evaluate(all []*function, texts map[string]string, runs []*testRun) (results []*result, whole profile) {
	for _, f := range all {
		results = append(results, &result{function: f, by: map[string][]test{}, together: map[string][]string{}})
	}
	byFile := resultsByFile(results)
	whole = profile{}
	for _, run := range runs {
		whole.add(run.profile)
		for r := range executedBy(run.profile, byFile) {
			if run.name == allTests { // named only when no test is that ran alone
				r.together[run.lane] = append(r.together[run.lane], run.folder)
				continue
			}
			r.by[run.lane] = append(r.by[run.lane], test{run.folder, run.name})
		}
	}
	for _, b := range whole.only(isVerified).blocks() {
		r := find(byFile, b)
		if r == nil {
			continue
		}
		r.statements += b.statements
		if whole[b] {
			r.executed += b.statements
		} else if b.statements > 0 {
			r.missed = append(r.missed, firstLine(texts[r.file], b))
		}
	}
	for _, r := range results {
		if r.statements == 0 {
			r.missed = append(r.missed, "(no profile has it)")
		}
		for _, tests := range r.by {
			slices.SortFunc(tests, func(a, b test) int { return r.order(a, b) })
		}
	}
	return results, whole
}

func resultsByFile(results []*result) map[string][]*result {
	byFile := map[string][]*result{}
	for _, r := range results {
		file := module + "/" + r.file
		byFile[file] = append(byFile[file], r)
	}
	return byFile
}

// executedBy returns the functions of which a profile has something executed.
func executedBy(p profile, byFile map[string][]*result) map[*result]bool {
	found := map[*result]bool{}
	for b, executed := range p {
		if executed {
			if r := find(byFile, b); r != nil {
				found[r] = true
			}
		}
	}
	return found
}

func find(byFile map[string][]*result, b block) *result {
	for _, r := range byFile[b.file] {
		if r.holds(b) {
			return r
		}
	}
	return nil
}

// order puts the tests of the function's own package first.
func (r *result) order(a, b test) int {
	foreign := func(t test) int {
		if t.folder == r.folder() {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(foreign(a), foreign(b)), strings.Compare(a.folder, b.folder), strings.Compare(a.name, b.name))
}
