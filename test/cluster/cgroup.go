package cluster

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// groupsFolder is where control groups are.
const groupsFolder = "/sys/fs/cgroup"

// removeGroups removes the control groups of containers that ended with their name
// space, which the runtime had no time for. They lie in the test's own groups, or
// where groups are unified beside them.
func removeGroups(containers []string) error {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	own := map[string]bool{} // the test's group, in any hierarchy
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if parts := strings.SplitN(lines.Text(), ":", 3); len(parts) == 3 {
			own[parts[2]], own[filepath.Dir(parts[2])] = true, true
		}
	}
	hierarchies, err := filepath.Glob(groupsFolder + "/*/cgroup.procs")
	if err != nil {
		return err
	}
	folders := []string{groupsFolder}
	for _, file := range hierarchies {
		folders = append(folders, filepath.Dir(file))
	}
	var errs []error
	for _, folder := range folders {
		for group := range own {
			for _, container := range containers {
				errs = append(errs, removeGroup(filepath.Join(folder, group, container)))
			}
		}
	}
	return errors.Join(errs...)
}

// removeGroup removes a control group, if there is one. Its processes have ended, but
// the kernel may count them for a moment more.
func removeGroup(folder string) error {
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil // to remove nothing would be an error where the groups are read-only
	}
	for end := time.Now().Add(stopTime); ; time.Sleep(pollTime) {
		err := os.Remove(folder)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(end) {
			return err
		}
	}
}

// containers are the ids of those that the runtime has not removed.
func (k *Kubelet) containers() ([]string, error) {
	entries, err := os.ReadDir(k.path("containerd/io.containerd.runtime.v2.task/k8s.io"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, entry := range entries {
		ids = append(ids, entry.Name())
	}
	return ids, err
}
