package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/csi-windows/csi-windows/host"
)

// Limits of the texts of a request, in bytes. The agent's own limits of paths and
// names are narrower and stand behind them; these keep what cannot be right away
// from locks, logs and the node.
const (
	volumeIDBytesMax = 1024
	pathBytesMax     = 96_000 // 32 000 characters; source: Naming Files, Paths, and Namespaces
	nameBytesMax     = 1024   // identifiers, user names, domains
	iqnBytesMax      = 223    // source: RFC 3720, 3.2.6.1
	addressBytesMax  = 255    // source: RFC 1035, 2.3.4
	portalsMax       = 32
	portMax          = 65535
	passwordBytesMax = 2048
	labelRunesMax    = 32 // source: MSFT_Volume.Format, FileSystemLabel

	// Source: Microsoft iSCSI initiator, CHAP secrets of 12 to 16 bytes.
	chapSecretBytesMin = 12
	chapSecretBytesMax = 16
)

// Validate says what is wrong with the request without looking at the node. The
// error is KindInvalid, names the field, and repeats no secret.
func (r StageRequest) Validate() error {
	return invalidRequest("Stage", r.VolumeID,
		checkVolumeID(r.VolumeID), checkPath("stagingPath", r.StagingPath),
		checkSource(r.Source, true), checkFormat(r.Format))
}

// Validate says what is wrong with the request; see StageRequest.Validate.
func (r UnstageRequest) Validate() error {
	return invalidRequest("Unstage", r.VolumeID,
		checkVolumeID(r.VolumeID), checkPath("stagingPath", r.StagingPath), checkSource(r.Source, false))
}

// Validate says what is wrong with the request; see StageRequest.Validate.
func (r PublishRequest) Validate() error {
	return invalidRequest("Publish", r.VolumeID,
		checkVolumeID(r.VolumeID), checkPath("stagingPath", r.StagingPath), checkPath("targetPath", r.TargetPath),
		wrongIf(isWithin(r.TargetPath, r.StagingPath), "targetPath: is the staging path or lies in it"))
}

// Validate says what is wrong with the request; see StageRequest.Validate.
func (r UnpublishRequest) Validate() error {
	return invalidRequest("Unpublish", r.VolumeID, checkVolumeID(r.VolumeID), checkPath("targetPath", r.TargetPath))
}

// Validate says what is wrong with the request; see StageRequest.Validate.
func (r ExpandRequest) Validate() error {
	return invalidRequest("Expand", r.VolumeID,
		checkVolumeID(r.VolumeID), checkPath("path", r.Path),
		wrongIf(r.RequiredBytes < 0, "requiredBytes: must not be negative"),
		wrongIf(r.LimitBytes < 0, "limitBytes: must not be negative"),
		wrongIf(r.LimitBytes > 0 && r.LimitBytes < r.RequiredBytes, "limitBytes: is less than requiredBytes"))
}

// Validate says what is wrong with the request; see StageRequest.Validate.
func (r StatsRequest) Validate() error {
	return invalidRequest("Stats", r.VolumeID, checkVolumeID(r.VolumeID), checkPath("path", r.Path))
}

// Validate says what is wrong with the request; see StageRequest.Validate.
func (r HealthRequest) Validate() error {
	problem := wrongIf(r.StagingPath == "" && r.TargetPath == "", "stagingPath: this or targetPath must be set")
	if r.StagingPath != "" {
		problem = checkPath("stagingPath", r.StagingPath)
	}
	if problem == nil && r.TargetPath != "" {
		problem = checkPath("targetPath", r.TargetPath)
	}
	return invalidRequest("Health", r.VolumeID, checkVolumeID(r.VolumeID), problem)
}

// invalidRequest makes the error of a request from the first problem, nil from none.
func invalidRequest(op, volumeID string, problems ...error) error {
	for _, problem := range problems {
		if problem != nil {
			return &host.Error{Op: op, Object: shortText(volumeID), Kind: host.KindInvalid, Cause: problem}
		}
	}
	return nil
}

// shortText makes a text of a request fit for an error, whatever it holds.
func shortText(text string) string {
	const bytesMax = 200
	if len(text) > bytesMax {
		text = text[:bytesMax] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// wrongIf is a problem when bad holds. Its text begins with the field.
func wrongIf(bad bool, text string) error {
	if bad {
		return errors.New(text)
	}
	return nil
}

func checkVolumeID(text string) error { return checkText("volumeID", text, true, volumeIDBytesMax) }

func checkPath(field, text string) error { return checkText(field, text, true, pathBytesMax) }

// checkText checks a text that nobody has to keep secret.
func checkText(field, text string, required bool, bytesMax int) error {
	switch {
	case text == "" && required:
		return fmt.Errorf("%s: must not be empty", field)
	case len(text) > bytesMax:
		return fmt.Errorf("%s: is longer than %d bytes", field, bytesMax)
	case !utf8.ValidString(text):
		return fmt.Errorf("%s: is not valid UTF-8", field)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%s: has control characters", field)
	default:
		return nil
	}
}

// checkSource checks a source. For a login it has to be there; otherwise it may be
// missing, and credentials in it are not looked at: nothing that is not needed stands
// in the way of letting go.
func checkSource(s Source, login bool) error {
	count := 0
	for _, set := range []bool{s.Disk != nil, s.ISCSI != nil, s.SMB != nil} {
		if set {
			count++
		}
	}
	switch {
	case count > 1:
		return errors.New("source: more than one of disk, iscsi and smb is set")
	case s.Disk != nil:
		return checkDisk(*s.Disk)
	case s.ISCSI != nil:
		return checkISCSI(*s.ISCSI, login)
	case s.SMB != nil:
		return checkSMB(*s.SMB, login)
	case login:
		return errors.New("source: one of disk, iscsi and smb must be set")
	default:
		return nil
	}
}

func checkDisk(d DiskSource) error {
	if d == (DiskSource{}) {
		return errors.New("source.disk: page83, serialNumber or location must be set")
	}
	return firstProblem(
		checkDiskName("source.disk.page83", d.Page83),
		checkDiskName("source.disk.serialNumber", d.SerialNumber),
		checkCoordinate("source.disk.location.adapter", d.Location.Adapter),
		checkCoordinate("source.disk.location.bus", d.Location.Bus),
		checkCoordinate("source.disk.location.target", d.Location.Target),
		checkCoordinate("source.disk.location.lunID", d.Location.LUNID))
}

// checkDiskName checks a name of a disk, or nothing. Blanks around a name make no
// difference, so blanks alone would be the name of every disk.
func checkDiskName(field, text string) error {
	if text != "" && strings.TrimSpace(text) == "" {
		return fmt.Errorf("%s: must not be blank", field)
	}
	return checkText(field, text, false, nameBytesMax)
}

// checkCoordinate wants a decimal number of at most 32 bits, or nothing.
func checkCoordinate(field, text string) error {
	isDigit := func(r rune) bool { return r >= '0' && r <= '9' }
	if len(text) > len("4294967295") || strings.ContainsFunc(text, func(r rune) bool { return !isDigit(r) }) {
		return fmt.Errorf("%s: is no decimal number", field)
	}
	return nil
}

// checkISCSI checks a logical unit.
func checkISCSI(s ISCSISource, login bool) error {
	if len(s.Portals) == 0 || len(s.Portals) > portalsMax {
		return fmt.Errorf("source.iscsi.portals: must be 1 to %d portals", portalsMax)
	}
	for i, portal := range s.Portals {
		field := fmt.Sprintf("source.iscsi.portals[%d]", i)
		if err := checkText(field+".address", portal.Address, true, addressBytesMax); err != nil {
			return err
		}
		if portal.Port > portMax {
			return fmt.Errorf("%s.port: must not be larger than %d", field, portMax)
		}
	}
	if err := checkText("source.iscsi.iqn", s.IQN, true, iqnBytesMax); err != nil || !login {
		return err
	}
	return checkCHAP(s.CHAP, s.MutualSecret)
}

func checkCHAP(chap host.ConnectOptions, mutualSecret string) error {
	const field = "source.iscsi.chap"
	switch chap.AuthType {
	case host.AuthNone:
		return wrongIf(chap.ChapSecret != "" || mutualSecret != "", field+".authType: none does not go with a secret")
	case host.AuthOneWayCHAP:
		if mutualSecret != "" {
			return errors.New(field + ".authType: one-way CHAP does not go with a mutual secret")
		}
	case host.AuthMutualCHAP:
	default:
		return fmt.Errorf("%s.authType: %d is none of 0 (none), 1 (one-way CHAP) and 2 (mutual CHAP)", field, chap.AuthType)
	}
	if err := checkText(field+".username", chap.ChapUsername, false, nameBytesMax); err != nil {
		return err
	}
	if err := checkSecret(field+".secret", chap.ChapSecret); err != nil || mutualSecret == "" {
		return err
	}
	return checkSecret("source.iscsi.mutualSecret", mutualSecret)
}

func checkSecret(field, secret string) error {
	if n := len(secret); n < chapSecretBytesMin || n > chapSecretBytesMax {
		return fmt.Errorf("%s: must have %d to %d bytes", field, chapSecretBytesMin, chapSecretBytesMax)
	}
	return wrongIf(strings.IndexByte(secret, 0) >= 0, field+": holds a NUL byte")
}

// checkSMB checks what can be told without the rules of share names, which are
// the agent's.
func checkSMB(s SMBSource, login bool) error {
	const password = "source.smb.password"
	if err := checkText("source.smb.path", s.Path, true, pathBytesMax); err != nil || !login {
		return err
	}
	return firstProblem(
		checkText("source.smb.username", s.Username, false, nameBytesMax),
		checkText("source.smb.domain", s.Domain, false, nameBytesMax),
		wrongIf(len(s.Password) > passwordBytesMax, fmt.Sprintf("%s: is longer than %d bytes", password, passwordBytesMax)),
		wrongIf(!utf8.ValidString(s.Password) || strings.IndexByte(s.Password, 0) >= 0, password+": is not valid UTF-8 or holds a NUL byte"))
}

func checkFormat(f host.FormatOptions) error {
	known := []string{"", "NTFS", "REFS", "EXFAT", "FAT32"}
	return firstProblem(
		checkText("format.fileSystem", f.FileSystem, false, nameBytesMax),
		wrongIf(!slices.Contains(known, strings.ToUpper(f.FileSystem)), "format.fileSystem: is none of NTFS, ReFS, exFAT and FAT32"),
		wrongIf(f.ClusterBytes&(f.ClusterBytes-1) != 0, "format.clusterBytes: is no power of two"),
		checkText("format.label", f.Label, false, nameBytesMax),
		wrongIf(utf8.RuneCountInString(f.Label) > labelRunesMax, fmt.Sprintf("format.label: is longer than %d characters", labelRunesMax)))
}

func firstProblem(problems ...error) error {
	for _, problem := range problems {
		if problem != nil {
			return problem
		}
	}
	return nil
}
