package tree

import (
	"cmp"
	"maps"
	"slices"
)

// State is what a Tree keeps that the host's files do not. It holds nothing
// but plain values and can be stored as JSON.
type State struct {
	// Drives are the volume ids of the drive letters, e.g. "C".
	Drives map[string]string `json:"drives,omitempty"`
	// Links are the reparse points.
	Links []Link `json:"links,omitempty"`
	// ShortNames are the 8.3 names that were given or generated.
	ShortNames []ShortNames `json:"shortNames,omitempty"`
}

// ShortNames are the 8.3 names in one folder.
type ShortNames struct {
	Volume string            `json:"volume"`
	Path   string            `json:"path"`
	Names  map[string]string `json:"names"` // host name to 8.3 name
}

// Snapshot returns a copy of the state, in a stable order.
func (t *Tree) Snapshot() State {
	t.mu.Lock()
	defer t.unlock()
	state := State{Drives: make(map[string]string, len(t.drives))}
	for letter, id := range t.drives {
		state.Drives[string(letter)] = id
	}
	for _, row := range t.links {
		link := *row
		link.Data = slices.Clone(row.Data)
		state.Links = append(state.Links, link)
	}
	slices.SortFunc(state.Links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.Volume, b.Volume), cmp.Compare(a.Path, b.Path))
	})
	for key, names := range t.short {
		state.ShortNames = append(state.ShortNames, ShortNames{key.volume, key.path, maps.Clone(names)})
	}
	slices.SortFunc(state.ShortNames, func(a, b ShortNames) int {
		return cmp.Or(cmp.Compare(a.Volume, b.Volume), cmp.Compare(a.Path, b.Path))
	})
	return state
}

// Restore replaces the state by one that Snapshot returned. It is meant for a
// new tree, before the first volume is attached; attaching then brings the
// host's links up to date. It does not call Changed.
func (t *Tree) Restore(state State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.drives)
	clear(t.links)
	clear(t.short)
	for letter, id := range state.Drives {
		if len(letter) == 1 && isLetter(letter[0]) {
			t.drives[upperLetter(letter[0])] = id
		}
	}
	for _, link := range state.Links {
		link.Data = slices.Clone(link.Data)
		t.links[link.key()] = &link
	}
	for _, names := range state.ShortNames {
		t.short[linkKey{volumeKey(names.Volume), names.Path}] = maps.Clone(names.Names)
	}
	for _, v := range t.volumes {
		v.rows = t.countLinks(v.linkVolume())
	}
}
