package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/test/conformance"
	"github.com/csi-windows/csi-windows/test/conformance/simnode"
	"github.com/csi-windows/csi-windows/test/conformance/vhdx"
)

// The ways to make scratch disks.
const (
	scratchVHDX = "vhdx" // a file that this machine attaches as a disk
	scratchSim  = "sim"  // an image on the simulated node
	scratchNone = "none"
)

// conformanceOptions are the flags of `conformance`.
type conformanceOptions struct {
	form        string
	list        bool
	pattern     string
	caseTimeout time.Duration
	workingDir  string
	simControl  string
	scratch     string
	scratchDir  string

	smbPath, smbUser, smbPasswordFile                            string
	iscsiPortal, iscsiTarget, iscsiChapUser, iscsiChapSecretFile string
}

// newConformance builds `conformance`.
func newConformance(env environment, o *options) *cobra.Command {
	c := &conformanceOptions{}
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Check what a csi-proxy does on its node, with scratch disks that are made for it",
		Long: `Check what a csi-proxy does on its node: every case makes what it needs, looks at
the effects beside csi-proxy, and takes everything away again. Disks are made for
the run (on Windows in a file); no other disk is ever changed. The exit code is 1
when a case fails.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd, env, o) },
	}
	f := cmd.Flags()
	f.StringVarP(&c.form, "output", "o", formTable, "form of the output: table or json")
	f.BoolVar(&c.list, "list", false, "print the names of the cases and run none")
	f.StringVar(&c.pattern, "run", "", "run the cases whose names match this regular expression")
	f.DurationVar(&c.caseTimeout, "case-timeout", conformance.DefaultCaseTimeout, "time for one case")
	f.StringVar(&c.workingDir, "working-dir", `C:\var\lib\kubelet`, "a working folder of the csi-proxy on its node")
	f.StringVar(&c.simControl, "sim-control", "", "control address of the simulated node that the csi-proxy serves")
	f.StringVar(&c.scratch, "scratch", "", "how scratch disks are made: vhdx, sim or none (default: sim with --sim-control, else vhdx)")
	f.StringVar(&c.scratchDir, "scratch-dir", "", "folder for the files of scratch disks (default: that for temporary files)")
	f.StringVar(&c.smbPath, "smb-path", "", `share for tests, \\server\share; without it cases that need one are not run`)
	f.StringVar(&c.smbUser, "smb-user", "", "user of the share")
	f.StringVar(&c.smbPasswordFile, "smb-password-file", "", "file with the password of the share")
	f.StringVar(&c.iscsiPortal, "iscsi-portal", "", "iSCSI portal for tests, HOST:PORT; without it cases that need one are not run")
	f.StringVar(&c.iscsiTarget, "iscsi-target", "", "name of the target (default: the only one of the portal)")
	f.StringVar(&c.iscsiChapUser, "iscsi-chap-user", "", "CHAP user of the target")
	f.StringVar(&c.iscsiChapSecretFile, "iscsi-chap-secret-file", "", "file with the CHAP secret of the target")
	return cmd
}

// run lists the cases or runs them.
func (c *conformanceOptions) run(cmd *cobra.Command, env environment, o *options) (err error) {
	pattern, err := c.check()
	if err != nil {
		return err
	}
	if c.list {
		return write(env.Stdout, c.form, caseRows(pattern), caseColumns)
	}
	ctx := cmd.Context()
	if cmd.Flags().Changed("timeout") {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	bed, closeBed, err := c.bed()
	if err != nil {
		return err
	}
	defer closeBed()
	n, err := env.Open(o.socketDir)
	if err != nil {
		return err
	}
	defer func() { _ = n.Close() }()
	bed.Host = n
	options := conformance.Options{Run: pattern, CaseTimeout: c.caseTimeout}
	if c.form == formTable {
		options.Observe = func(r conformance.Result) { printResult(env.Stdout, r) }
	}
	results, err := conformance.Run(ctx, bed, options)
	if len(results) == 0 && errors.Is(err, client.ErrNoServer) {
		return noServer(o.socketDir)
	}
	if c.form == formJSON && results != nil {
		err = errors.Join(write(env.Stdout, formJSON, results, nil), err)
	}
	if failure := errors.Join(summary(results), err); failure != nil || c.form == formJSON {
		return failure
	}
	passed, _, notRun := counts(results)
	_, err = fmt.Fprintf(env.Stdout, "all %d cases that were run have passed; %d were not run\n", passed, notRun)
	return err
}

// check checks the flags that can be wrong by themselves, and fills in what follows
// from the others.
func (c *conformanceOptions) check() (*regexp.Regexp, error) {
	if c.scratch == "" {
		c.scratch = scratchVHDX
		if c.simControl != "" {
			c.scratch = scratchSim
		}
	}
	for _, rule := range []struct {
		flag string
		ok   bool
		want string
	}{
		{"output", c.form == formTable || c.form == formJSON, "must be table or json"},
		{"case-timeout", c.caseTimeout > 0, "must be more than 0"},
		{"scratch", c.scratch == scratchVHDX || c.scratch == scratchSim || c.scratch == scratchNone, "must be vhdx, sim or none"},
		{"scratch", c.scratch != scratchSim || c.simControl != "", "sim needs --sim-control"},
		{"smb-user", c.smbUser == "" || c.smbPath != "", "needs --smb-path"},
		{"smb-password-file", c.smbPasswordFile == "" || c.smbUser != "", "needs --smb-user"},
		{"iscsi-target", c.iscsiTarget == "" || c.iscsiPortal != "", "needs --iscsi-portal"},
		{"iscsi-chap-user", c.iscsiChapUser == "" || c.iscsiChapSecretFile != "", "needs --iscsi-chap-secret-file"},
		{"iscsi-chap-secret-file", c.iscsiChapSecretFile == "" || c.iscsiPortal != "", "needs --iscsi-portal"},
	} {
		if !rule.ok {
			return nil, fmt.Errorf("--%s: %s", rule.flag, rule.want)
		}
	}
	if c.pattern == "" {
		return nil, nil
	}
	pattern, err := regexp.Compile(c.pattern)
	if err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	if len(conformance.Select(pattern)) == 0 {
		return nil, fmt.Errorf("--run: no case is called like %q; see --list", c.pattern)
	}
	return pattern, nil
}

// bed is what the cases work with, still without the host. It must be closed after
// the run.
func (c *conformanceOptions) bed() (bed conformance.Env, closeBed func(), err error) {
	bed = conformance.Env{Files: conformance.LocalFiles{}, WorkingDir: c.workingDir}
	closeBed = func() {}
	if bed.SMB, err = c.share(); err != nil {
		return bed, closeBed, err
	}
	if bed.ISCSI, err = c.target(); err != nil {
		return bed, closeBed, err
	}
	if c.simControl != "" {
		node := simnode.Dial(c.simControl, c.scratchDir)
		bed.Files, bed.Scratch, closeBed = node, node, node.Close
	}
	switch c.scratch {
	case scratchNone:
		bed.Scratch = nil
	case scratchVHDX:
		bed.Scratch, err = vhdx.New(c.scratchDir)
	}
	return bed, closeBed, err
}

// share is the share the flags name, or nil.
func (c *conformanceOptions) share() (*conformance.SMBShare, error) {
	if c.smbPath == "" {
		return nil, nil
	}
	password, err := secretIn("smb-password-file", c.smbPasswordFile)
	return &conformance.SMBShare{Path: c.smbPath, Username: c.smbUser, Password: password}, err
}

// target is the target the flags name, or nil.
func (c *conformanceOptions) target() (*conformance.ISCSITarget, error) {
	if c.iscsiPortal == "" {
		return nil, nil
	}
	address, portText, err := net.SplitHostPort(c.iscsiPortal)
	if err != nil {
		return nil, fmt.Errorf("--iscsi-portal: %w", err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("--iscsi-portal: %q is no port", portText)
	}
	t := &conformance.ISCSITarget{Portal: host.TargetPortal{Address: address, Port: uint32(port)}, IQN: c.iscsiTarget}
	if c.iscsiChapSecretFile == "" {
		return t, nil
	}
	t.Options = host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: c.iscsiChapUser}
	t.Options.ChapSecret, err = secretIn("iscsi-chap-secret-file", c.iscsiChapSecretFile)
	return t, err
}

// secretIn reads a secret from a file, where no list of processes shows it. A final
// line break is not part of it.
func secretIn(flagName, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--%s: %w", flagName, err)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

var caseColumns = []column[caseRow]{
	{"CASE", func(r caseRow) string { return r.Name }},
	{"NEEDS", func(r caseRow) string { return strings.Join(r.Needs, ", ") }},
}

// caseRow is one case that could be run.
type caseRow struct {
	Name  string   `json:"name"`
	Group string   `json:"group"`
	Needs []string `json:"needs,omitempty"`
}

func caseRows(pattern *regexp.Regexp) []caseRow {
	var rows []caseRow
	for _, c := range conformance.Select(pattern) {
		row := caseRow{Name: c.Name, Group: string(c.Group)}
		for _, need := range c.Needs {
			row.Needs = append(row.Needs, string(need))
		}
		rows = append(rows, row)
	}
	return rows
}

// printResult prints a case as soon as it has ended.
func printResult(w io.Writer, r conformance.Result) {
	fmt.Fprintf(w, "%-7s  %-35s %7.1fs\n", r.Outcome, r.Name, float64(r.DurationMilliseconds)/1000)
	for _, text := range slices.Concat(r.Failures, r.Notes) {
		fmt.Fprintf(w, "         %s\n", strings.ReplaceAll(text, "\n", "\n         "))
	}
}

// counts is how many cases ended how.
func counts(results []conformance.Result) (passed, failed, notRun int) {
	count := map[conformance.Outcome]int{}
	for _, r := range results {
		count[r.Outcome]++
	}
	return count[conformance.Passed], count[conformance.Failed], count[conformance.NotRun]
}

// summary is an error when a case failed, or none was run.
func summary(results []conformance.Result) error {
	passed, failed, notRun := counts(results)
	if failed > 0 || len(results) > 0 && passed == 0 {
		return fmt.Errorf("conformance: %d cases failed, %d passed, %d were not run", failed, passed, notRun)
	}
	return nil
}
