package csiclient

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// wordsMaxBytes bounds the text of an error. Callers put it into events,
	// statuses and logs, and an API server refuses an object that is too large.
	wordsMaxBytes = 4 << 10
	// secretMinBytes is the length from which a secret is looked for in texts: a
	// shorter one is part of ordinary words.
	secretMinBytes = 4
)

// lostAnswers begin the texts of errors that are not the driver's word: it did
// what it was asked, maybe, and its answer could not be sent, taken or read.
//
// Source: google.golang.org/grpc, errors of rpc_util.go, stream.go and the
// transport; grpcio, where an answer cannot be written.
var lostAnswers = []string{
	"grpc: ", "transport: ", "trying to send message larger than max", "cardinality violation", "stream terminated by RST_STREAM",
	"server closed the stream without sending trailers", "a HEADERS frame cannot appear", "peer header list size exceeded",
	"malformed grpc-", "unexpected EOF", "unexpected HTTP status code", "Failed to serialize response",
}

// isLost reports whether an error says that an answer got lost. The codes are
// those that gRPC has for it.
func isLost(s *status.Status) bool {
	switch s.Code() {
	case codes.Internal, codes.Unknown, codes.ResourceExhausted:
		return slices.ContainsFunc(lostAnswers, func(begin string) bool { return strings.HasPrefix(s.Message(), begin) })
	default:
		return false
	}
}

// CleanErrors makes the errors of a driver fit for what its callers do with
// them. Their texts become valid, not too long, and lose the secrets of the call
// and what would move the cursor of whoever reads them. The code of an answer that
// got lost becomes Unavailable, since gRPC has it look like a refusal.
func CleanErrors(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := invoke(ctx, method, request, answer, conn, options...)
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	code := s.Code()
	if isLost(s) {
		code = codes.Unavailable
	}
	if text := cleanWords(s.Message(), request); code != s.Code() || text != s.Message() {
		return status.Error(code, text)
	}
	return err
}

func cleanWords(text string, request any) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\r\n", "\n")
	if secret, ok := request.(interface{ GetSecrets() map[string]string }); ok {
		text = withoutSecrets(text, secret.GetSecrets())
	}
	text = shortened(text)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '?'
		}
		return r
	}, text)
}

// withoutSecrets puts stars in the place of secrets, the longest first: one may
// be part of another.
func withoutSecrets(text string, secrets map[string]string) string {
	var values []string
	for _, secret := range secrets {
		if secret = strings.TrimSpace(secret); len(secret) >= secretMinBytes {
			values = append(values, secret)
		}
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	for _, secret := range values {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

func shortened(text string) string {
	const cut = " ..."
	if len(text) <= wordsMaxBytes {
		return text
	}
	end := wordsMaxBytes - len(cut)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + cut
}
