package smb

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/csikit"
)

// query is what a list is to have.
type query struct {
	places  []location
	page    csikit.Page
	secrets map[string]string
	base    func(*root) *root // in which base of a place
	wants   func(*entry) bool
}

// entry is a record that a list comes to.
type entry struct {
	at       location // the place
	folder   string
	found    *record
	there    bool // the folder
	deleting bool // what was the folder is in the trash; told when it is not there
}

// exists reports whether there is a volume or snapshot.
func (e *entry) exists() bool { return e.found.Complete && e.there && !e.found.Retained }

// list returns a page, ordered by place and folder. A token is the last entry before
// the page.
func (b *Backend) list(ctx context.Context, q query) (entries []entry, next string, err error) {
	after, err := q.after()
	if err != nil {
		return nil, "", err
	}
	slices.SortFunc(q.places, func(x, y location) int { return strings.Compare(x.String(), y.String()) })
	for _, at := range q.places {
		var part []entry
		more := false
		err := b.in(ctx, at, q.secrets, func(r *root) (err error) {
			part, more, err = q.part(r, after, len(entries))
			return err
		})
		if err != nil {
			return nil, "", fmt.Errorf("list of %s: %w", at, err)
		}
		entries = append(entries, part...)
		if more {
			last := entries[len(entries)-1]
			return entries, position{last.at.String(), last.folder}.token(), nil
		}
	}
	return entries, "", nil
}

// part is what a place adds to a page that has some entries, and whether there are
// more than the page takes.
func (q query) part(r *root, after position, have int) (part []entry, more bool, err error) {
	base := q.base(r)
	var folders []string
	err = base.records(func(folder string) error {
		if after.less(position{r.at.String(), folder}) {
			folders = append(folders, folder)
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	slices.Sort(folders)
	for _, folder := range folders {
		e, err := base.entry(r.at, folder)
		if err != nil {
			return nil, false, err
		}
		if e.found == nil || !q.wants(&e) {
			continue
		}
		if q.page.MaxEntries > 0 && have+len(part) >= q.page.MaxEntries {
			return part, true, nil
		}
		part = append(part, e)
	}
	return part, false, nil
}

func (r *root) entry(at location, folder string) (entry, error) {
	found, there, err := r.volume(folder)
	e := entry{at: at, folder: folder, found: found, there: there}
	if err == nil && found != nil && !there {
		e.deleting, err = r.exists(privateFolder, folderTrash, folder)
	}
	return e, err
}

// places are the configured sources, each once.
func (b *Backend) places() []location {
	var places []location
	for _, source := range b.sources {
		if !slices.ContainsFunc(places, func(at location) bool { return at.holds(source.at) && source.at.holds(at) }) {
			places = append(places, source.at)
		}
	}
	return places
}

// ListVolumes implements csikit.VolumeLister: the volumes right in the configured
// sources.
func (b *Backend) ListVolumes(ctx context.Context, page csikit.Page) (csikit.VolumePage, error) {
	entries, next, err := b.list(ctx, query{places: b.places(), page: page, base: itself, wants: (*entry).exists})
	result := csikit.VolumePage{NextToken: next}
	for _, e := range entries {
		result.Volumes = append(result.Volumes, volumeOf(volumeKey{e.at, e.folder}, *e.found))
	}
	return result, err
}

func itself(r *root) *root { return r }

// position is a place in a list.
type position struct{ source, folder string }

func (p position) less(other position) bool {
	if p.source != other.source {
		return p.source < other.source
	}
	return p.folder < other.folder
}

func (p position) token() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.source + "/" + p.folder))
}

// after takes only a token that is made for one of the places.
func (q query) after() (position, error) {
	if q.page.Token == "" {
		return position{}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(q.page.Token)
	at := strings.LastIndex(string(text), "/")
	if err != nil || at < 0 {
		return position{}, fmt.Errorf("token %q: %w", q.page.Token, csikit.ErrBadToken)
	}
	p := position{string(text[:at]), string(text[at+1:])}
	for _, place := range q.places {
		if place.String() == p.source && checkPart(p.folder) == nil && p.token() == q.page.Token {
			return p, nil
		}
	}
	return position{}, fmt.Errorf("token %q: %w", q.page.Token, csikit.ErrBadToken)
}
