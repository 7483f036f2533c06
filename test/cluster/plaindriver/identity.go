package main

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type identity struct {
	csi.UnimplementedIdentityServer
	*driver
}

func (i *identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.name, VendorVersion: "test"}, nil
}

func (i *identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (i *identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	answer := &csi.GetPluginCapabilitiesResponse{}
	service := func(has bool, kind csi.PluginCapability_Service_Type) {
		if has {
			answer.Capabilities = append(answer.Capabilities, &csi.PluginCapability{
				Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: kind}}})
		}
	}
	service(i.has("controller") || i.has("service"), csi.PluginCapability_Service_CONTROLLER_SERVICE)
	service(i.has("topology"), csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS)
	service(i.has("group"), csi.PluginCapability_Service_GROUP_CONTROLLER_SERVICE)
	if i.has("expand") || i.has("node-expand") {
		answer.Capabilities = append(answer.Capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_VolumeExpansion_{
			VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE}}})
	}
	return answer, nil
}
