package csikit

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/csi-windows/csi-windows/csikit/internal/rules"
	"github.com/csi-windows/csi-windows/node"
)

// Limits of what a driver says. Source: CSI, Size Limits, and the fields' own.
const (
	idBytesMax      = 128
	nodeIDBytesMax  = 256
	mapBytesMax     = 4 << 10
	segmentBytesMax = 63
)

// wrong is a defect of the backend: it answered what CSI does not allow. What is
// wrong is named, so that its author finds it.
func wrong(format string, args ...any) error {
	return status.Errorf(codes.Internal, "the backend's answer: "+format, args...)
}

func checkID(field, id string) error {
	if id == "" || len(id) > idBytesMax {
		return wrong("%s has %d bytes, CSI wants 1 to %d", field, len(id), idBytesMax)
	}
	return checkPlain(field, id)
}

// checkPlain refuses what would be refused when it comes back in a request: a volume
// with such an id could never be deleted.
func checkPlain(field, text string) error {
	if !rules.IsPlain(text) {
		return wrong("%s %.128q has a control character or is no UTF-8", field, text)
	}
	return nil
}

func checkMap(field string, m map[string]string) error {
	size := 0
	for key, value := range m {
		size += len(key) + len(value)
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return wrong("%s: the key %.128q or its value is no UTF-8", field, key)
		}
	}
	if size > mapBytesMax {
		return wrong("%s has %d bytes, CSI allows %d", field, size, mapBytesMax)
	}
	return nil
}

func checkSize(field string, sizeBytes int64) error {
	if sizeBytes < 0 {
		return wrong("%s is %d, negative", field, sizeBytes)
	}
	return nil
}

// first returns the first error there is.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// volumeAnswer is a volume as CSI wants it.
func (d *Driver) volumeAnswer(v Volume) (*csi.Volume, error) {
	err := first(checkID("the volume id", v.ID), checkSize("the capacity", v.CapacityBytes),
		checkMap("the volume context", v.Context), checkPlaces(v.Topology, d.hasTopology()))
	if err != nil {
		return nil, err
	}
	answer := &csi.Volume{VolumeId: v.ID, CapacityBytes: v.CapacityBytes, VolumeContext: v.Context, AccessibleTopology: placesAnswer(v.Topology)}
	if v.Source == nil {
		return answer, nil
	}
	answer.ContentSource = &csi.VolumeContentSource{}
	switch {
	case v.Source.SnapshotID != "" && v.Source.VolumeID == "":
		answer.ContentSource.Type = &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: v.Source.SnapshotID}}
	case v.Source.VolumeID != "" && v.Source.SnapshotID == "":
		answer.ContentSource.Type = &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: v.Source.VolumeID}}
	default:
		return nil, wrong("the source of the volume is not one of a volume and a snapshot")
	}
	return answer, nil
}

// checkPlaces checks topologies; they may be said only with the capability for them.
func checkPlaces(places []Topology, allowed bool) error {
	if len(places) > 0 && !allowed {
		return wrong("a topology, but the backend is no NodeTopology, or for a snapshot no SnapshotPlacer")
	}
	for _, place := range places {
		if err := checkTopology(place); err != nil {
			return err
		}
	}
	return nil
}

func placesAnswer(places []Topology) []*csi.Topology {
	var answer []*csi.Topology
	for _, place := range places {
		answer = append(answer, &csi.Topology{Segments: place})
	}
	return answer
}

// checkTopology holds keys and values to their form. Source: CSI, message Topology.
func checkTopology(place Topology) error {
	if len(place) == 0 {
		return wrong("a topology without segments")
	}
	seen := map[string]bool{}
	for key, value := range place {
		prefix, name, found := strings.Cut(key, "/")
		if !found {
			prefix, name = "", key
		}
		if !isSegment(name) || found && (!isSegment(prefix) || strings.ContainsAny(prefix, "_ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
			return wrong("topology key %.80q is no name of letters, digits, '-', '_', '.' with a domain before it", key)
		}
		if !isSegment(value) {
			return wrong("topology value %.80q of %s is no word of letters, digits, '-', '_', '.'", value, key)
		}
		if seen[strings.ToLower(key)] {
			return wrong("topology key %s is there twice but for case", key)
		}
		seen[strings.ToLower(key)] = true
	}
	return nil
}

// isSegment reports whether a text is letters and digits, with '-', '_' and '.' between.
func isSegment(text string) bool {
	isAlphanumeric := func(r rune) bool { return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
	isOther := func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("-_.", r) }
	return text != "" && len(text) <= segmentBytesMax && strings.IndexFunc(text, isOther) < 0 &&
		isAlphanumeric(rune(text[0])) && isAlphanumeric(rune(text[len(text)-1]))
}

// snapshotAnswer is a snapshot as CSI wants it. Placed says whether snapshots may have
// places.
func snapshotAnswer(s Snapshot, placed bool) (*csi.Snapshot, error) {
	err := first(checkID("the snapshot id", s.ID), checkID("the source volume id", s.SourceVolumeID),
		checkSize("the size", s.SizeBytes), checkTime("the snapshot", s.CreatedAt), checkPlaces(s.Topology, placed))
	if err == nil && len(s.GroupID) > idBytesMax {
		err = checkID("the group id", s.GroupID)
	}
	if err != nil {
		return nil, err
	}
	return &csi.Snapshot{
		SnapshotId: s.ID, SourceVolumeId: s.SourceVolumeID, SizeBytes: s.SizeBytes,
		CreationTime: timestamppb.New(s.CreatedAt), ReadyToUse: s.Ready, GroupSnapshotId: s.GroupID,
		AccessibleTopology: placesAnswer(s.Topology),
	}, nil
}

func checkTime(what string, at time.Time) error {
	if at.IsZero() {
		return wrong("%s has no time of creation", what)
	}
	return nil
}

// conditionAnswers are the health conditions of a volume, without the secrets of the
// request. The same status and reason is said once.
func conditionAnswers(conditions []node.HealthCondition, known secrets) ([]*csi.VolumeHealth_VolumeHealthEntry, error) {
	type key struct {
		status node.HealthStatus
		reason string
	}
	said := map[key]bool{}
	var answers []*csi.VolumeHealth_VolumeHealthEntry
	for _, c := range conditions {
		number, exists := csi.VolumeHealthErrorType_value[string(c.Status)]
		if !exists || number == 0 || c.Reason == "" || len(c.Reason) > idBytesMax {
			return nil, wrong("health condition %.32q with reason %.32q: CSI wants a known status and a reason", c.Status, c.Reason)
		}
		if said[key{c.Status, c.Reason}] {
			continue
		}
		said[key{c.Status, c.Reason}] = true
		answers = append(answers, &csi.VolumeHealth_VolumeHealthEntry{
			Status: csi.VolumeHealthErrorType(number), Reason: c.Reason, Message: messageAnswer(c.Message, known)})
	}
	return answers, nil
}

// messageAnswer is a text for people as CSI wants it.
func messageAnswer(text string, known secrets) string {
	return cut(strings.ToValidUTF8(known.scrub(text), "?"), idBytesMax)
}

// cut shortens a text to what fits a field, without splitting a character.
func cut(text string, bytesMax int) string {
	if len(text) <= bytesMax {
		return text
	}
	return strings.ToValidUTF8(text[:bytesMax], "")
}
