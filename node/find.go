package node

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

// Pauses between two looks for a disk or volume that is to arrive.
const (
	arrivalPauseMin = 20 * time.Millisecond
	arrivalPauseMax = time.Second
)

// disk is a disk as far as the host can tell. A host without ListDisks tells
// neither flags nor table.
type disk struct {
	host.DiskInfo
	known bool // DiskInfo is whole
}

// findDisk returns the disk of a source. A disk that is not there is looked for
// again, after a rescan, until the time for arrivals is over.
func (t *Tasks) findDisk(ctx context.Context, source DiskSource) (disk, error) {
	found, err := t.lookForDisk(ctx, source)
	if err == nil || !host.IsKind(err, host.KindNotFound) {
		return found, err
	}
	arrived, waitErr := t.await(ctx, func(ctx context.Context) (bool, error) {
		if err := t.host.Rescan(ctx); err != nil {
			return false, err
		}
		var lookErr error
		found, lookErr = t.lookForDisk(ctx, source)
		if host.IsKind(lookErr, host.KindNotFound) {
			return false, nil
		}
		return lookErr == nil, lookErr
	})
	if arrived || waitErr != nil {
		return found, waitErr
	}
	return disk{}, err
}

// await asks again and again until the answer is true, an error, or the time for
// arrivals is over. It reports whether the answer came.
func (t *Tasks) await(ctx context.Context, ask func(context.Context) (bool, error)) (bool, error) {
	deadline := time.Now().Add(t.options.DiskTimeout)
	for pause := arrivalPauseMin; ; pause = min(2*pause, arrivalPauseMax) {
		done, err := ask(ctx)
		if done || err != nil {
			return done, err
		}
		rest := time.Until(deadline)
		if rest <= 0 {
			return false, nil
		}
		timer := time.NewTimer(min(pause, rest))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		}
	}
}

// lookForDisk returns the one disk that is there now and fits in every field.
func (t *Tasks) lookForDisk(ctx context.Context, source DiskSource) (disk, error) {
	disks, err := t.disks(ctx, source)
	if err != nil {
		return disk{}, err
	}
	fitting := slices.DeleteFunc(disks, func(d disk) bool { return !source.fits(d) })
	switch len(fitting) {
	case 0:
		return disk{}, noDiskFits(source)
	case 1:
		return fitting[0], nil
	default:
		return disk{}, ambiguous(fitting)
	}
}

// disks lists every disk, with at least what the source asks for.
func (t *Tasks) disks(ctx context.Context, source DiskSource) ([]disk, error) {
	if t.knows("ListDisks") {
		infos, err := t.host.ListDisks(ctx)
		if !t.lacking("ListDisks", err) {
			disks := make([]disk, len(infos))
			for i, info := range infos {
				disks[i] = disk{info, true}
			}
			return disks, err
		}
	}
	return t.disksByNames(ctx, source)
}

// disksByNames joins the lists that every csi-proxy has. A disk that is in one
// list only, because it came or went in between, fits nothing.
func (t *Tasks) disksByNames(ctx context.Context, source DiskSource) ([]disk, error) {
	byNumber := map[uint32]host.DiskInfo{}
	if source.Page83 != "" || source.SerialNumber != "" {
		ids, err := t.host.ListDiskIDs(ctx)
		if err != nil {
			return nil, err
		}
		for number, id := range ids {
			byNumber[number] = host.DiskInfo{Number: number, IDs: id}
		}
	}
	if source.Location != (host.DiskLocation{}) {
		locations, err := t.host.ListDiskLocations(ctx)
		if err != nil {
			return nil, err
		}
		for number, location := range locations {
			info := byNumber[number]
			info.Number, info.Location = number, location
			byNumber[number] = info
		}
	}
	disks := make([]disk, 0, len(byNumber))
	for _, info := range byNumber {
		disks = append(disks, disk{DiskInfo: info})
	}
	slices.SortFunc(disks, func(a, b disk) int { return int(a.Number) - int(b.Number) })
	return disks, nil
}

// fits reports whether a disk fits in every field that is set.
func (s DiskSource) fits(d disk) bool {
	same := func(wanted, is string) bool {
		wanted = strings.TrimSpace(wanted)
		return wanted == "" || strings.EqualFold(wanted, strings.TrimSpace(is))
	}
	w, is := s.Location, d.Location
	return same(s.Page83, d.IDs.Page83) && same(s.SerialNumber, d.IDs.SerialNumber) &&
		sameNumber(w.Adapter, is.Adapter) && sameNumber(w.Bus, is.Bus) && sameNumber(w.Target, is.Target) && sameNumber(w.LUNID, is.LUNID)
}

// sameNumber reports whether a coordinate is the one that is wanted, if any is: "01"
// is 1.
func sameNumber(wanted, is string) bool {
	if wanted == "" || wanted == is {
		return true
	}
	a, errA := strconv.ParseUint(wanted, 10, 64)
	b, errB := strconv.ParseUint(strings.TrimSpace(is), 10, 64)
	return errA == nil && errB == nil && a == b
}

// String names what is asked for.
func (s DiskSource) String() string {
	var parts []string
	for _, field := range []struct{ name, value string }{
		{"page 83 id", s.Page83}, {"serial number", s.SerialNumber}, {"adapter", s.Location.Adapter},
		{"bus", s.Location.Bus}, {"target", s.Location.Target}, {"LUN", s.Location.LUNID},
	} {
		if field.value != "" {
			parts = append(parts, field.name+" "+host.PrintableText(field.value))
		}
	}
	return strings.Join(parts, ", ")
}

func noDiskFits(source DiskSource) error {
	return refuse(host.KindNotFound, "no disk of the node has %s", source)
}

// ambiguous refuses a choice among several disks, and names them all.
func ambiguous(disks []disk) error {
	names := make([]string, len(disks))
	for i, d := range disks {
		fields := DiskSource{Page83: d.IDs.Page83, SerialNumber: d.IDs.SerialNumber, Location: d.Location}
		names[i] = fmt.Sprintf("disk %d (%s)", d.Number, fields)
	}
	return refuse(host.KindPrecondition, "the source is ambiguous, %d disks fit: %s", len(disks), strings.Join(names, "; "))
}
