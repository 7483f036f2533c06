package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/cmd/internal/service"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// The forms of status's output.
const (
	outputTable = "table"
	outputJSON  = "json"
)

// askTime bounds the question to the running service.
const askTime = 5 * time.Second

// notInstalled is the state of a service that the manager does not know.
const notInstalled = "not installed"

// serviceReport is what status prints. Its names in JSON never change their meaning.
type serviceReport struct {
	Service   string   `json:"service"`
	State     string   `json:"state"`
	PID       uint32   `json:"pid,omitempty"`
	StartType string   `json:"startType,omitempty"`
	Account   string   `json:"account,omitempty"`
	Program   string   `json:"program,omitempty"`
	Args      []string `json:"args,omitempty"`
	// ProgramVersion is what the go command recorded in the file, RunningVersion what
	// the process says.
	ProgramVersion string `json:"programVersion,omitempty"`
	RunningVersion string `json:"runningVersion,omitempty"`
	// ExitCode is how it ended last, a Windows error; with 1066 the program's own
	// exit code counts, whose stage docs/operations.md names.
	ExitCode        uint32   `json:"exitCode"`
	ServiceExitCode uint32   `json:"serviceExitCode"`
	APIs            []string `json:"apis,omitempty"` // that are served
	APIsError       string   `json:"apisError,omitempty"`
}

// status prints the report. Its failure says that the service does not run.
func (v *verbRun) status(ctx context.Context) error {
	report, err := v.report(ctx)
	if err != nil {
		return exit.With(stageManage, err)
	}
	if err := report.print(v.env.Stdout, v.config.Output); err != nil {
		return exit.With(stageManage, err)
	}
	if report.State != string(service.Running) {
		return exit.With(stageNotRunning, fmt.Errorf("the service %s is %s", report.Service, report.State))
	}
	return nil
}

func (v *verbRun) report(ctx context.Context) (*serviceReport, error) {
	r := &serviceReport{Service: v.config.ServiceName, State: notInstalled}
	registration, status, err := v.manager.Lookup(r.Service)
	if errors.Is(err, service.ErrNotInstalled) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	r.State, r.PID, r.ExitCode, r.ServiceExitCode = string(status.State), status.PID, status.ExitCode, status.ServiceExitCode
	r.StartType, r.Account, r.Program, r.Args = registration.StartType, registration.Account, registration.Program, registration.Args
	r.ProgramVersion = fileVersion(registration.Program)
	if status.State == service.Running {
		r.ask(ctx)
	}
	return r, nil
}

// fileVersion is the version that the go command recorded in a program, empty when
// it cannot be read.
func fileVersion(path string) string {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return ""
	}
	return info.Main.Version
}

// ask asks the running service what it is and serves. A service of another make,
// or one without the group that tells this, is known by its pipes.
func (r *serviceReport) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	c, err := client.New(client.Options{})
	if err != nil {
		r.APIsError = err.Error()
		return
	}
	defer func() { _ = c.Close() }()
	info, err := c.GetServerInfo(ctx)
	if err != nil {
		r.lookForPipes(ctx)
		return
	}
	r.RunningVersion = info.Version
	for _, api := range info.APIs {
		r.APIs = append(r.APIs, api.String())
	}
}

// lookForPipes opens each pipe once.
func (r *serviceReport) lookForPipes(ctx context.Context) {
	var last error
	for _, api := range wire.APIs() {
		conn, err := pipe.Place{}.Dial(ctx, api.Group, api.Version)
		if err != nil {
			last = err
			continue
		}
		_ = conn.Close()
		r.APIs = append(r.APIs, api.String())
	}
	if len(r.APIs) == 0 && last != nil {
		r.APIsError = last.Error()
	}
}

// print writes the report as a table or as JSON.
func (r *serviceReport) print(w io.Writer, output string) error {
	if output == outputJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(table, "%s\t%s\n", name, text)
		}
	}
	row("SERVICE", r.Service)
	row("STATE", r.State)
	if r.PID != 0 {
		row("PID", fmt.Sprint(r.PID))
	}
	row("START", r.StartType)
	row("ACCOUNT", r.Account)
	row("PROGRAM", r.Program)
	row("FLAGS", strings.Join(r.Args, " "))
	row("PROGRAM VERSION", r.ProgramVersion)
	row("RUNNING VERSION", r.RunningVersion)
	if r.State != notInstalled {
		row("EXIT CODE", r.ending())
	}
	row("APIS", strings.Join(r.APIs, ","))
	row("APIS ERROR", r.APIsError)
	return table.Flush()
}

// ending says how the service ended last.
func (r *serviceReport) ending() string {
	if r.ExitCode == service.ServiceSpecificError {
		return fmt.Sprintf("%d (%s)", r.ServiceExitCode, stage(r.ServiceExitCode))
	}
	return fmt.Sprint(r.ExitCode)
}
