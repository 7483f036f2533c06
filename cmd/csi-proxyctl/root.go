package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/cmd/internal/version"
	"github.com/csi-windows/csi-windows/host"
)

// defaultTimeout bounds one command.
const defaultTimeout = 30 * time.Second

// environment is what the program takes from its surroundings besides its
// command line.
type environment struct {
	Stdout, Stderr io.Writer
	// Open connects to the csi-proxy whose sockets are in a folder, or whose
	// pipes are this machine's when the folder is empty.
	Open func(socketDir string) (node, error)
}

// node is an open connection to a csi-proxy.
type node interface {
	host.Host
	// APIs returns, for each API group, what the client uses and what is served.
	APIs(ctx context.Context) ([]apiRow, error)
	Close() error
}

// options are the flags of every command.
type options struct {
	socketDir string
	form      string
	timeout   time.Duration
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, env environment) int {
	root := newRoot(env)
	root.SetArgs(args)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(env.Stderr, "csi-proxyctl: %v\n", err)
		return 1
	}
	return 0
}

// newRoot builds the tree of commands.
func newRoot(env environment) *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:           "csi-proxyctl",
		Short:         "Look at the storage of a Windows node through its csi-proxy, and check what it does",
		Version:       version.Full(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath())
	})
	root.PersistentFlags().StringVar(&o.socketDir, "socket-dir", "", "folder of the sockets of a csi-proxy off Windows")
	root.PersistentFlags().DurationVar(&o.timeout, "timeout", defaultTimeout, "time for the whole command")
	root.AddCommand(newGet(env, o), newConformance(env, o))
	return root
}

// newGet builds `get` and what can be got.
func newGet(env environment, o *options) *cobra.Command {
	get := &cobra.Command{
		Use:   "get",
		Short: "Print what the node has",
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if o.form != formTable && o.form != formJSON {
				return fmt.Errorf("--output: %q must be %s or %s", o.form, formTable, formJSON)
			}
			if o.timeout <= 0 {
				return fmt.Errorf("--timeout: %s must be more than 0", o.timeout)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("get: %q is nothing that can be got; see csi-proxyctl get --help", args[0])
			}
			return cmd.Help()
		},
	}
	get.PersistentFlags().StringVarP(&o.form, "output", "o", formTable, "form of the output: table or json")
	get.AddCommand(
		newList(env, o, "disks", "Print the disks", diskColumns, disks),
		newList(env, o, "volumes", "Print the volumes", volumeColumns, volumes),
		newList(env, o, "mounts", "Print where volumes are mounted", mountColumns, mounts),
		newList(env, o, "mappings", "Print the SMB mappings", mappingColumns, mappings),
		newList(env, o, "targets", "Print the iSCSI targets", targetColumns, targets),
		newList(env, o, "versions", "Print the API versions that are used and served", apiColumns, apis),
		newServices(env, o),
	)
	return get
}

// newList builds one `get` command that takes no arguments.
func newList[T any](env environment, o *options, name, short string, columns []column[T], list func(context.Context, node) ([]T, error)) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(cmd, env, o, name, columns, list)
		},
	}
}

// newServices builds `get services`.
func newServices(env environment, o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "services [NAME...]",
		Short: "Print services: the named ones, or those that storage hangs on",
		RunE: func(cmd *cobra.Command, names []string) error {
			return show(cmd, env, o, "services", serviceColumns, func(ctx context.Context, n node) ([]serviceRow, error) {
				return services(ctx, n, names)
			})
		},
	}
}

// show connects, lists and prints.
func show[T any](cmd *cobra.Command, env environment, o *options, what string, columns []column[T], list func(context.Context, node) ([]T, error)) (err error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
	defer cancel()
	n, err := env.Open(o.socketDir)
	if err != nil {
		return err
	}
	defer func() { _ = n.Close() }()
	rows, err := list(ctx, n)
	switch {
	case errors.Is(err, client.ErrNoServer):
		return noServer(o.socketDir)
	case host.IsKind(err, host.KindUnsupported):
		return fmt.Errorf("this csi-proxy cannot list %s: %w", what, err)
	case err != nil:
		return err
	}
	return write(env.Stdout, o.form, rows, columns)
}
