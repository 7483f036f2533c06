// The program node is the node server of the Wine lab: one simulated node in a
// process outside Wine. Stand-ins inside Wine ask it over the stand-in link,
// see package standin; tests arrange and watch it over HTTP, see package
// sim/control and standin.Server.Handler.
//
// When it is ready it prints one line of JSON with its addresses:
//
//	{"standin":"127.0.0.1:40001","control":"127.0.0.1:40002","dir":"/tmp/node1"}
//
// It ends on an interrupt, on SIGTERM, and when its standard input ends.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	standin, control string
	dir              string
	drives           map[byte]string
	arrivalPolls     int
	servicePolls     int
}

func parse(args []string, output io.Writer) (config, error) {
	c := config{drives: map[byte]string{}}
	flags := flag.NewFlagSet("node", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&c.standin, "standin", "127.0.0.1:0", "`address` of the stand-in link")
	flags.StringVar(&c.control, "control", "127.0.0.1:0", "`address` of the control interface")
	flags.StringVar(&c.dir, "dir", "", "`folder` with the state of the node; a temporary one when left out")
	flags.IntVar(&c.arrivalPolls, "arrival-polls", -1, "looks that a new volume or iSCSI disk takes to arrive; negative for none")
	flags.IntVar(&c.servicePolls, "service-polls", -1, "status queries that a service takes to start or stop; negative for none")
	flags.Func("drive", "`X=folder`: a drive whose content is a real folder; may be given several times", func(value string) error {
		letter, folder, ok := strings.Cut(value, "=")
		if !ok || len(letter) != 1 || folder == "" {
			return errors.New("want X=folder")
		}
		c.drives[letter[0]] = folder
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	return c, nil
}

// run serves until ctx or the input ends.
func run(ctx context.Context, args []string, input io.Reader, output, errorOutput io.Writer) error {
	c, err := parse(args, errorOutput)
	if err != nil {
		return err
	}
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "csi-node"); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(c.dir) }()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bed, err := openBed(ctx, c, slog.New(slog.NewTextHandler(errorOutput, nil)))
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- bed.serve(ctx) }()
	ready, err := json.Marshal(bed.addresses())
	if err == nil {
		_, err = fmt.Fprintf(output, "%s\n", ready)
	}
	if err != nil {
		cancel()
		return errors.Join(err, <-ended)
	}
	go func() {
		_, _ = io.Copy(io.Discard, input)
		cancel()
	}()
	return <-ended
}
