package kittest_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/csikit/kittest"
)

// What is left over after the suite is a defect as well. Ginkgo runs its suite once in
// a process, so that -count of more than 1 fails here.
func TestSanity(t *testing.T) {
	const targetFolder, stagingPath = `C:\var\lib\kubelet\pods\sanity\volumes`, `C:\var\lib\kubelet\plugins\sanity\globalmount`
	backend, node := kittest.NewBackend("node-1"), kittest.NewNode()
	endpoint, _ := kittest.Serve(t, csikit.Config{Backend: backend, NodeBackend: backend, Node: node, NodeID: "node-1"})

	same := func(path string) (string, error) { return path, nil }
	nothing := func(string) error { return nil }
	config := sanity.NewTestConfig()
	config.Address = endpoint
	config.TargetPath, config.StagingPath = targetFolder, stagingPath
	config.CreateTargetDir, config.CreateStagingDir = same, same
	config.RemoveTargetPath, config.RemoveStagingPath = nothing, nothing
	config.CheckPath = func(path string) (sanity.PathKind, error) {
		if node.Published(path) == "" {
			return sanity.PathIsNotFound, nil
		}
		return sanity.PathIsDir, nil
	}
	config.TestNodeVolumeAttachLimit = true
	config.TestVolumeMutableParameters = map[string]string{kittest.MutableParameter: "3000"}
	sanity.Test(t, config)

	if left := backend.Volumes() + node.InUse(); left != 0 {
		t.Errorf("%d volumes and paths in use are left over", left)
	}
}
