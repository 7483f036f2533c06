package csikit

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// DefaultIdentity answers all of the Identity service, for authors who write
// servers by hand. It is embedded, or used as it is.
type DefaultIdentity struct {
	csi.UnimplementedIdentityServer
	Name         string // see Config.Name
	Version      string
	Capabilities []*csi.PluginCapability
}

// GetPluginInfo says name and version.
func (s DefaultIdentity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: s.Name, VendorVersion: s.Version}, nil
}

// GetPluginCapabilities says Capabilities.
func (s DefaultIdentity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: s.Capabilities}, nil
}

// Probe says nothing, which is "ready".
func (s DefaultIdentity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// DefaultController says Capabilities and answers every other call of the Controller
// service with Unimplemented, until the type that embeds it has the method.
type DefaultController struct {
	csi.UnimplementedControllerServer
	Capabilities []*csi.ControllerServiceCapability
}

// ControllerGetCapabilities says Capabilities.
func (s DefaultController) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: s.Capabilities}, nil
}

// DefaultNode says NodeID and Capabilities and answers every other call of the Node
// service with Unimplemented, until the type that embeds it has the method.
type DefaultNode struct {
	csi.UnimplementedNodeServer
	NodeID       string // see Config.NodeID
	Capabilities []*csi.NodeServiceCapability
}

// NodeGetInfo says NodeID.
func (s DefaultNode) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: s.NodeID}, nil
}

// NodeGetCapabilities says Capabilities.
func (s DefaultNode) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: s.Capabilities}, nil
}
