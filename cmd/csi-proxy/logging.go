package main

import (
	"flag"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// addLogFlags puts klog's flags (-v, -log_file, -logtostderr …) into the set.
func addLogFlags(fs *flag.FlagSet) { klog.InitFlags(fs) }

// newLogger returns the process's logger. Records go through klog, so that its
// flags and its line format hold; -v=4 and above shows debug records.
func newLogger() *slog.Logger {
	return slog.New(logr.ToSlogHandler(klog.NewKlogr()))
}

// flushLogs writes out what klog still holds.
func flushLogs() { klog.Flush() }

// protectLogs keeps the log away from ordinary users of the node before the
// first line is written (CVE-2024-5321). It does nothing when klog does not
// write to files.
func protectLogs(fs *flag.FlagSet) error {
	if value(fs, "logtostderr") == "true" {
		return nil
	}
	if file := value(fs, "log_file"); file != "" {
		if err := protectFile(file); err != nil {
			return fmt.Errorf("-log_file %s: %w", file, err)
		}
		return nil
	}
	if folder := value(fs, "log_dir"); folder != "" {
		if err := protectFolder(folder); err != nil {
			return fmt.Errorf("-log_dir %s: %w", folder, err)
		}
	}
	return nil
}

// value returns the text of a flag, empty when the set does not have it.
func value(fs *flag.FlagSet, name string) string {
	if f := fs.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}
