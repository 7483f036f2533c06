package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
)

// What the demo's file server and iSCSI target are called.
const (
	sharePath  = `\\files.demo\claims`
	shareStage = kubeletPath + `\plugins\kubernetes.io\csi\smb.demo\3a77`
	shareMount = shareStage + `\globalmount`
	shareUser  = `DEMO\node`
	sharePass  = "correct horse"

	targetIQN    = "iqn.2026-01.demo:storage.lun1"
	chapUser     = "node1"
	chapSecret   = "twelve-chars!"
	iscsiAddress = "192.0.2.10"
)

// network is a node plugin's work with a share and an iSCSI target.
type network struct {
	*report
	client host.Host
	node   sim.Controller
	folder string // where servers keep their data on the machine of the demo
}

// run uses a share and a target.
func (n *network) run(ctx context.Context) {
	n.head("A share and an iSCSI target")
	_ = n.share(ctx)
	_ = n.target(ctx)
}

// share maps a share, reads through it and removes it again.
func (n *network) share(ctx context.Context) bool {
	folder := filepath.Join(n.folder, "claims")
	return n.do(ctx, step{"A file server appears", "", "(simulated network)"}, func(ctx context.Context) (string, error) {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(folder, "hello.txt"), letter, 0o644); err != nil {
			return "", err
		}
		return sharePath, n.node.SetSMBServer(ctx, sim.SMBServer{Name: "files.demo", Users: map[string]string{shareUser: sharePass},
			Shares: []sim.SMBShare{{Name: "claims", Folder: folder}}})
	}) && n.do(ctx, step{"Make the staging folder", "filesystem", "Mkdir"}, func(ctx context.Context) (string, error) {
		return "", n.client.Mkdir(ctx, shareStage)
	}) && n.do(ctx, step{"Map its share and link it", "smb", "NewSmbGlobalMapping"}, func(ctx context.Context) (string, error) {
		return "mapped, encrypted", n.client.NewSmbGlobalMapping(ctx, sharePath, shareMount, shareUser, sharePass)
	}) && n.do(ctx, step{"A pod reads from it", "", "(program on the node)"}, func(ctx context.Context) (string, error) {
		data, err := n.node.ReadFile(ctx, shareMount+`\hello.txt`)
		return fmt.Sprintf("%d bytes", len(data)), expect(err, bytes.Equal(data, letter), "the file holds %q", data)
	}) && n.do(ctx, step{"Unmount the share", "filesystem", "Rmdir"}, func(ctx context.Context) (string, error) {
		return "the link only", n.client.Rmdir(ctx, shareMount, false)
	}) && n.do(ctx, step{"Remove the mapping", "smb", "RemoveSmbGlobalMapping"}, func(ctx context.Context) (string, error) {
		return "", n.client.RemoveSmbGlobalMapping(ctx, sharePath)
	})
}

// target logs in to an iSCSI target with CHAP, finds its disk and logs out.
func (n *network) target(ctx context.Context) bool {
	portal := host.TargetPortal{Address: iscsiAddress}
	return n.do(ctx, step{"An iSCSI target appears", "", "(simulated network)"}, func(ctx context.Context) (string, error) {
		return targetIQN, n.node.SetISCSITarget(ctx, sim.ISCSITarget{IQN: targetIQN, Portals: []string{iscsiAddress + ":3260"},
			LUNs:     []sim.DiskSpec{{Image: filepath.Join(n.folder, "lun1.img"), SizeBytes: 1 << 30, Bus: "iSCSI", Serial: "LUN-0001"}},
			ChapUser: chapUser, ChapSecret: chapSecret})
	}) && n.do(ctx, step{"Start the initiator", "system", "StartService"}, func(ctx context.Context) (string, error) {
		return "running", n.client.StartService(ctx, "MSiSCSI")
	}) && n.do(ctx, step{"Add its portal", "iscsi", "AddTargetPortal"}, func(ctx context.Context) (string, error) {
		return iscsiAddress, n.client.AddTargetPortal(ctx, portal)
	}) && n.do(ctx, step{"Discover its targets", "iscsi", "DiscoverTargetPortal"}, func(ctx context.Context) (string, error) {
		iqns, err := n.client.DiscoverTargetPortal(ctx, portal)
		return fmt.Sprint(iqns), expect(err, len(iqns) == 1 && iqns[0] == targetIQN, "found %q", iqns)
	}) && n.do(ctx, step{"Log in with CHAP", "iscsi", "ConnectTarget"}, func(ctx context.Context) (string, error) {
		return "connected", n.client.ConnectTarget(ctx, portal, targetIQN,
			host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: chapUser, ChapSecret: chapSecret})
	}) && n.do(ctx, step{"Find its disk", "iscsi", "GetTargetDisks"}, func(ctx context.Context) (string, error) {
		numbers, err := n.client.GetTargetDisks(ctx, portal, targetIQN)
		return fmt.Sprintf("disk %v", numbers), expect(err, len(numbers) == 1, "disks %v", numbers)
	}) && n.do(ctx, step{"Log out", "iscsi", "DisconnectTarget"}, func(ctx context.Context) (string, error) {
		return "", n.client.DisconnectTarget(ctx, portal, targetIQN)
	}) && n.do(ctx, step{"Forget the portal", "iscsi", "RemoveTargetPortal"}, func(ctx context.Context) (string, error) {
		return "", n.client.RemoveTargetPortal(ctx, portal)
	})
}
