package upstream

import (
	"fmt"
	"io"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1alpha1"
	diskv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta1"
	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta2"
	diskv1beta3 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta3"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	filesystemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1alpha1"
	filesystemv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1beta1"
	filesystemv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1beta2"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v2alpha1"
	iscsiv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/iscsi/v1alpha1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/groups/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1"
	smbv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1alpha1"
	smbv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1beta1"
	smbv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1beta2"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/system/v1alpha1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
	volumev1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1alpha1"
	volumev1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta1"
	volumev1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta2"
	volumev1beta3 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta3"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v2alpha1"
)

// Client opens a group and version with csi-proxy's whole client, on its well-known
// pipe. The client is a stub, as for Case.Do, and must be closed.
func Client(group, version string) (io.Closer, error) {
	switch group + "/" + version {
	case "disk/v1alpha1":
		return open(diskv1alpha1.NewClient())
	case "disk/v1beta1":
		return open(diskv1beta1.NewClient())
	case "disk/v1beta2":
		return open(diskv1beta2.NewClient())
	case "disk/v1beta3":
		return open(diskv1beta3.NewClient())
	case "disk/v1":
		return open(diskv1.NewClient())
	case "volume/v1alpha1":
		return open(volumev1alpha1.NewClient())
	case "volume/v1beta1":
		return open(volumev1beta1.NewClient())
	case "volume/v1beta2":
		return open(volumev1beta2.NewClient())
	case "volume/v1beta3":
		return open(volumev1beta3.NewClient())
	case "volume/v1":
		return open(volumev1.NewClient())
	case "volume/v2alpha1":
		return open(volumev2alpha1.NewClient())
	case "filesystem/v1alpha1":
		return open(filesystemv1alpha1.NewClient())
	case "filesystem/v1beta1":
		return open(filesystemv1beta1.NewClient())
	case "filesystem/v1beta2":
		return open(filesystemv1beta2.NewClient())
	case "filesystem/v1":
		return open(filesystemv1.NewClient())
	case "filesystem/v2alpha1":
		return open(filesystemv2alpha1.NewClient())
	case "smb/v1alpha1":
		return open(smbv1alpha1.NewClient())
	case "smb/v1beta1":
		return open(smbv1beta1.NewClient())
	case "smb/v1beta2":
		return open(smbv1beta2.NewClient())
	case "smb/v1":
		return open(smbv1.NewClient())
	case "iscsi/v1alpha1":
		return open(iscsiv1alpha1.NewClient())
	case "iscsi/v1alpha2":
		return open(iscsiv1alpha2.NewClient())
	case "system/v1alpha1":
		return open(systemv1alpha1.NewClient())
	default:
		return nil, fmt.Errorf("csi-proxy has no %s/%s", group, version)
	}
}

// open keeps a nil client from becoming a non-nil closer.
func open[C io.Closer](client C, err error) (io.Closer, error) {
	if err != nil {
		return nil, err
	}
	return client, nil
}
