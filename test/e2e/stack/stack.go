// Package stack is the whole product in one process, for tests: a simulated
// node, winos over it, the agent, and a server with every API on sockets of its
// own. What a test arranges and checks, it does at the node, beside the API.
package stack

import (
	"context"
	"hash/maphash"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// Root is the working folder of a stack unless its policy names others. It is
// the one in the requests of package upstream.
const Root = `C:\k`

// MiB is one mebibyte in bytes.
const MiB = int64(1) << 20

// CallTimeout is the deadline of every call a test makes through Context. It is
// generous: no call that works takes anywhere near as long.
const CallTimeout = 30 * time.Second

// stopTimeout is how long a server may take to stop, and what hung to end.
const stopTimeout = 30 * time.Second

// Config is what a stack is made of. New fills in what is needed.
type Config struct {
	Node   sim.Config
	Policy agent.Policy
	APIs   []wire.API // what to serve; all when nil
	Limits wire.Limits
	Tasks  node.Options // of the node tasks
	// Between, when set, is put between the agent and the operating system.
	Between func(agent.OS) agent.OS
}

// Stack is a running stack. It ends with its test, which fails when the log
// holds a panic or a handle is left open then.
type Stack struct {
	testing.TB
	Node  *sim.Node
	OS    agent.OS // what the agent works on
	Agent *agent.Agent
	Tasks *node.Tasks // over the agent
	Log   *Log
	// Drive is the real folder that is the node's drive C.
	Drive string

	config Config
	place  pipe.Place
	server *wire.Server
	seed   maphash.Seed // of ImageSum

	mu    sync.Mutex
	conns map[wire.API]*grpc.ClientConn
}

// New starts a stack; change may alter what it is made of.
func New(t testing.TB, change ...func(*Config)) *Stack {
	t.Helper()
	s := &Stack{TB: t, Log: &Log{}, Drive: t.TempDir(), place: wiretest.Place(t), seed: maphash.MakeSeed(), conns: map[wire.API]*grpc.ClientConn{}}
	logger := slog.New(slog.NewTextHandler(s.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.config = Config{
		Node:   sim.Config{Dir: t.TempDir(), Drives: map[byte]string{'C': s.Drive}, ArrivalPolls: -1, ServicePolls: -1},
		Policy: agent.Policy{Roots: []string{Root}, RequirePrivacy: true, PollInterval: time.Millisecond, Logger: logger},
		Tasks:  node.Options{Folder: Root + `\plugins\csi-windows`, DiskTimeout: time.Millisecond, Logger: logger},
	}
	for _, c := range change {
		c(&s.config)
	}
	simulated, err := sim.Open(t.Context(), s.config.Node)
	s.OK(err)
	s.Node = simulated
	t.Cleanup(s.end)
	s.MakeDir(Root)
	s.start()
	return s
}

// start puts an agent, the node tasks and a server over the node.
func (s *Stack) start() {
	s.Helper()
	s.OS = winos.New(s.Node, s.Node, winos.Options{
		PollInterval: time.Millisecond,
		Retry:        cim.RetryPolicy{FirstDelay: time.Microsecond, LongestDelay: time.Microsecond},
	})
	if s.config.Between != nil {
		s.OS = s.config.Between(s.OS)
	}
	var err error
	s.Agent, err = agent.New(s.OS, s.config.Policy)
	s.OK(err)
	s.Tasks, err = node.New(s.Agent, s.config.Tasks)
	s.OK(err)
	s.server, err = wire.NewServer(wire.ServerConfig{
		Host: s.Agent, Node: s.Tasks, Place: s.place, APIs: s.config.APIs, Limits: s.config.Limits, Logger: s.config.Policy.Logger,
	})
	s.OK(err)
	s.OK(s.server.Start(context.Background()))
}

// Stop ends server and agent, as the end of their process does. A second Stop
// does nothing.
func (s *Stack) Stop() {
	s.Helper()
	s.mu.Lock()
	for api, conn := range s.conns {
		_ = conn.Close()
		delete(s.conns, api)
	}
	s.mu.Unlock()
	if s.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		s.Errorf("shut down: %v", err)
	}
	s.server = nil
}

// Restart puts a new agent and a new server in place of the old ones, over the
// node as it is. change may alter what they are made of.
func (s *Stack) Restart(change ...func(*Config)) {
	s.Helper()
	s.Stop()
	for _, c := range change {
		c(&s.config)
	}
	s.start()
}

// PowerCycle cuts the power unless somebody has, boots the node and starts the
// stack again. Faults are cleared.
func (s *Stack) PowerCycle() {
	s.Helper()
	s.OK(s.Node.ClearFaults(context.Background()))
	_ = s.Node.PowerCut(context.Background()) // fails when the power is off already
	s.Stop()
	s.OK(s.Node.Boot(context.Background()))
	s.start()
}

// end checks what is left, and closes everything.
func (s *Stack) end() {
	ctx := context.Background()
	_ = s.Node.ClearFaults(ctx) // frees what hangs
	if s.server != nil {
		s.Stop()
	}
	// What hung a moment ago has still to close what it has opened.
	for end := time.Now().Add(stopTimeout); s.Handles() != 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if open := s.Handles(); open != 0 {
		s.Errorf("%d handles are left open", open)
	}
	if err := s.Node.Close(); err != nil {
		s.Errorf("close node: %v", err)
	}
	s.Log.mustBeCalm(s)
}

// Context is a context with the deadline of a test's call.
func (s *Stack) Context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), CallTimeout)
	s.Cleanup(cancel)
	return ctx
}

// OK fails the test at once when err is one.
func (s *Stack) OK(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// image is the path of a new disk image.
func (s *Stack) image() string { return filepath.Join(s.TempDir(), "disk.img") }
