package attacher

import "strings"

// Names that others know as well: upstream's attacher, the attach-detach
// controller, the provisioner.
const (
	finalizerPrefix = "external-attacher/"
	// nodeIDAnnotation holds the id under which the driver knows the node that
	// the volume was published to last.
	nodeIDAnnotation = "csi.alpha.kubernetes.io/node-id"
	// migratedToAnnotation names the driver that serves a volume of an in-tree
	// plugin.
	migratedToAnnotation = "pv.kubernetes.io/migrated-to"
	// provisionerFinalizer is on volumes that the provisioner has yet to delete.
	provisionerFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"
)

// FinalizerName is the finalizer the attacher of a driver puts on
// VolumeAttachments that may be attached and on volumes that may be used.
func FinalizerName(driver string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		default:
			return '-'
		}
	}, driver)
	if strings.HasSuffix(name, "-") {
		// A qualified name ends with a letter or a digit.
		name += "X"
	}
	return finalizerPrefix + name
}
