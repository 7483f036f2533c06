package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/cmd/internal/sandbox"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// chooseHost decides how the node's storage is reached, and says why. A process
// cannot see whether it may change the node's disks: in an ordinary container it
// may be an administrator and see none of them.
func chooseHost(c *config, env environment) (way, why string) {
	switch {
	case c.Host != hostAuto:
		return c.Host, "-host=" + c.Host
	case sandbox.Of(env.GOOS, env.Getenv).IsSet() && env.GOOS == "windows":
		return hostLocal, sandbox.Variable + " is set: this is a HostProcess container"
	case c.SimDir != "":
		return hostLocal, "-sim-dir is set: the node is simulated in process"
	case env.GOOS == "windows":
		return hostProxy, sandbox.Variable + " is not set: this is no HostProcess container"
	default:
		return hostProxy, "this is no Windows"
	}
}

// machine is what the agent works on in process.
type machine struct {
	session cim.Session
	api     win32.API
	close   func() error
}

// storage is the node's storage as the driver uses it.
type storage struct {
	node  node.Node
	close func() error
}

// openStorage opens it the chosen way.
func openStorage(ctx context.Context, c *config, way string, log *slog.Logger) (*storage, error) {
	if way == hostLocal {
		return openLocal(ctx, c, log)
	}
	pipes, err := client.New(client.Options{Place: pipe.Place{Dir: c.SocketDir}, CallTimeout: c.CallTime})
	if err != nil {
		return nil, err
	}
	tasks, err := node.New(pipes, c.taskOptions(log))
	if err != nil {
		return nil, errors.Join(err, pipes.Close())
	}
	s := &storage{node: tasks, close: pipes.Close}
	switch c.NodeTasks {
	case tasksProxy:
		s.node = pipes
	case tasksAuto:
		s.node = &eitherNode{pipes: pipes, tasks: tasks, log: log}
	}
	return s, nil
}

func (c *config) taskOptions(log *slog.Logger) node.Options {
	return node.Options{Folder: c.NodeFolder, Logger: log, CallTimeout: c.CallTime}
}

// openLocal puts an agent over the machine, as csi-proxy does.
func openLocal(ctx context.Context, c *config, log *slog.Logger) (*storage, error) {
	m, err := openMachine(ctx, c, log)
	if err != nil {
		return nil, err
	}
	a, err := agent.New(winos.New(m.session, m.api, winos.Options{}), agent.Policy{
		Roots: append([]string{c.KubeletPath}, c.WorkingDirs...), RequirePrivacy: c.RequirePrivacy, CallTimeout: c.CallTime, Logger: log,
	})
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	tasks, err := node.New(a, c.taskOptions(log))
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return &storage{node: tasks, close: m.close}, nil
}

// eitherNode has csi-proxy do the tasks if it can, and does them over its primitives
// otherwise. It looks before each task: csi-proxy may start after the driver, and
// be replaced while it runs. Both ways leave the node in the same state.
type eitherNode struct {
	pipes *client.Client
	tasks node.Node
	log   *slog.Logger

	mu  sync.Mutex
	who string // that did the last task, for the log
}

var _ node.Node = (*eitherNode)(nil)

func (e *eitherNode) choose(ctx context.Context) (node.Node, error) {
	has, err := e.pipes.HasNode(ctx)
	if err != nil {
		return nil, err
	}
	chosen, who, why := e.tasks, tasksDriver, "csi-proxy has no API group node"
	if has {
		chosen, who, why = e.pipes, tasksProxy, "csi-proxy has the API group node"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if who != e.who {
		e.who = who
		e.log.Info("node tasks are chosen", "nodeTasks", who, "why", why)
	}
	return chosen, nil
}

// either does a task with whom is chosen for it.
func either[A any](ctx context.Context, e *eitherNode, do func(node.Node) (A, error)) (A, error) {
	chosen, err := e.choose(ctx)
	if err != nil {
		var none A
		return none, err
	}
	return do(chosen)
}

// eitherDo is either for a task without an answer.
func eitherDo(ctx context.Context, e *eitherNode, do func(node.Node) error) error {
	_, err := either(ctx, e, func(n node.Node) (struct{}, error) { return struct{}{}, do(n) })
	return err
}

// Stage implements node.Node.
func (e *eitherNode) Stage(ctx context.Context, r node.StageRequest) error {
	return eitherDo(ctx, e, func(n node.Node) error { return n.Stage(ctx, r) })
}

// Unstage implements node.Node.
func (e *eitherNode) Unstage(ctx context.Context, r node.UnstageRequest) error {
	return eitherDo(ctx, e, func(n node.Node) error { return n.Unstage(ctx, r) })
}

// Publish implements node.Node.
func (e *eitherNode) Publish(ctx context.Context, r node.PublishRequest) error {
	return eitherDo(ctx, e, func(n node.Node) error { return n.Publish(ctx, r) })
}

// Unpublish implements node.Node.
func (e *eitherNode) Unpublish(ctx context.Context, r node.UnpublishRequest) error {
	return eitherDo(ctx, e, func(n node.Node) error { return n.Unpublish(ctx, r) })
}

// Expand implements node.Node.
func (e *eitherNode) Expand(ctx context.Context, r node.ExpandRequest) (node.ExpandResult, error) {
	return either(ctx, e, func(n node.Node) (node.ExpandResult, error) { return n.Expand(ctx, r) })
}

// Stats implements node.Node.
func (e *eitherNode) Stats(ctx context.Context, r node.StatsRequest) (node.Stats, error) {
	return either(ctx, e, func(n node.Node) (node.Stats, error) { return n.Stats(ctx, r) })
}

// Health implements node.Node.
func (e *eitherNode) Health(ctx context.Context, r node.HealthRequest) (node.Health, error) {
	return either(ctx, e, func(n node.Node) (node.Health, error) { return n.Health(ctx, r) })
}

// Info implements node.Node.
func (e *eitherNode) Info(ctx context.Context) (node.Info, error) {
	return either(ctx, e, func(n node.Node) (node.Info, error) { return n.Info(ctx) })
}
