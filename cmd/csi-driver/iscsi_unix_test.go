//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/bed"
)

// A unit of the pool from the claim to the release, with CHAP, over two portals. (Cases
// C049, C050 and C052: the secrets are those of the volume, and no session stays.)
func TestC050_LifeOfAUnitOfAPool(t *testing.T) {
	t.Parallel()
	const iqn, user, secret = "iqn.2026-01.example:pool", "node.session.auth.username", "node.session.auth.password"
	n := bed.StartNode(t)
	folder := t.TempDir()
	unit := func(name string) sim.DiskSpec {
		return sim.DiskSpec{Image: filepath.Join(folder, name), SizeBytes: 256 << 20}
	}
	err := n.SetISCSITarget(t.Context(), sim.ISCSITarget{
		IQN: iqn, Portals: []string{"192.0.2.1:3260", "[fd00::1]:3261"}, LUNs: []sim.DiskSpec{unit("0"), unit("1")},
		ChapUser: "u", ChapSecret: "MARKER-secret",
	})
	if err != nil {
		t.Fatal(err)
	}
	pool := "units:\n"
	for lun := range 2 {
		pool += fmt.Sprintf("- {iqn: '%s', lun: %d, portals: [192.0.2.1, '[fd00::1]:3261'], sizeBytes: %d}\n", iqn, lun, 256<<20)
	}
	if err := os.WriteFile(filepath.Join(folder, "pool.yaml"), []byte(pool), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startDriver(t, "-mode=all", "-driver=iscsi", "-node-id="+nodeNamed, "-socket-dir="+n.Place.Dir,
		"-iscsi-pool-file="+filepath.Join(folder, "pool.yaml"), "-iscsi-state-dir="+filepath.Join(folder, "state"))

	create := func(name string) *csi.Volume {
		return ok(d, d.controller.CreateVolume, &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{writer()}}).GetVolume()
	}
	volume := create("a")
	id := volume.GetVolumeId()
	if id != iqn+"/0@192.0.2.1,[fd00::1]:3261" || volume.GetCapacityBytes() != 256<<20 {
		t.Errorf("got %v", volume)
	}
	stage := &csi.NodeStageVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, VolumeCapability: writer(), VolumeContext: volume.GetVolumeContext(),
		Secrets: map[string]string{user: "u", secret: "MARKER-wrong!"},
	}
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	defer cancel()
	if _, err := d.node.NodeStageVolume(ctx, stage); status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), "MARKER") {
		t.Errorf("a wrong secret: %v", err)
	}
	stage.Secrets[secret] = "MARKER-secret"
	ok(d, d.node.NodeStageVolume, stage)
	ok(d, d.node.NodePublishVolume, &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: writer()})
	if err := n.WriteFile(ctx, target+`\file`, []byte("data")); err != nil {
		t.Fatal(err)
	}
	ok(d, d.node.NodeUnpublishVolume, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target})
	ok(d, d.node.NodeUnstageVolume, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging})
	targets, err := n.Connect(nil).ListTargets(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range targets {
		if one.Connected {
			t.Errorf("a session is left: %+v", one)
		}
	}
	ok(d, d.controller.DeleteVolume, &csi.DeleteVolumeRequest{VolumeId: id})
	if next := create("b"); next.GetVolumeId() != iqn+"/1@192.0.2.1,[fd00::1]:3261" {
		t.Errorf("the next user got %v", next)
	}
	if strings.Contains(d.process.Log(), "MARKER") {
		t.Error("a secret is in the log")
	}
}
