package winos

import (
	"context"
	"strings"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// mappingRow is what is read of MSFT_SmbGlobalMapping. The keys of the class are
// not documented, so everything is selected.
type mappingRow struct {
	Path           string `cim:"__RELPATH"`
	RemotePath     string `cim:"RemotePath"`
	LocalPath      string `cim:"LocalPath"`
	RequirePrivacy bool   `cim:"RequirePrivacy"`
	Status         uint32 `cim:"Status"`
}

var mappingTable = cim.NewTable[mappingRow](cim.NamespaceSMB, "MSFT_SmbGlobalMapping")

// mappingStates are the words for MSFT_SmbGlobalMapping.Status, by number.
var mappingStates = []host.SmbMappingStatus{
	host.MappingOK, host.MappingPaused, host.MappingDisconnected, host.MappingNetworkError,
	host.MappingConnecting, host.MappingReconnecting, host.MappingUnavailable,
}

func (r mappingRow) mapping() host.SmbMapping {
	m := host.SmbMapping{
		RemotePath: r.RemotePath, LocalPath: r.LocalPath,
		RequirePrivacy: r.RequirePrivacy, Status: host.MappingUnavailable,
	}
	if int64(r.Status) < int64(len(mappingStates)) {
		m.Status = mappingStates[r.Status]
	}
	return m
}

// SMBMappings returns every global mapping. Source: MSFT_SmbGlobalMapping.
func (o *OS) SMBMappings(ctx context.Context) ([]host.SmbMapping, error) {
	rows, err := mappingTable.Rows(ctx, o.session)
	if err != nil {
		return nil, failSMB("SMBMappings", "", err, false)
	}
	mappings := make([]host.SmbMapping, len(rows))
	for i, row := range rows {
		mappings[i] = row.mapping()
	}
	return mappings, nil
}

// CreateSMBMapping makes a mapping that does not outlive a restart. Persistent is
// always said: its default is true, and then Windows keeps the credentials and
// refuses the next ones with 1219. Source: MSFT_SmbGlobalMapping.Create.
func (o *OS) CreateSMBMapping(ctx context.Context, request agent.SMBRequest) error {
	in := cim.Values{
		"RemotePath":     request.Share,
		"RequirePrivacy": request.RequirePrivacy,
		"Persistent":     false,
	}
	credential := smbCredential(request.Username, request.Password)
	if request.Username != "" {
		in["Credential"] = credential
	}
	_, err := o.callStatic(ctx, mappingTable, "Create", in)
	if err != nil {
		err = withoutSecrets(err, request.Password, credential)
		return failSMB("CreateSMBMapping", request.Share, err, request.RequirePrivacy)
	}
	return nil
}

// smbCredential is the one text in which the SMB classes take user and password:
// a colon between them, colon and backslash of the user escaped, the password as
// it is. Source: the CIM cmdlets' conversion of a credential.
func smbCredential(username, password string) string {
	return strings.NewReplacer(`\`, `\\`, `:`, `\:`).Replace(username) + ":" + password
}

// RemoveSMBMapping removes a mapping, open files or not. Source:
// MSFT_SmbGlobalMapping.Remove.
func (o *OS) RemoveSMBMapping(ctx context.Context, share string) error {
	rows, err := mappingTable.Rows(ctx, o.session)
	if err != nil {
		return failSMB("RemoveSMBMapping", share, err, false)
	}
	found := false
	for _, row := range rows {
		if !strings.EqualFold(row.RemotePath, share) {
			continue
		}
		found = true
		if _, err := o.call(ctx, mappingTable, row.Path, "Remove", cim.Values{"Force": true}); err != nil {
			return failSMB("RemoveSMBMapping", share, err, false)
		}
	}
	if !found {
		return notFound("RemoveSMBMapping", share)
	}
	return nil
}

// ProbeRemote checks that a remote path can be reached: a mapping's own status
// may still say OK when the share or the password is gone. Source: GetFileAttributesW.
func (o *OS) ProbeRemote(ctx context.Context, remotePath string) error {
	if _, err := o.api.FileAttributes(ctx, extendedPath(remotePath)); err != nil {
		return failSMB("ProbeRemote", remotePath, err, false)
	}
	return nil
}

// RemoteStats returns size and free bytes of the share that holds a remote path.
// Windows wants the path with a final backslash. Source: GetDiskFreeSpaceExW.
func (o *OS) RemoteStats(ctx context.Context, remotePath string) (totalBytes, freeBytes int64, err error) {
	total, free, err := o.api.DiskFreeSpace(ctx, withBackslash(extendedPath(remotePath)))
	if err != nil {
		return 0, 0, failSMB("RemoteStats", remotePath, err, false)
	}
	totalBytes, freeBytes = sizesOf(total, free)
	return totalBytes, freeBytes, nil
}

// failSMB sorts a failure by its system error number, by whichever way it came,
// and tells what to look at.
func failSMB(op, object string, err error, privacy bool) error {
	code, ok := systemCodeOf(err)
	if !ok {
		return fail(op, object, err)
	}
	switch {
	case code == win32.ErrNetworkAccessDenied && privacy:
		return failAs(host.KindPrecondition, op, object, hinted(err,
			"the server may not support SMB encryption, which the flag -require-privacy demands"))
	case code == win32.ErrCredentialConflict:
		err = hinted(err, "the server is mapped with another user already")
	case code == win32.ErrNoNetOrBadPath:
		err = hinted(err, "is the service LanmanWorkstation running?")
	case win32Codes[code].kind == host.KindUnauthenticated:
		err = hinted(err, `the user may need its domain or server in front: DOMAIN\user`)
	}
	return fail(op, object, err)
}
