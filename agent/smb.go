package agent

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/csi-windows/csi-windows/host"
)

// Limits of credentials in UTF-16 units. Source: wincred.h,
// CRED_MAX_USERNAME_LENGTH and CREDUI_MAX_PASSWORD_LENGTH, rounded up.
const (
	userUnitsMax     = 513
	passwordUnitsMax = 512
)

// smbRequest is a checked NewSmbGlobalMapping.
type smbRequest struct {
	remote   remotePath
	local    *localPath // nil when no link is wanted
	username string
	password string
}

// NewSmbGlobalMapping implements host.SMB. The local path is checked before the
// share is mapped, and the link is made only once the share can be reached, so
// a failure leaves no folder behind that could be taken for the share.
func (a *Agent) NewSmbGlobalMapping(ctx context.Context, remotePath, localPath, username, password string) error {
	c := a.mutation(ctx, "NewSmbGlobalMapping", host.PrintableText(remotePath)).withSecrets(password)
	request, err := a.checkMapping(remotePath, localPath, username, password)
	if err != nil {
		return c.refused(err)
	}
	wants := []want{exclusive(lockSMBServer, 0, request.remote.serverKey())}
	if request.local != nil {
		wants = append(wants, exclusive(lockPath, 0, request.local.key()))
	}
	return exec(ctx, c, wants, func(ctx context.Context) error {
		if request.local == nil {
			return a.ensureReachable(ctx, request)
		}
		spots, err := c.settle(ctx, *request.local)
		if err != nil {
			return err
		}
		defer spots[0].Close()
		if err := spots[0].mustTakeLink(request.remote.String()); err != nil {
			return err
		}
		if err := a.ensureReachable(ctx, request); err != nil {
			return err
		}
		return spots[0].makeLink(ctx, request.remote.String(), true)
	})
}

func (a *Agent) checkMapping(remotePath, localPath, username, password string) (smbRequest, error) {
	request := smbRequest{username: username, password: password}
	var err error
	if request.remote, err = parseRemote("remotePath", remotePath); err != nil {
		return request, err
	}
	if localPath != "" {
		local, err := parsePath("localPath", localPath, a.systemDrive)
		if err != nil {
			return request, err
		}
		request.local = &local
	}
	return request, checkCredentials(username, password)
}

// checkCredentials checks the form of user and password. No text of an error
// holds either. A user is "name", `domain\name` or "name@domain"; without user
// and password the node's own account is used.
func checkCredentials(username, password string) error {
	domain, name, qualified := strings.Cut(username, `\`)
	switch {
	case username == "" && password != "":
		return invalid("username", "user name is empty although there is a password")
	case hasControl(username):
		return invalid("username", "user name has control characters")
	case utf16Units(username, userUnitsMax) > userUnitsMax:
		return invalid("username", "user name is longer than %d characters", userUnitsMax)
	case qualified && (domain == "" || name == "" || strings.Contains(name, `\`)):
		return invalid("username", `user name is not of the form domain\name`)
	case !utf8.ValidString(password) || strings.IndexByte(password, 0) >= 0:
		return invalid("password", "password is not valid UTF-8 or holds a NUL character")
	case utf16Units(password, passwordUnitsMax) > passwordUnitsMax:
		return invalid("password", "password is longer than %d characters", passwordUnitsMax)
	default:
		return nil
	}
}

// mustTakeLink fails early when no link to the path can be made at the spot.
func (s *spot) mustTakeLink(leadsTo string) error {
	if s.node != nil {
		return s.mustLeadTo(leadsTo)
	}
	return s.mustHaveParent()
}

// ensureReachable makes sure that the share is mapped and the remote path is there.
func (a *Agent) ensureReachable(ctx context.Context, request smbRequest) error {
	if err := a.ensureMapping(ctx, request); err != nil {
		return err
	}
	if len(request.remote.names) == 0 {
		return nil
	}
	return a.probe(ctx, request.remote)
}

// ensureMapping reuses the mapping of the share when it works, and otherwise
// makes it once.
func (a *Agent) ensureMapping(ctx context.Context, request smbRequest) error {
	usable, err := a.reuseMapping(ctx, request.remote)
	if err != nil || usable {
		return err
	}
	err = a.os.CreateSMBMapping(ctx, SMBRequest{
		Share: request.remote.mappingKey(), Username: request.username, Password: request.password,
		RequirePrivacy: a.policy.RequirePrivacy,
	})
	if host.IsKind(err, host.KindExists) {
		return a.afterConflict(ctx, request.remote)
	}
	if err != nil {
		return err
	}
	return a.probe(ctx, request.remote.shareRoot())
}

// reuseMapping reports whether the share is mapped and works. A mapping that
// does not is removed: Windows keeps it for ever, and refuses a second one.
func (a *Agent) reuseMapping(ctx context.Context, remote remotePath) (bool, error) {
	mapping, err := a.findMapping(ctx, remote)
	if err != nil || mapping == nil {
		return false, err
	}
	if a.isTrusted(mapping) && a.probe(ctx, remote.shareRoot()) == nil {
		return true, nil
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	err = a.os.RemoveSMBMapping(ctx, mapping.RemotePath)
	if host.IsKind(err, host.KindNotFound) {
		err = nil
	}
	return false, err
}

// isTrusted reports whether a mapping is worth a look: it is not known to be
// broken, and not weaker than the policy.
func (a *Agent) isTrusted(mapping *host.SmbMapping) bool {
	if a.policy.RequirePrivacy && !mapping.RequirePrivacy {
		return false
	}
	switch mapping.Status {
	case host.MappingDisconnected, host.MappingUnavailable, host.MappingNetworkError:
		return false
	default:
		return true
	}
}

// afterConflict decides what error 1219 means: somebody outside this agent
// mapped the share in the meantime, or the server is in use with other credentials.
func (a *Agent) afterConflict(ctx context.Context, remote remotePath) error {
	mapping, err := a.findMapping(ctx, remote)
	if err != nil {
		return err
	}
	if mapping == nil || !a.isTrusted(mapping) {
		return refuse(host.KindPrecondition, "%s cannot be mapped: the server is in use with other credentials (Windows error 1219)", remote.mappingKey())
	}
	return a.probe(ctx, remote.shareRoot())
}

// findMapping returns the mapping of the share of a path, or nil.
func (a *Agent) findMapping(ctx context.Context, remote remotePath) (*host.SmbMapping, error) {
	mappings, err := a.os.SMBMappings(ctx)
	if err != nil {
		return nil, err
	}
	for i := range mappings {
		other, err := parseRemote("mapping", mappings[i].RemotePath)
		if err == nil && other.mappingKey() == remote.mappingKey() {
			return &mappings[i], nil
		}
	}
	return nil, nil
}

// probe looks at a remote path, for a limited time.
func (a *Agent) probe(ctx context.Context, remote remotePath) error {
	_, err := askServer(ctx, a, "ProbeRemote", remote, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, a.os.ProbeRemote(ctx, remote.String())
	})
	return err
}

// askServer carries out a question about a remote path, for a limited time: a
// dead server answers after minutes, or never. A question that hangs in the
// operating system is left behind, as it changes nothing.
func askServer[T any](ctx context.Context, a *Agent, op string, remote remotePath, ask func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	probeCtx, cancel := context.WithTimeout(ctx, a.policy.ProbeTimeout)
	defer cancel()
	question := a.query(op, host.PrintableText(remote.String()))
	answers := make(chan answer, 1)
	a.workers.start(func() {
		value, err := guarded(probeCtx, question, ask)
		answers <- answer{value, err}
	})
	var got answer
	select {
	case got = <-answers:
	case <-probeCtx.Done():
		got.err = probeCtx.Err()
	}
	if got.err != nil && ctx.Err() == nil && probeCtx.Err() != nil {
		got.err = refuse(host.KindUnavailable, "%s does not answer within %v: %w", remote, a.policy.ProbeTimeout, got.err)
	}
	return got.value, got.err
}

// RemoveSmbGlobalMapping implements host.SMB.
func (a *Agent) RemoveSmbGlobalMapping(ctx context.Context, remotePath string) error {
	c := a.mutation(ctx, "RemoveSmbGlobalMapping", host.PrintableText(remotePath))
	remote, err := parseRemote("remotePath", remotePath)
	if err != nil {
		return c.refused(err)
	}
	wants := []want{exclusive(lockSMBServer, 0, remote.serverKey())}
	return exec(ctx, c, wants, func(ctx context.Context) error {
		mapping, err := a.findMapping(ctx, remote)
		if err != nil || mapping == nil {
			return err
		}
		err = a.os.RemoveSMBMapping(ctx, mapping.RemotePath)
		if host.IsKind(err, host.KindNotFound) {
			return nil
		}
		return err
	})
}

// ListSmbGlobalMappings implements host.SMB.
func (a *Agent) ListSmbGlobalMappings(ctx context.Context) ([]host.SmbMapping, error) {
	return nodeQuery(ctx, a, "ListSmbGlobalMappings", a.os.SMBMappings)
}
