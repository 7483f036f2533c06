package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/test/wine/standin"
)

// bed is a node with its two interfaces.
type bed struct {
	config  config
	log     *slog.Logger
	link    net.Listener
	control net.Listener
	server  *standin.Server

	mu    sync.Mutex
	node  *sim.Node
	http  http.Handler // the node's control
	count int          // nodes so far
}

// openBed opens the listeners and a node.
func openBed(ctx context.Context, c config, log *slog.Logger) (*bed, error) {
	b := &bed{config: c, log: log}
	var err error
	if b.link, err = net.Listen("tcp", c.standin); err != nil {
		return nil, err
	}
	if b.control, err = net.Listen("tcp", c.control); err != nil {
		return nil, errors.Join(err, b.link.Close())
	}
	node, err := b.open(ctx)
	if err != nil {
		return nil, errors.Join(err, b.link.Close(), b.control.Close())
	}
	b.node, b.http = node, control.Handler(arranged{node, b.dir()})
	b.server = standin.NewServer(node, standin.Config{Logger: log, DiskFolder: filepath.Join(c.dir, "virtual-disks")})
	return b, nil
}

// dir is the folder of the present node: every node has one of its own.
func (b *bed) dir() string { return filepath.Join(b.config.dir, "node"+strconv.Itoa(b.count)) }

func (b *bed) open(ctx context.Context) (*sim.Node, error) {
	return sim.Open(ctx, sim.Config{
		Dir: b.dir(), Logger: b.log, Drives: b.config.drives,
		ArrivalPolls: b.config.arrivalPolls, ServicePolls: b.config.servicePolls,
	})
}

// fresh puts a new, empty node in the place of the present one. Mapped drives
// keep their content.
func (b *bed) fresh(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	oldDir, old := b.dir(), b.node
	b.count++
	node, err := b.open(ctx)
	if err != nil {
		b.count--
		return fmt.Errorf("fresh node: %w", err)
	}
	b.node, b.http = node, control.Handler(arranged{node, b.dir()})
	b.server.SetNode(ctx, node)
	return errors.Join(old.Close(), os.RemoveAll(oldDir))
}

func (b *bed) present() (*sim.Node, http.Handler) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.node, b.http
}

// serve answers until ctx ends, and closes the node.
func (b *bed) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- b.server.Serve(ctx, b.link) }()
	go func() { ended <- control.ServeHandler(ctx, b.control, b.handler()) }()
	var err error
	served := 0
	select {
	case err = <-ended:
		served++
	case <-ctx.Done():
	}
	cancel()
	node, _ := b.present()
	err = errors.Join(err, node.ClearFaults(context.WithoutCancel(ctx))) // calls that hang in one hold the server
	for ; served < 2; served++ {
		err = errors.Join(err, <-ended)
	}
	node, _ = b.present()
	return errors.Join(err, node.Close())
}

// handler is the control of the node and of the link. A change of the node is
// answered when the driver has the devices that came of it.
func (b *bed) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/standin/", b.server.Handler(b.fresh))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, node := b.present()
		late := &lateWriter{ResponseWriter: w, before: func() { b.server.Settle(r.Context()) }}
		node.ServeHTTP(late, r)
	})
	return mux
}

// lateWriter does something before the first byte of an answer.
type lateWriter struct {
	http.ResponseWriter
	before func()
}

func (w *lateWriter) Write(p []byte) (int, error) {
	if w.before != nil {
		w.before()
		w.before = nil
	}
	return w.ResponseWriter.Write(p)
}

// addresses is the line that tells where the bed is.
func (b *bed) addresses() map[string]string {
	return map[string]string{
		"standin": b.link.Addr().String(), "control": b.control.Addr().String(), "dir": b.config.dir,
	}
}

// arranged is a node on which relative paths of images and folders of shares are
// below its own folder, and those on Wine's drive Z are the machine's: a client under
// Wine knows no other path of the machine.
type arranged struct {
	*sim.Node
	dir string
}

func (a arranged) place(path string) string {
	if rest, found := strings.CutPrefix(path, "Z:"); found {
		path = strings.ReplaceAll(rest, `\`, "/")
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.dir, "given", filepath.FromSlash(path))
}

// AttachDisk implements sim.DiskController.
func (a arranged) AttachDisk(ctx context.Context, spec sim.DiskSpec) (uint32, error) {
	var err error
	if spec, err = a.disk(spec); err != nil {
		return 0, err
	}
	return a.Node.AttachDisk(ctx, spec)
}

func (a arranged) disk(spec sim.DiskSpec) (sim.DiskSpec, error) {
	if spec.Image == "" {
		return spec, errors.New("a disk needs an image")
	}
	spec.Image = a.place(spec.Image)
	return spec, os.MkdirAll(filepath.Dir(spec.Image), 0o755)
}

// SetISCSITarget implements sim.NetworkController.
func (a arranged) SetISCSITarget(ctx context.Context, target sim.ISCSITarget) error {
	for i := range target.LUNs {
		var err error
		if target.LUNs[i], err = a.disk(target.LUNs[i]); err != nil {
			return err
		}
	}
	return a.Node.SetISCSITarget(ctx, target)
}

// SetSMBServer implements sim.NetworkController.
func (a arranged) SetSMBServer(ctx context.Context, server sim.SMBServer) error {
	for i := range server.Shares {
		share := &server.Shares[i]
		share.Folder = a.place(share.Folder)
		if err := os.MkdirAll(share.Folder, 0o755); err != nil {
			return err
		}
	}
	return a.Node.SetSMBServer(ctx, server)
}
