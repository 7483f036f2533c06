// Package client is a host.Host and a node.Node over the pipes of csi-proxy, for
// authors of drivers. It opens a group's pipe when the group is first used, takes
// the newest version that the server offers, and says which it took. The server may
// be ours or any csi-proxy, may restart, and may come back with other versions.
package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

// The defaults of Options.
const (
	DefaultDialTimeout = 2 * time.Second
	DefaultCallTimeout = 5 * time.Minute
)

// Options say where the server is and what is wanted of it. The zero value is a
// csi-proxy at its usual place, every group, the newest versions.
type Options struct {
	// Place says where the pipes are.
	Place pipe.Place
	// Groups are the groups that may be used, all when nil. A call of another
	// group is KindUnsupported.
	Groups []string
	// Versions are the versions that may be used, by group and in order of
	// preference. A group that is not named has all its versions, newest first.
	Versions map[string][]string
	// DialTimeout bounds the choice of a version, over all versions tried.
	DialTimeout time.Duration
	// CallTimeout is the deadline of calls whose context has none.
	CallTimeout time.Duration
}

// Client is a node's storage, and the node tasks, at the other end of pipes. Its methods may be called
// by many goroutines. Failures to reach the server are KindUnavailable, what the
// chosen version lacks is KindUnsupported.
type Client struct {
	place       pipe.Place
	protocol    *wire.Protocol
	dialTimeout time.Duration
	callTimeout time.Duration
	groups      map[string]*group
	closed      atomic.Bool
}

var _ host.Host = (*Client)(nil)

// ErrNoServer is found in the error of a call, of KindUnavailable, when no pipe of any
// group in use is served: as a rule no csi-proxy runs, or Options.Place is wrong.
var ErrNoServer = errors.New("no pipe of any group is served")

// errClosed is the cause of failures after Close.
var errClosed = errors.New("the client is closed")

// New checks the options. It opens nothing: pipes are opened by the first call of
// a group, or by Connect.
func New(options Options) (*Client, error) {
	c := &Client{
		place: options.Place, protocol: wire.NewProtocol(), groups: map[string]*group{},
		dialTimeout: options.DialTimeout, callTimeout: options.CallTimeout,
	}
	if c.dialTimeout <= 0 {
		c.dialTimeout = DefaultDialTimeout
	}
	if c.callTimeout <= 0 {
		c.callTimeout = DefaultCallTimeout
	}
	names := options.Groups
	if names == nil {
		names = wire.Groups()
	}
	for _, name := range names {
		versions, err := c.versions(name, options.Versions[name])
		if err != nil {
			return nil, err
		}
		c.groups[name] = newGroup(c, name, versions)
	}
	for name := range options.Versions {
		if c.groups[name] == nil {
			return nil, fmt.Errorf("client: versions are given for group %q, which is not used", name)
		}
	}
	return c, nil
}

// versions returns the versions of a group in the order in which they are tried.
func (c *Client) versions(name string, preferred []string) ([]string, error) {
	known := c.protocol.Versions(name)
	if len(known) == 0 {
		return nil, fmt.Errorf("client: no such group: %q", name)
	}
	if len(preferred) == 0 {
		return known, nil
	}
	for _, version := range preferred {
		if !slices.Contains(known, version) {
			return nil, fmt.Errorf("client: group %s has no version %q", name, version)
		}
	}
	return slices.Clone(preferred), nil
}

// Connect chooses the versions of some groups now rather than at their first
// call, of all groups in use when none is named. The error holds one *host.Error
// for each group that has none.
func (c *Client) Connect(ctx context.Context, groups ...string) error {
	if len(groups) == 0 {
		groups = slices.DeleteFunc(wire.Groups(), func(name string) bool { return c.groups[name] == nil })
	}
	var errs []error
	for _, name := range groups {
		l, err := c.acquire(ctx, "Connect", name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l.release()
	}
	return errors.Join(errs...)
}

// Chosen returns the versions in use by group. A group that was not called yet,
// or whose connection was lost, is missing.
func (c *Client) Chosen() map[string]string {
	chosen := map[string]string{}
	for name, g := range c.groups {
		if l := g.link.Load(); l != nil && l.ready() {
			chosen[name] = l.api.Version
		}
	}
	return chosen
}

// Close closes every pipe. Calls in flight fail with KindUnavailable, and so do
// later ones.
func (c *Client) Close() error {
	c.closed.Store(true)
	var errs []error
	for _, g := range c.groups {
		errs = append(errs, g.close())
	}
	return errors.Join(errs...)
}

// ServerInfo is what a server says of itself.
type ServerInfo struct {
	Version string // of the program
	APIs    []wire.API
}

// GetServerInfo asks the server for its version and what it serves. A foreign
// csi-proxy answers with KindUnsupported.
func (c *Client) GetServerInfo(ctx context.Context) (ServerInfo, error) {
	answer, err := call[*wirepb.GetServerInfoResponse](ctx, c, wire.GroupExtension, &wirepb.GetServerInfoRequest{})
	if err != nil {
		return ServerInfo{}, err
	}
	info := ServerInfo{Version: answer.GetVersion()}
	for _, api := range answer.GetApis() {
		info.APIs = append(info.APIs, wire.API{Group: api.GetGroup(), Version: api.GetVersion()})
	}
	return info, nil
}
