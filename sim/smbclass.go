package sim

import (
	"fmt"
	"strings"

	"github.com/csi-windows/csi-windows/sim/wql"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// smbGlobalMappingClass is MSFT_SmbGlobalMapping. The class's keys are not
// documented; local and remote path together are taken.
func smbGlobalMappingClass() *class {
	path := func(m *smbMapping) string {
		return wql.FormatPath("MSFT_SmbGlobalMapping", wql.Key{Name: "LocalPath", Value: m.LocalPath}, wql.Key{Name: "RemotePath", Value: m.RemotePath})
	}
	return newClass(cim.NamespaceSMB, "MSFT_SmbGlobalMapping", func(n *Node) []*smbMapping { return n.state.Mappings }, path).
		key("LocalPath", func(m *smbMapping) any { return textOrNull(m.LocalPath) }).
		key("RemotePath", func(m *smbMapping) any { return m.RemotePath }).
		prop("RequireIntegrity", func(m *smbMapping) any { return m.RequireIntegrity }).
		prop("RequirePrivacy", func(m *smbMapping) any { return m.RequirePrivacy }).
		prop("UseWriteThrough", func(m *smbMapping) any { return m.UseWriteThrough }).
		nodeProp("Status", func(n *Node, m *smbMapping) any { return n.smbStatusLocked(m) }).
		static("Create", "LocalPath:s RemotePath:s Credential:s Persistent:b RequireIntegrity:b RequirePrivacy:b"+
			" FullAccess:ss DenyAccess:ss UseWriteThrough:b", createMapping).
		method("Remove", "Force:b", removeMapping).class
}

// createMapping is MSFT_SmbGlobalMapping.Create. Persistent defaults to TRUE.
// Source: New-SmbGlobalMapping.
func createMapping(n *Node, in args) (cim.Result, error) {
	user, password := parseCredential(in.text("Credential"))
	m := smbMapping{
		LocalPath:  in.text("LocalPath"),
		RemotePath: strings.ReplaceAll(in.text("RemotePath"), "/", `\`),
		User:       user, Password: password,
		Persistent:       in.flagOr("Persistent", true),
		RequireIntegrity: in.flag("RequireIntegrity"), RequirePrivacy: in.flag("RequirePrivacy"),
		UseWriteThrough: in.flag("UseWriteThrough"),
	}
	if code := n.mapLocked(m); code != 0 {
		return n.smbFailure("MSFT_SmbGlobalMapping.Create", code)
	}
	created := n.state.Mappings[len(n.state.Mappings)-1]
	class := n.schema.class(cim.NamespaceSMB, "MSFT_SmbGlobalMapping")
	return cim.Result{Out: cim.Values{"CreatedMapping": class.instance(n, created, nil)}}, nil
}

// removeMapping is MSFT_SmbGlobalMapping.Remove. Without Force a mapping with
// open files stays. Source: Remove-SmbGlobalMapping; ERROR_OPEN_FILES.
func removeMapping(n *Node, m *smbMapping, in args) (cim.Result, error) {
	code := uint32(errOpenFiles)
	if in.flag("Force") || !n.remoteInUseLocked(m.RemotePath) {
		code = n.unmapLocked(m)
	}
	if code != 0 {
		return n.smbFailure("MSFT_SmbGlobalMapping.Remove", code)
	}
	return returns(0)
}

// smbFailure surfaces a system error: a failing HRESULT with an error object
// (MSFT_WmiError.error_Code) beside it, or by configuration a ReturnValue. Which
// of the two raw COM gives is not documented.
func (n *Node) smbFailure(object string, code uint32) (cim.Result, error) {
	if n.config.SMBErrorsAsReturnValue {
		return returns(code)
	}
	return cim.Result{}, &cim.Error{
		Op: "Exec", Object: object, HRESULT: cim.Failed, Win32: code,
		Text: fmt.Sprintf("Windows System Error %d", code),
	}
}

// parseCredential splits "user:password": in the user a backslash escapes a
// backslash and a colon, the password is as it is. Source: the CIM adapter of
// PowerShell's credential conversion.
func parseCredential(credential string) (user, password string) {
	var b strings.Builder
	for i := 0; i < len(credential); i++ {
		switch c := credential[i]; {
		case c == '\\' && i+1 < len(credential):
			i++
			b.WriteByte(credential[i])
		case c == ':':
			return b.String(), credential[i+1:]
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// textOrNull is a string property that is NULL when empty.
func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
