package sanity

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/bed"
	"github.com/csi-windows/csi-windows/test/samba"
)

// nodeID is the node's name to the drivers.
const nodeID = "sanity-node"

// programs are the programs under test.
type programs struct{ proxy, driver string }

// startNode starts csi-proxy with all its APIs, or with the official ones alone.
func (p programs) startNode(t *testing.T, apis string) (n *bed.Node, name string) {
	t.Helper()
	if apis == "" {
		return bed.StartNodeOf(t, p.proxy), "over the group node"
	}
	return bed.StartNodeOf(t, p.proxy, "-api="+apis), "over the official primitives"
}

// simcloud is the suite against the disks of the simulated cloud.
func (p programs) simcloud(t *testing.T, apis string) *run {
	t.Helper()
	n, how := p.startNode(t, apis)
	address := n.StartDriverOf(p.driver, "-driver=simcloud", "-node-id="+nodeID, "-cloud-dir="+t.TempDir(), "-cloud-node="+nodeID+"="+n.ControlAddress+",max=8",
		"-cloud-control="+n.ControlAddress, "-cloud-max-volumes=8")
	r := newRun("simcloud "+how, n, address)
	r.config.TestNodeVolumeAttachLimit = true
	r.config.TestVolumeMutableParameters = map[string]string{"tier": "premium"}
	return r
}

// smb is the suite against folders of a real Samba server. The simulated node
// finds the same files behind the server's name.
func (p programs) smb(t *testing.T, apis string) *run {
	t.Helper()
	const server, share = "files", "volumes"
	real := samba.Start(t, samba.Options{Shares: []samba.Share{{Name: share}}})
	n, how := p.startNode(t, apis)
	if err := n.SetSMBServer(t.Context(), sim.SMBServer{
		Name: server, Users: map[string]string{real.User: real.Password}, Shares: []sim.SMBShare{{Name: share, Folder: real.Folder(share)}},
	}); err != nil {
		t.Fatal(err)
	}
	credentials := t.TempDir()
	for name, value := range map[string]string{"username": real.User, "password": real.Password} {
		if err := os.WriteFile(filepath.Join(credentials, name), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source := "//" + server + "/" + share
	address := n.StartDriverOf(p.driver, "-driver=smb", "-node-id="+nodeID, "-smb-source="+source+",credentials="+credentials, "-smb-dial="+server+"="+real.Address())
	r := newRun("smb "+how, n, address)
	r.config.TestVolumeParameters = map[string]string{"source": source}
	r.config.TestVolumeMutableParameters = map[string]string{"onDelete": "archive"}
	r.config.SecretsFile = secretsFile(t, real.User, real.Password)
	return r
}

// secretsFile writes the secrets of every call that takes some.
func secretsFile(t *testing.T, user, password string) string {
	t.Helper()
	text := ""
	for _, call := range []string{
		"CreateVolume", "DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume", "ControllerValidateVolumeCapabilities",
		"NodeStageVolume", "NodePublishVolume", "ControllerExpandVolume", "ControllerModifyVolume", "CreateSnapshot", "DeleteSnapshot", "GetSnapshot", "ListSnapshots",
	} {
		text += fmt.Sprintf("%sSecret:\n  username: %q\n  password: %q\n", call, user, password)
	}
	path := filepath.Join(t.TempDir(), "secrets.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
