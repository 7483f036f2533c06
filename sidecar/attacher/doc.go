// Package attacher attaches volumes to nodes and detaches them again, as
// VolumeAttachment objects ask for: it turns each into a call of
// ControllerPublishVolume, and its deletion into one of
// ControllerUnpublishVolume.
//
// A volume is published only while its VolumeAttachment holds the attacher's
// finalizer and names the node's id, so that whoever comes next knows that the
// volume may be attached, and where, however the call ended. The finalizer goes
// when the driver has said that the volume is detached.
//
// Everything an attachment waits for is watched: its volume, the driver's
// registration on the node. Only failed calls come back by time.
package attacher
