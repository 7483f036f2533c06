package node

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
)

// validStage is a request with which nothing is wrong, changed.
func validStage(change func(*StageRequest)) StageRequest {
	r := StageRequest{
		VolumeID: "vol", StagingPath: `C:\k\s`, Source: Source{Disk: &DiskSource{SerialNumber: "S"}},
		Format: host.FormatOptions{FileSystem: "refs", ClusterBytes: 65536, Label: strings.Repeat("ü", 32)},
	}
	change(&r)
	return r
}

// logical and share set a source of a kind in which nothing is wrong, changed.
func logical(change func(*ISCSISource)) func(*StageRequest) {
	return func(r *StageRequest) {
		s := &ISCSISource{
			Portals: []host.TargetPortal{{Address: "10.0.0.1"}, {Address: "fd00::1", Port: 65535}}, IQN: "iqn.2026-01.io.example:a",
			CHAP: host.ConnectOptions{AuthType: host.AuthMutualCHAP, ChapUsername: "u", ChapSecret: testSecret}, MutualSecret: testSecret,
		}
		change(s)
		r.Source = Source{ISCSI: s}
	}
}

func share(change func(*SMBSource)) func(*StageRequest) {
	return func(r *StageRequest) {
		s := &SMBSource{Path: `\\srv\share`, Username: "u", Domain: "d", Password: testSecret}
		change(s)
		r.Source = Source{SMB: s}
	}
}

const testSecret = "s3cret-12345"

// stages are requests and the field that is wrong; "" when none is.
func stages() map[string]struct {
	change func(*StageRequest)
	field  string
} {
	type one = struct {
		change func(*StageRequest)
		field  string
	}
	disk := func(d DiskSource) func(*StageRequest) {
		return func(r *StageRequest) { r.Source = Source{Disk: &d} }
	}
	return map[string]one{
		"disk":                   {func(*StageRequest) {}, ""},
		"logical unit":           {logical(func(*ISCSISource) {}), ""},
		"share":                  {share(func(*SMBSource) {}), ""},
		"share, no credentials":  {share(func(s *SMBSource) { s.Username, s.Domain, s.Password = "", "", "" }), ""},
		"no volume":              {func(r *StageRequest) { r.VolumeID = "" }, "volumeID"},
		"long volume":            {func(r *StageRequest) { r.VolumeID = strings.Repeat("x", 1025) }, "volumeID"},
		"volume with a newline":  {func(r *StageRequest) { r.VolumeID = "a\nb" }, "volumeID"},
		"volume in no UTF-8":     {func(r *StageRequest) { r.VolumeID = "\xff" }, "volumeID"},
		"no path":                {func(r *StageRequest) { r.StagingPath = "" }, "stagingPath"},
		"path with NUL":          {func(r *StageRequest) { r.StagingPath = "C:\\k\x00" }, "stagingPath"},
		"long path":              {func(r *StageRequest) { r.StagingPath = strings.Repeat("x", 96_001) }, "stagingPath"},
		"no source":              {func(r *StageRequest) { r.Source = Source{} }, "source"},
		"two sources":            {func(r *StageRequest) { r.Source.SMB = &SMBSource{Path: `\\s\s`} }, "source"},
		"empty disk":             {disk(DiskSource{}), "source.disk"},
		"long page 83":           {disk(DiskSource{Page83: strings.Repeat("x", 1025)}), "source.disk.page83"},
		"serial number":          {disk(DiskSource{SerialNumber: "\x7f"}), "source.disk.serialNumber"},
		"blank page 83":          {disk(DiskSource{Page83: "  "}), "source.disk.page83"},
		"blank serial number":    {disk(DiskSource{Page83: "x", SerialNumber: " "}), "source.disk.serialNumber"},
		"blank coordinate":       {disk(DiskSource{Location: host.DiskLocation{LUNID: " "}}), "source.disk.location.lunID"},
		"location":               {disk(DiskSource{Location: host.DiskLocation{Adapter: "1", Bus: "", Target: "3", LUNID: "4"}}), ""},
		"LUN is no number":       {disk(DiskSource{Location: host.DiskLocation{LUNID: "-1"}}), "source.disk.location.lunID"},
		"bus is too large":       {disk(DiskSource{Location: host.DiskLocation{Bus: "12345678901"}}), "source.disk.location.bus"},
		"no portal":              {logical(func(s *ISCSISource) { s.Portals = nil }), "source.iscsi.portals"},
		"too many portals":       {logical(func(s *ISCSISource) { s.Portals = make([]host.TargetPortal, 33) }), "source.iscsi.portals"},
		"portal without address": {logical(func(s *ISCSISource) { s.Portals[1].Address = "" }), "source.iscsi.portals[1].address"},
		"port":                   {logical(func(s *ISCSISource) { s.Portals[1].Port = 65536 }), "source.iscsi.portals[1].port"},
		"no target":              {logical(func(s *ISCSISource) { s.IQN = "" }), "source.iscsi.iqn"},
		"long target":            {logical(func(s *ISCSISource) { s.IQN = strings.Repeat("x", 224) }), "source.iscsi.iqn"},
		"unknown CHAP":           {logical(func(s *ISCSISource) { s.CHAP.AuthType = 3 }), "source.iscsi.chap.authType"},
		"secret without CHAP":    {logical(func(s *ISCSISource) { s.CHAP.AuthType, s.MutualSecret = 0, "" }), "source.iscsi.chap.authType"},
		"mutual, one-way CHAP":   {logical(func(s *ISCSISource) { s.CHAP.AuthType = host.AuthOneWayCHAP }), "source.iscsi.chap.authType"},
		"no mutual secret":       {logical(func(s *ISCSISource) { s.MutualSecret = "" }), ""},
		"CHAP user":              {logical(func(s *ISCSISource) { s.CHAP.ChapUsername = "a\tb" }), "source.iscsi.chap.username"},
		"short secret":           {logical(func(s *ISCSISource) { s.CHAP.ChapSecret = testSecret[1:] }), "source.iscsi.chap.secret"},
		"long mutual secret":     {logical(func(s *ISCSISource) { s.MutualSecret = testSecret + "12345" }), "source.iscsi.mutualSecret"},
		"NUL in the secret":      {logical(func(s *ISCSISource) { s.CHAP.ChapSecret = testSecret + "\x00" }), "source.iscsi.chap.secret"},
		"no share":               {share(func(s *SMBSource) { s.Path = "" }), "source.smb.path"},
		"user":                   {share(func(s *SMBSource) { s.Username = "a\x00" }), "source.smb.username"},
		"domain":                 {share(func(s *SMBSource) { s.Domain = strings.Repeat("d", 1025) }), "source.smb.domain"},
		"long password":          {share(func(s *SMBSource) { s.Password = strings.Repeat(testSecret, 200) }), "source.smb.password"},
		"NUL in the password":    {share(func(s *SMBSource) { s.Password = testSecret + "\x00" }), "source.smb.password"},
		"file system":            {func(r *StageRequest) { r.Format.FileSystem = "ext4" }, "format.fileSystem"},
		"cluster":                {func(r *StageRequest) { r.Format.ClusterBytes = 4097 }, "format.clusterBytes"},
		"long label":             {func(r *StageRequest) { r.Format.Label += "ü" }, "format.label"},
	}
}

// wantField fails the test unless the error is one of a field: invalid, with
// operation, short, and without a secret.
func wantField(err error, op, field string) error {
	if field == "" {
		return err
	}
	var failure *host.Error
	if !errors.As(err, &failure) || failure.Kind != host.KindInvalid || failure.Op != op || !strings.HasPrefix(fmt.Sprint(failure.Cause), field+": ") {
		return fmt.Errorf("error %w, want one of field %s", err, field)
	}
	if text := err.Error(); len(text) > 1000 || strings.Contains(text, testSecret) {
		return fmt.Errorf("error too long or with the secret: %.2000s", text)
	}
	return nil
}

func TestStageRequestValidate(t *testing.T) {
	t.Parallel()
	for name, test := range stages() {
		if problem := wantField(validStage(test.change).Validate(), "Stage", test.field); problem != nil {
			t.Errorf("%s: %v", name, problem)
		}
	}
}

// Letting go needs no credentials, so wrong ones do not stand in its way; the rest of
// a source is as with Stage, and none at all is fine.
func TestUnstageRequestValidate(t *testing.T) {
	t.Parallel()
	for name, test := range stages() {
		stage := validStage(test.change)
		field := test.field
		for _, ignored := range []string{"format.", "source.iscsi.chap.", "source.iscsi.mutualSecret", "source.smb.username", "source.smb.domain", "source.smb.password"} {
			if strings.HasPrefix(field, ignored) {
				field = ""
			}
		}
		if stage.Source == (Source{}) {
			field = ""
		}
		err := UnstageRequest{VolumeID: stage.VolumeID, StagingPath: stage.StagingPath, Source: stage.Source}.Validate()
		if problem := wantField(err, "Unstage", field); problem != nil {
			t.Errorf("%s: %v", name, problem)
		}
	}
}

func TestOtherRequestsValidate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err       error
		op, field string
	}{
		"publish":             {PublishRequest{VolumeID: "v", StagingPath: "s", TargetPath: "t"}.Validate(), "Publish", ""},
		"publish, volume":     {PublishRequest{StagingPath: "s", TargetPath: "t"}.Validate(), "Publish", "volumeID"},
		"publish, staging":    {PublishRequest{VolumeID: "v", TargetPath: "t"}.Validate(), "Publish", "stagingPath"},
		"publish, target":     {PublishRequest{VolumeID: "v", StagingPath: "s"}.Validate(), "Publish", "targetPath"},
		"unpublish":           {UnpublishRequest{VolumeID: "v", TargetPath: "t"}.Validate(), "Unpublish", ""},
		"unpublish, target":   {UnpublishRequest{VolumeID: "v"}.Validate(), "Unpublish", "targetPath"},
		"expand":              {ExpandRequest{VolumeID: "v", Path: "p", RequiredBytes: 5, LimitBytes: 5}.Validate(), "Expand", ""},
		"expand, no limit":    {ExpandRequest{VolumeID: "v", Path: "p", RequiredBytes: 5}.Validate(), "Expand", ""},
		"expand, path":        {ExpandRequest{VolumeID: "v"}.Validate(), "Expand", "path"},
		"expand, negative":    {ExpandRequest{VolumeID: "v", Path: "p", RequiredBytes: -1}.Validate(), "Expand", "requiredBytes"},
		"expand, negative 2":  {ExpandRequest{VolumeID: "v", Path: "p", LimitBytes: -1}.Validate(), "Expand", "limitBytes"},
		"expand, limit":       {ExpandRequest{VolumeID: "v", Path: "p", RequiredBytes: 6, LimitBytes: 5}.Validate(), "Expand", "limitBytes"},
		"stats":               {StatsRequest{VolumeID: "v", Path: "p"}.Validate(), "Stats", ""},
		"stats, path":         {StatsRequest{VolumeID: "v"}.Validate(), "Stats", "path"},
		"health, staging":     {HealthRequest{VolumeID: "v", StagingPath: "s"}.Validate(), "Health", ""},
		"health, target":      {HealthRequest{VolumeID: "v", TargetPath: "t"}.Validate(), "Health", ""},
		"health, no path":     {HealthRequest{VolumeID: "v"}.Validate(), "Health", "stagingPath"},
		"health, bad target":  {HealthRequest{VolumeID: "v", StagingPath: "s", TargetPath: "\x00"}.Validate(), "Health", "targetPath"},
		"health, bad staging": {HealthRequest{VolumeID: "v", StagingPath: "\x00", TargetPath: "t"}.Validate(), "Health", "stagingPath"},
	} {
		if problem := wantField(test.err, test.op, test.field); problem != nil {
			t.Errorf("%s: %v", name, problem)
		}
	}
}
