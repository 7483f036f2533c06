package main

import (
	"cmp"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/csi-windows/csi-windows/cmd/internal/private"
)

// addLogFlags puts klog's flags (-v, -log_file, -logtostderr …) into the set.
func addLogFlags(fs *flag.FlagSet) { klog.InitFlags(fs) }

// newLogger returns the process's logger. Records go through klog, so that its
// flags and its line format hold; -v=4 and above shows debug records.
func newLogger() *slog.Logger {
	return slog.New(logr.ToSlogHandler(klog.NewKlogr()))
}

// openLogs gives klog the files that its flags ask for, before the first line is
// written. klog decides what goes where; the files are ours, since its own are
// open to ordinary users of the node (CVE-2024-5321) and end the process when a
// disk is full. It does nothing when klog does not write to files.
//
// maxCount and failed are those of each logFile.
func openLogs(fs *flag.FlagSet, maxCount int, failed func(error)) (closeLogs func(), err error) {
	if value(fs, "logtostderr") == "true" {
		return func() {}, nil
	}
	maxMegabytes, _ := strconv.ParseInt(value(fs, "log_file_max_size"), 10, 64) // was checked with the flags
	shape := logShape{maxBytes: maxMegabytes << 20, maxCount: maxCount}
	if path := value(fs, "log_file"); path != "" {
		file := shape.at(path, failed)
		if err := file.open(); err != nil {
			return nil, fmt.Errorf("-log_file %s: %w", path, err)
		}
		klog.SetOutputBySeverity("INFO", file) // klog writes every record of one file as INFO
		return func() { _ = file.Close() }, nil
	}
	return openLogFolder(value(fs, "log_dir"), shape, failed)
}

// openLogFolder gives klog one file for each severity in a folder, the temporary
// one when empty. A file appears with its first record, that of INFO at once.
func openLogFolder(folder string, shape logShape, failed func(error)) (closeLogs func(), err error) {
	if folder != "" {
		if err := private.Mkdir(folder); err != nil {
			return nil, fmt.Errorf("-log_dir %s: %w", folder, err)
		}
	}
	machine, _ := os.Hostname() // only a part of a name
	started := time.Now().Format("20060102-150405")
	var files []*logFile
	for _, severity := range []string{"INFO", "WARNING", "ERROR", "FATAL"} {
		name := fmt.Sprintf("csi-proxy.%s.log.%s.%s.%d", machine, severity, started, os.Getpid())
		file := shape.at(filepath.Join(cmp.Or(folder, os.TempDir()), name), failed)
		files = append(files, file)
		klog.SetOutputBySeverity(severity, file)
	}
	if err := files[0].open(); err != nil {
		return nil, fmt.Errorf("-log_dir: %w", err)
	}
	return func() {
		for _, file := range files {
			_ = file.Close()
		}
	}, nil
}

// value returns the text of a flag, empty when the set does not have it.
func value(fs *flag.FlagSet, name string) string {
	if f := fs.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}
