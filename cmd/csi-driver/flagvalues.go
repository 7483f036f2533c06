package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/sim/cloud"
)

// nodesValue are nodes of the simulated cloud, NAME=ADDRESS[,zone=ZONE][,max=DISKS].
type nodesValue struct{ nodes *[]cloud.Node }

// String prints the names.
func (v nodesValue) String() string {
	if v.nodes == nil {
		return ""
	}
	var names []string
	for _, n := range *v.nodes {
		names = append(names, n.Name)
	}
	return strings.Join(names, ",")
}

// Set adds one node.
func (v nodesValue) Set(value string) error {
	want := errors.New("want NAME=ADDRESS, and then ,zone=ZONE or ,max=DISKS or both")
	name, rest, found := strings.Cut(value, "=")
	address, options, more := strings.Cut(rest, ",")
	if !found || name == "" || address == "" {
		return want
	}
	n := cloud.Node{Name: name, Control: address}
	for more {
		var option string
		option, options, more = strings.Cut(options, ",")
		key, value, _ := strings.Cut(option, "=")
		most, err := strconv.Atoi(value)
		switch {
		case key == "zone" && value != "":
			n.Zone = value
		case key == "max" && err == nil && most >= 0:
			n.MaxDisks = most
		default:
			return want
		}
	}
	if err := checkControl(n.Control); err != nil {
		return err
	}
	for what, name := range map[string]string{"the node": n.Name, "the zone": cmp.Or(n.Zone, cloud.DefaultZone)} {
		if !cloud.ValidName(name) {
			return fmt.Errorf("%s must have a name of letters, digits, '-', '_' and '.'", what)
		}
	}
	if slices.ContainsFunc(*v.nodes, func(known cloud.Node) bool { return known.Name == n.Name }) {
		return errors.New("the node is named twice")
	}
	*v.nodes = append(*v.nodes, n)
	return nil
}

// checkControl accepts what a node's control listens at: a socket or HOST:PORT.
func checkControl(address string) error {
	if filepath.IsAbs(address) {
		return nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("control address %.64q: must be the absolute path of a socket, or HOST:PORT", address)
	}
	return nil
}

// smbSource is one source of the flag -smb-source.
type smbSource struct {
	Path           string
	CredentialsDir string // empty: every call brings secrets
}

// sourcesValue are sources, PATH[,credentials=FOLDER].
type sourcesValue struct{ sources *[]smbSource }

// String prints the paths.
func (v sourcesValue) String() string {
	if v.sources == nil {
		return ""
	}
	var paths []string
	for _, s := range *v.sources {
		paths = append(paths, s.Path)
	}
	return strings.Join(paths, ",")
}

// Set adds one source.
func (v sourcesValue) Set(value string) error {
	path, folder, hasFolder := strings.Cut(value, ",credentials=")
	if path == "" || hasFolder && folder == "" {
		return errors.New("want //SERVER/SHARE/FOLDER or //SERVER/SHARE/FOLDER,credentials=FOLDER")
	}
	*v.sources = append(*v.sources, smbSource{path, folder})
	return nil
}

// dialValue maps servers to addresses, SERVER=HOST:PORT.
type dialValue struct{ addresses *map[string]string }

// String prints the servers in no special order.
func (v dialValue) String() string {
	if v.addresses == nil {
		return ""
	}
	var pairs []string
	for server, address := range *v.addresses {
		pairs = append(pairs, server+"="+address)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// Set adds one server.
func (v dialValue) Set(value string) error {
	server, address, found := strings.Cut(value, "=")
	if _, _, err := net.SplitHostPort(address); err != nil || !found || server == "" {
		return errors.New("want SERVER=HOST:PORT")
	}
	if *v.addresses == nil {
		*v.addresses = map[string]string{}
	}
	(*v.addresses)[strings.ToLower(server)] = address
	return nil
}
