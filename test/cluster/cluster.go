package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// startTime is how long a part of the cluster may take until it serves. It is much
// more than it needs on an idle machine.
const startTime = 5 * time.Minute

// pollTime lies between two looks at something that is waited for.
const pollTime = 50 * time.Millisecond

// longWait is how long a wait is that is worth a line in the log.
const longWait = 2 * time.Second

// Options say what a cluster has beside a control plane.
type Options struct {
	// SnapshotController starts the cluster's controller of snapshots and group
	// snapshots, which a CSI snapshotter works with.
	SnapshotController bool
	// Flags are further ones of a program: kube-apiserver, kube-controller-manager,
	// kube-scheduler, snapshot-controller.
	Flags map[string][]string
}

// Cluster is a running control plane.
type Cluster struct {
	// Dir is the cluster's folder. Its path is short, as that of a socket has to be.
	Dir string
	// Config is that of an administrator.
	Config *rest.Config
	// Client is an administrator's, as is Dynamic.
	Client kubernetes.Interface
	// Dynamic is for kinds that Client does not know.
	Dynamic dynamic.Interface
	// APIServer is the process of the API server.
	APIServer *Process
	// ControllerManager is that of the controller manager.
	ControllerManager *Process
	// Scheduler is that of the scheduler.
	Scheduler *Process
	// SnapshotController is that of the controller of snapshots, if it was wanted.
	SnapshotController *Process

	t         testing.TB
	options   Options
	authority *authority
	url       string
	logs      *logNames
}

// For is the cluster for a subtest: what is started with it ends with that one, and
// shows its log when that one fails.
func (c *Cluster) For(t testing.TB) *Cluster {
	own := *c
	own.t = t
	return &own
}

// logNames are how many logs there are, by name.
type logNames struct {
	mu    sync.Mutex
	count map[string]int
}

// Start starts a cluster that ends with the test.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	// A short path: a socket's path has little room. Source: unix(7), sun_path.
	dir, err := os.MkdirTemp("", "kc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the cluster: %v", err)
		}
	})
	c := &Cluster{Dir: dir, t: t, options: options, logs: &logNames{count: map[string]int{}}}
	if err := c.prepare(); err != nil {
		t.Fatal(err)
	}
	c.startStore()
	ready := c.startManagers()
	c.installSnapshots()
	c.installRoles()
	ready()
	c.awaitRoles()
	if options.SnapshotController {
		c.startSnapshotController()
	}
	return c
}

// prepare makes the folders, the certificates and the clients.
func (c *Cluster) prepare() (err error) {
	for _, name := range []string{"pki", "logs", "users"} {
		if err := os.Mkdir(filepath.Join(c.Dir, name), 0o700); err != nil {
			return err
		}
	}
	if c.authority, err = newAuthority(); err != nil {
		return err
	}
	if err := c.authority.write(c.path("pki")); err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	c.url = fmt.Sprintf("https://127.0.0.1:%d", ports[0])
	if c.Config, err = c.authority.config(c.url, "admin", "system:masters"); err != nil {
		return err
	}
	if c.Client, err = kubernetes.NewForConfig(c.Config); err != nil {
		return err
	}
	c.Dynamic, err = dynamic.NewForConfig(c.Config)
	return err
}

// path is one below the cluster's folder.
func (c *Cluster) path(names ...string) string {
	return filepath.Join(append([]string{c.Dir}, names...)...)
}

// context is one that ends with the test, and before that when a wait has taken
// longer than anything may take.
func (c *Cluster) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.t.Context(), startTime)
}

// Wait looks again and again until something holds, or the test fails with what was
// last wrong.
func (c *Cluster) Wait(what string, limit time.Duration, try func(context.Context) error) {
	c.t.Helper()
	began := time.Now()
	if err := c.wait(limit, try); err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
	if took := time.Since(began); took > longWait {
		c.t.Logf("%s: took %v", what, took.Round(100*time.Millisecond))
	}
}

func (c *Cluster) wait(limit time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not after %v: %w", limit, err)
		case <-time.After(pollTime):
		}
	}
}

// waitFor is Wait for a program that has to be there meanwhile.
func (c *Cluster) waitFor(p *Process, try func(context.Context) error) {
	c.t.Helper()
	c.Wait(p.name, startTime, func(ctx context.Context) error {
		err := try(ctx)
		if err != nil && p.Ended() {
			c.t.Fatalf("%s has ended: %v", p.name, errors.Join(p.failure, err))
		}
		return err
	})
}

// Pause stops the API server where it is: connections stay open, and nothing is
// answered.
func (c *Cluster) Pause() {
	c.t.Helper()
	if err := c.APIServer.Pause(); err != nil {
		c.t.Fatal(err)
	}
}

// Resume lets the API server go on.
func (c *Cluster) Resume() {
	c.t.Helper()
	if err := c.APIServer.Resume(); err != nil {
		c.t.Fatal(err)
	}
}
