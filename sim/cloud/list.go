package cloud

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Page asks for a part of a list.
type Page struct {
	Token      string // "" is the beginning
	MaxEntries int    // 0 is all
}

// Disks returns every disk, oldest first.
func (c *Cloud) Disks(context.Context) []Disk { return c.sorted(c.disks) }

// Snapshots returns every snapshot, oldest first.
func (c *Cloud) Snapshots(context.Context) []Disk { return c.sorted(c.snapshots) }

func (c *Cloud) sorted(of map[string]*Disk) []Disk {
	c.mu.Lock()
	out := make([]Disk, 0, len(of))
	for _, d := range of {
		out = append(out, *d)
	}
	c.mu.Unlock()
	slices.SortFunc(out, func(a, b Disk) int { return order(a, b.Created, b.ID) })
	return out
}

// order is that of the lists: by time, then by ID. It never changes.
func order(d Disk, created time.Time, id string) int {
	if before := d.Created.Compare(created); before != 0 {
		return before
	}
	return strings.Compare(d.ID, id)
}

// DiskPage returns the disks of a page that want picks, oldest first, and the
// token of the next page, empty at the end. A token says what was last seen, so
// it stays good whatever is made and deleted meanwhile. A nil want picks all.
func (c *Cloud) DiskPage(_ context.Context, p Page, want func(Disk) bool) ([]Disk, string, error) {
	return cutPage(c.sorted(c.disks), p, want)
}

// SnapshotPage is DiskPage for snapshots.
func (c *Cloud) SnapshotPage(_ context.Context, p Page, want func(Disk) bool) ([]Disk, string, error) {
	return cutPage(c.sorted(c.snapshots), p, want)
}

func cutPage(all []Disk, p Page, want func(Disk) bool) ([]Disk, string, error) {
	if p.MaxEntries < 0 {
		return nil, "", fmt.Errorf("list of %d entries at most: %w", p.MaxEntries, ErrInvalid)
	}
	created, id, err := readToken(p.Token)
	if err != nil {
		return nil, "", err
	}
	out := []Disk{}
	for _, d := range all {
		if p.Token != "" && order(d, created, id) <= 0 || want != nil && !want(d) {
			continue
		}
		if p.MaxEntries > 0 && len(out) == p.MaxEntries {
			last := out[len(out)-1]
			return out, strconv.FormatInt(last.Created.UnixNano(), 10) + "." + last.ID, nil
		}
		out = append(out, d)
	}
	return out, "", nil
}

func readToken(token string) (created time.Time, id string, err error) {
	if token == "" {
		return created, "", nil
	}
	before, id, ok := strings.Cut(token, ".")
	nanos, err := strconv.ParseInt(before, 10, 64)
	if !ok || id == "" || err != nil {
		return created, "", fmt.Errorf("page token %q: %w", token, ErrToken)
	}
	return time.Unix(0, nanos), id, nil
}
