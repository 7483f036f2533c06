package cluster

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// groupsFolder is where control groups are.
const groupsFolder = "/sys/fs/cgroup"

// removeGroups removes the control groups of containers that ended with their name
// space, which the runtime had no time for. They lie in the test's own groups.
func removeGroups(containers []string) error {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	own := map[string]bool{} // the test's group, in any hierarchy
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if parts := strings.SplitN(lines.Text(), ":", 3); len(parts) == 3 {
			own[parts[2]] = true
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
				if err := os.Remove(filepath.Join(folder, group, container)); !errors.Is(err, fs.ErrNotExist) {
					errs = append(errs, err)
				}
			}
		}
	}
	return errors.Join(errs...)
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
