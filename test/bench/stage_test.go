package bench

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/bed"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// Paths and name of the volume of the stage benchmark.
const (
	kubelet     = `C:\var\lib\kubelet`
	stagePath   = kubelet + `\plugins\kubernetes.io\csi\bench\1\globalmount`
	publishPath = kubelet + `\pods\1\volumes\kubernetes.io~csi\pv\mount`
)

// callCounter counts the calls that a server gets.
type callCounter struct{ calls atomic.Int64 }

func (c *callCounter) CallStarted(wire.Call)                          { c.calls.Add(1) }
func (c *callCounter) CallEnded(wire.Call, codes.Code, time.Duration) {}

// cost is what one way to stage and publish has taken.
type cost struct {
	time       time.Duration
	roundTrips int64
	osCalls    int64
}

// stageBench is a simulated node with both ways to its volumes.
type stageBench struct {
	*testing.B
	node    *sim.Node
	counter *callCounter
	group   node.Node // by the group node
	driver  node.Node // by tasks in the driver, over the official primitives
}

// BenchmarkStageAndPublish compares one NodeStageVolume and NodePublishVolume by the
// group node with the same tasks in the driver, over the primitives of an official
// csi-proxy: time, round trips, and calls of the simulated operating system.
func BenchmarkStageAndPublish(b *testing.B) {
	s := newStageBench(b)
	b.Run("new disk", func(b *testing.B) {
		s.compare(b, func() sim.DiskSpec {
			return sim.DiskSpec{Image: filepath.Join(b.TempDir(), "disk"), SizeBytes: 1 << 30, Bus: "SAS", Serial: "BENCH"}
		})
	})
	b.Run("disk with data", func(b *testing.B) {
		image := filepath.Join(b.TempDir(), "disk")
		spec := sim.DiskSpec{Image: image, SizeBytes: 1 << 30, Bus: "SAS", Serial: "BENCH"}
		s.once(b, s.group, spec)
		spec.SizeBytes = 0
		s.compare(b, func() sim.DiskSpec { return spec })
	})
}

func newStageBench(b *testing.B) *stageBench {
	b.Helper()
	s := &stageBench{B: b, counter: &callCounter{}}
	var err error
	s.node, err = sim.Open(b.Context(), sim.Config{Dir: b.TempDir()})
	s.ok(err)
	b.Cleanup(func() { _ = s.node.Close() })
	host, err := agent.New(winos.New(s.node, s.node, winos.Options{}), agent.Policy{Roots: []string{kubelet}, RequirePrivacy: true})
	s.ok(err)
	tasks, err := node.New(host, node.Options{})
	s.ok(err)
	place := wiretest.Place(b)
	wiretest.Serve(b, wire.ServerConfig{Host: host, Node: tasks, Place: place, Observer: s.counter, Limits: wire.Limits{CallTimeout: agent.DefaultCallTimeout}})
	ours, err := client.New(client.Options{Place: place})
	s.ok(err)
	b.Cleanup(func() { _ = ours.Close() })
	official, err := client.New(client.Options{Place: place, Groups: bed.OfficialGroups()})
	s.ok(err)
	b.Cleanup(func() { _ = official.Close() })
	s.group = ours
	s.driver, err = node.New(official, node.Options{})
	s.ok(err)
	return s
}

func (s *stageBench) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// compare takes turns, so that both ways meet the same machine.
func (s *stageBench) compare(b *testing.B, disk func() sim.DiskSpec) {
	var group, driver cost
	for b.Loop() {
		group.add(s.once(b, s.group, disk()))
		driver.add(s.once(b, s.driver, disk()))
	}
	b.ReportMetric(float64(group.time)/float64(driver.time), "time/primitives")
	b.ReportMetric(float64(group.roundTrips)/float64(driver.roundTrips), "round-trips/primitives")
	b.ReportMetric(float64(group.osCalls)/float64(driver.osCalls), "os-calls/primitives")
	b.ReportMetric(float64(group.osCalls)/float64(b.N), "os-calls")
	b.ReportMetric(float64(driver.osCalls)/float64(b.N), "primitives-os-calls")
	b.ReportMetric(float64(driver.roundTrips)/float64(b.N), "primitives-round-trips")
}

func (c *cost) add(other cost) {
	c.time += other.time
	c.roundTrips += other.roundTrips
	c.osCalls += other.osCalls
}

// once attaches a disk, stages and publishes it, which is measured, and takes
// everything down again.
func (s *stageBench) once(b *testing.B, by node.Node, disk sim.DiskSpec) cost {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	number, err := s.node.AttachDisk(ctx, disk)
	s.ok(err)
	s.ok(s.node.RecordCalls(ctx, true))
	trips := s.counter.calls.Load()
	started := time.Now()
	source := node.Source{Disk: &node.DiskSource{SerialNumber: disk.Serial}}
	s.ok(by.Stage(ctx, node.StageRequest{VolumeID: "bench", StagingPath: stagePath, Source: source}))
	s.ok(by.Publish(ctx, node.PublishRequest{VolumeID: "bench", StagingPath: stagePath, TargetPath: publishPath}))
	c := cost{time: time.Since(started), roundTrips: s.counter.calls.Load() - trips}
	calls, err := s.node.CallLog(ctx)
	s.ok(err)
	c.osCalls = int64(len(calls))
	s.ok(s.node.RecordCalls(ctx, false))
	s.ok(by.Unpublish(ctx, node.UnpublishRequest{VolumeID: "bench", TargetPath: publishPath}))
	s.ok(by.Unstage(ctx, node.UnstageRequest{VolumeID: "bench", StagingPath: stagePath, Source: source}))
	s.ok(s.node.DetachDisk(ctx, number))
	return c
}
