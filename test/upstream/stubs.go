package upstream

import (
	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	diskv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta1"
	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta2"
	diskv1beta3 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta3"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	filesystemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	filesystemv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta1"
	filesystemv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta2"
	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsiv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha1"
	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	smbv1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	smbv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1alpha1"
	smbv1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta1"
	smbv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1beta2"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	volumev1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1alpha1"
	volumev1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta1"
	volumev1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta2"
	volumev1beta3 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta3"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"google.golang.org/grpc"
)

// Stub returns the client stub that csi-proxy generated for a group and version, on
// an open connection, and nil when there is none.
func Stub(group, version string, conn *grpc.ClientConn) any {
	switch group + "/" + version {
	case "disk/v1alpha1":
		return diskv1alpha1.NewDiskClient(conn)
	case "disk/v1beta1":
		return diskv1beta1.NewDiskClient(conn)
	case "disk/v1beta2":
		return diskv1beta2.NewDiskClient(conn)
	case "disk/v1beta3":
		return diskv1beta3.NewDiskClient(conn)
	case "disk/v1":
		return diskv1.NewDiskClient(conn)
	case "volume/v1alpha1":
		return volumev1alpha1.NewVolumeClient(conn)
	case "volume/v1beta1":
		return volumev1beta1.NewVolumeClient(conn)
	case "volume/v1beta2":
		return volumev1beta2.NewVolumeClient(conn)
	case "volume/v1beta3":
		return volumev1beta3.NewVolumeClient(conn)
	case "volume/v1":
		return volumev1.NewVolumeClient(conn)
	case "volume/v2alpha1":
		return volumev2alpha1.NewVolumeClient(conn)
	case "filesystem/v1alpha1":
		return filesystemv1alpha1.NewFilesystemClient(conn)
	case "filesystem/v1beta1":
		return filesystemv1beta1.NewFilesystemClient(conn)
	case "filesystem/v1beta2":
		return filesystemv1beta2.NewFilesystemClient(conn)
	case "filesystem/v1":
		return filesystemv1.NewFilesystemClient(conn)
	case "filesystem/v2alpha1":
		return filesystemv2alpha1.NewFilesystemClient(conn)
	case "smb/v1alpha1":
		return smbv1alpha1.NewSmbClient(conn)
	case "smb/v1beta1":
		return smbv1beta1.NewSmbClient(conn)
	case "smb/v1beta2":
		return smbv1beta2.NewSmbClient(conn)
	case "smb/v1":
		return smbv1.NewSmbClient(conn)
	case "iscsi/v1alpha1":
		return iscsiv1alpha1.NewIscsiClient(conn)
	case "iscsi/v1alpha2":
		return iscsiv1alpha2.NewIscsiClient(conn)
	case "system/v1alpha1":
		return systemv1alpha1.NewSystemClient(conn)
	default:
		return nil
	}
}
