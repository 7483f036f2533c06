package sweep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
)

// step is one CSI call of a volume's life.
type step string

// The steps in the order of a volume's life; data is written after the publish.
const (
	stepStage     step = "stage"
	stepPublish   step = "publish"
	stepExpand    step = "expand"
	stepUnpublish step = "unpublish"
	stepUnstage   step = "unstage"
)

// before are the steps that come before one in a volume's life.
func before(s step) []step {
	switch s {
	case stepStage:
		return nil
	case stepPublish:
		return []step{stepStage}
	case stepExpand, stepUnpublish:
		return []step{stepStage, stepPublish}
	case stepUnstage:
		return []step{stepStage, stepPublish, stepUnpublish}
	default:
		panic("no such step: " + s)
	}
}

// do makes one CSI call.
func (w *world) do(s step, from node.Source) error {
	ctx, cancel := context.WithTimeout(w.ctx, taskTime)
	defer cancel()
	switch s {
	case stepStage:
		return w.tasks.Stage(ctx, node.StageRequest{VolumeID: volumeID, StagingPath: staging, Source: from})
	case stepPublish:
		return w.tasks.Publish(ctx, node.PublishRequest{VolumeID: volumeID, StagingPath: staging, TargetPath: target})
	case stepExpand:
		_, err := w.tasks.Expand(ctx, node.ExpandRequest{VolumeID: volumeID, Path: staging, RequiredBytes: 2 * diskMiB * mib})
		return err
	case stepUnpublish:
		return w.tasks.Unpublish(ctx, node.UnpublishRequest{VolumeID: volumeID, TargetPath: target})
	case stepUnstage:
		return w.tasks.Unstage(ctx, node.UnstageRequest{VolumeID: volumeID, StagingPath: staging, Source: hint(from)})
	default:
		return errors.New("no such step: " + string(s))
	}
}

// breakage is one way in which a call of the operating system can go wrong.
type breakage struct {
	name string
	// arm makes it happen at the n-th call from now, counted from 1, and disarm
	// ends it and brings the node back.
	arm    func(w *world, n int)
	disarm func(w *world)
	// isPowerCut is set when the node starts again: a kubelet then goes through
	// the life of the volume from its beginning, as far as the pod is wanted.
	isPowerCut bool
}

// failingCalls select every call of the node but CloseHandle: when a process
// ends, Windows closes its handles.
var failingCalls = []string{
	"cim.*", "win32.CreateFile", "win32.CreateSymlink", "win32.OpenAt", "win32.Info", "win32.Read*", "win32.De*",
	"win32.F*", "win32.V*", "win32.S*", "win32.Query*", "win32.Running*", "win32.Disk*",
}

// ioError is ERROR_IO_DEVICE.
const ioError = 1117

func breakages() []breakage {
	clear := func(w *world) { w.ok(w.node.ClearFaults(w.ctx)) }
	return []breakage{
		{name: "the process stops", disarm: clear, arm: func(w *world, n int) {
			w.at(n, func() { w.failAll(-1) })
		}},
		{name: "the call fails", disarm: clear, arm: func(w *world, n int) {
			w.at(n, func() { w.failAll(1) })
		}},
		{name: "the power is cut", isPowerCut: true, arm: func(w *world, n int) {
			w.at(n, func() { w.ok(w.node.PowerCut(w.ctx)) })
		}, disarm: func(w *world) {
			clear(w)
			w.ok(w.node.Boot(w.ctx))
		}},
	}
}

// at runs something just before the n-th call from now.
func (w *world) at(n int, do func()) {
	w.Helper()
	seen := 0
	w.ok(w.node.AddFault(w.ctx, sim.Fault{Call: "*", Count: -1, Hook: func() {
		if seen++; seen == n {
			do()
		}
	}}))
}

// failAll lets calls fail, count of each sort.
func (w *world) failAll(count int) {
	for _, call := range failingCalls {
		w.ok(w.node.AddFault(w.ctx, sim.Fault{Call: call, Count: count, Win32: ioError}))
	}
}

// life brings a new world to just before a step. used says that the volume had a
// life before, in which the payload was written; where a step comes after a publish,
// it was written in this life.
func life(t testing.TB, from source, at step, used bool, wrap func(host.Host) host.Host) (*world, node.Source) {
	t.Helper()
	w := newWorld(t, wrap)
	where := from.provide(w)
	steps := before(at)
	if used {
		steps = append([]step{stepStage, stepPublish, stepUnpublish, stepUnstage}, steps...)
	}
	for _, s := range steps {
		w.ok(w.do(s, where))
		if s == stepPublish {
			w.ok(w.node.WriteFile(w.ctx, target+`\file`, []byte(payload)))
			w.flush()
		}
	}
	if at == stepExpand {
		from.grow(w)
	}
	return w, where
}

// flush writes every volume to its disk.
func (w *world) flush() {
	w.Helper()
	volumes, err := w.os.Volumes(w.ctx)
	w.ok(err)
	for _, v := range volumes {
		if v.FileSystem != "" {
			w.ok(w.os.FlushVolume(w.ctx, v.ID))
		}
	}
}

// again repeats a call as a kubelet does, until it succeeds.
func (w *world) again(s step, from node.Source, restarted bool) error {
	steps := []step{s}
	if restarted && (s == stepPublish || s == stepExpand) {
		steps = append(before(s), s)
	}
	for _, s := range steps {
		if err := w.do(s, from); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// points counts the points of all sweeps of this run.
var points atomic.Int64

// sweep breaks one step of one source at every call in one way.
func sweep(t *testing.T, from source, at step, used bool, how breakage, wrap func(host.Host) host.Host) {
	t.Helper()
	holdsPayload := used || at != stepStage && at != stepPublish
	w, where := life(t, from, at, used, wrap)
	w.ok(w.node.RecordCalls(w.ctx, true))
	w.ok(w.do(at, where))
	calls, err := w.node.CallLog(w.ctx)
	w.ok(err)
	want := w.state()
	needsStage := at == stepUnstage
	if how.isPowerCut && at == stepUnpublish {
		// What a power cut itself takes away, such as a session, comes back with the next
		// stage: the clean run is one after a cut.
		w, where = life(t, from, at, used, wrap)
		w.ok(w.node.PowerCut(w.ctx))
		w.ok(w.node.Boot(w.ctx))
		w.restart()
		w.ok(w.do(at, where))
		want, needsStage = w.state(), true
	}
	if holdsPayload {
		w.mustHoldPayload(needsStage, where, "a clean run")
	}
	for n := 1; n <= len(calls); n++ {
		if !chosen(n, calls) {
			continue
		}
		point := fmt.Sprintf("%s at call %d of %d (%s %s)", how.name, n, len(calls), calls[n-1].Name, calls[n-1].Object)
		w, where := life(t, from, at, used, wrap)
		how.arm(w, n)
		_ = w.do(at, where) // may succeed: not every failure matters to the task
		how.disarm(w)
		w.restart()
		formatted := w.bootSectors()
		if err := w.again(at, where, how.isPowerCut); err != nil {
			t.Errorf("%s: the repeat fails: %v", point, err)
			continue
		}
		if got := w.state(); got != want {
			t.Errorf("%s: the end state is\n%s\nwant\n%s", point, got, want)
		}
		w.mustBeFormattedOnce(formatted, point)
		if holdsPayload {
			w.mustHoldPayload(needsStage, where, point)
		}
		if handles, err := w.node.HandleCount(w.ctx); err != nil || handles != 0 {
			t.Errorf("%s: %d handles are open (%v)", point, handles, err)
		}
		points.Add(1)
	}
}

// everyVariable names the environment variable that says of how many calls one is
// broken: 1 is the whole sweep.
const everyVariable = "CSI_SWEEP_EVERY"

// every is how many calls there are for one that is broken, of those that only look.
func every() int {
	n, err := strconv.Atoi(os.Getenv(everyVariable))
	if err != nil || n < 1 {
		return everyUsual
	}
	return n
}

// everyUsual is how many calls there are for one that is broken when nobody says.
const everyUsual = 60

// chosen reports whether the n-th call is one to break. Calls that change something
// are, and so are those just after them, unless the samples are to be few.
func chosen(n int, calls []sim.Call) bool {
	return n%every() == 0 || every() <= everyUsual && (changes(calls[n-1].Name) || n > 1 && changes(calls[n-2].Name))
}

// changes reports whether a call can change the node.
func changes(name string) bool {
	switch name {
	case "win32.CreateSymlink", "win32.Delete", "win32.SetVolumeMountPoint", "win32.DeleteVolumeMountPoint", "win32.FlushFileBuffers":
		return true
	default:
		return strings.HasPrefix(name, "cim.Exec")
	}
}

// bootSectors are the boot sectors of the volumes that hold a file system. Every
// format writes another serial number. Source: BIOS parameter block of NTFS.
func (w *world) bootSectors() map[string]string {
	w.Helper()
	volumes, err := w.os.Volumes(w.ctx)
	w.ok(err)
	sectors := map[string]string{}
	for _, v := range volumes {
		if v.FileSystem == "" {
			continue
		}
		sector := make([]byte, 80) // up to and with the serial number
		if _, err := w.os.ReadVolume(w.ctx, v.ID, 0, sector); err == nil {
			sectors[v.ID] = string(sector[72:80])
		}
	}
	return sectors
}

// mustBeFormattedOnce fails when a volume that was formatted before is not the same.
func (w *world) mustBeFormattedOnce(earlier map[string]string, point string) {
	w.Helper()
	now := w.bootSectors()
	for id, serial := range earlier {
		if was, ok := now[id]; ok && was != serial {
			w.Errorf("%s: %s was formatted twice", point, id)
		}
	}
}

// mustHoldPayload checks the data that was written before, staging the volume once
// more where it is not staged.
func (w *world) mustHoldPayload(needsStage bool, from node.Source, point string) {
	w.Helper()
	if needsStage {
		w.ok(w.do(stepStage, from))
	}
	if data, err := w.node.ReadFile(w.ctx, staging+`\file`); err != nil || string(data) != payload {
		w.Errorf("%s: the file that was written before reads %q (%v)", point, data, err)
	}
}
