package csikit

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// stripped stands where a secret was.
const stripped = "***stripped***"

// shortSecretBytes is the length below which a secret is taken out of a text only
// where it stands alone: one of a letter would take the text apart.
const shortSecretBytes = 4

// isSecretField reports whether CSI says that a field holds secrets. Mount flags
// only may, and drivers put passwords there.
func isSecretField(field protoreflect.FieldDescriptor) bool {
	if field.FullName() == "csi.v1.VolumeCapability.MountVolume.mount_flags" {
		return true
	}
	secret, _ := proto.GetExtension(field.Options(), csi.E_CsiSecret).(bool)
	return secret
}

// isSecretKey reports whether the value of a key in a context or in parameters is
// likely a secret. "csi.storage.k8s.io/serviceAccount.tokens" is one.
func isSecretKey(key string) bool {
	key = strings.ToLower(key)
	// The provisioner's parameters with the names of secrets hold names only, but
	// who puts a secret there is as safe.
	for _, word := range []string{"token", "passw", "pwd", "secret", "credential", "apikey", "api-key", "api_key", "accesskey", "access-key", "access_key", "private", "auth", "sas"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return strings.HasSuffix(key, "key") || strings.HasSuffix(key, "pass")
}

// userinfoOf returns the part of an URL before its host, as in
// https://user:password@server, and "" when there is none.
func userinfoOf(value string) string {
	_, rest, found := strings.Cut(value, "://")
	if !found {
		return ""
	}
	authority, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return ""
	}
	return authority[:at]
}

// secretsMax is how many secret values of a request are looked for in a text. Beside
// one with more no text is told: the search would take too long.
const secretsMax = 4096

// secrets are the secret values of one request, longest first, so that none is
// left in parts by another that is a piece of it.
type secrets struct {
	values  []string
	tooMany bool
}

// collector gathers the secret values of a request, each once.
type collector map[string]struct{}

// secretsOf collects the secret values of a request, and the forms in which an
// error may repeat them.
func secretsOf(request proto.Message) secrets {
	found := collector{}
	found.collect(request.ProtoReflect())
	if len(found) > secretsMax {
		return secrets{tooMany: true}
	}
	for _, value := range slices.Collect(maps.Keys(found)) {
		quoted := strconv.Quote(value)
		inJSON, _ := json.Marshal(value) //nolint:errchkjson // a string always has a form
		found.addAll(quoted[1:len(quoted)-1], string(inJSON[1:len(inJSON)-1]), url.QueryEscape(value), url.PathEscape(value),
			base64.StdEncoding.EncodeToString([]byte(value)), base64.URLEncoding.EncodeToString([]byte(value)))
	}
	return secrets{values: slices.SortedFunc(maps.Keys(found), func(a, b string) int { return len(b) - len(a) })}
}

// add adds values, until there are too many.
func (s collector) add(values ...string) {
	if len(s) <= secretsMax {
		s.addAll(values...)
	}
}

func (s collector) addAll(values ...string) {
	for _, value := range values {
		if value = strings.TrimSpace(value); value != "" {
			s[value] = struct{}{}
		}
	}
}

func (s collector) collect(message protoreflect.Message) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		secret := isSecretField(field)
		switch {
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				s.addEntry(key.String(), value.String(), secret)
				return true
			})
		case field.IsList():
			for i := range value.List().Len() {
				s.addItem(field, value.List().Get(i), secret)
			}
		default:
			s.addItem(field, value, secret)
		}
		return true
	})
}

func (s collector) addItem(field protoreflect.FieldDescriptor, value protoreflect.Value, secret bool) {
	switch {
	case field.Kind() == protoreflect.MessageKind:
		s.collect(value.Message())
	case secret:
		// A mount flag is a word, or a word with a value: only the value may be secret.
		if _, setting, found := strings.Cut(value.String(), "="); found {
			s.add(setting)
		}
	}
}

func (s collector) addEntry(key, value string, secret bool) {
	if secret || isSecretKey(key) {
		s.add(value)
		s.add(strings.Split(value, "\n")...) // a key file, of which an error tells a line
		s.addWithin(value)
	}
	if userinfo := userinfoOf(value); userinfo != "" {
		s.add(userinfo)
		_, password, _ := strings.Cut(userinfo, ":")
		s.add(password)
	}
}

// addWithin adds the texts in a value that is JSON: tokens of service accounts come
// as one object for all audiences.
func (s collector) addWithin(value string) {
	var parsed any
	if !strings.HasPrefix(strings.TrimSpace(value), "{") || json.Unmarshal([]byte(value), &parsed) != nil {
		return
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			s.add(v)
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for key, item := range v {
				if key != "expirationTimestamp" {
					walk(item)
				}
			}
		}
	}
	walk(parsed)
}

// scrub takes the secrets out of a text, as of an error that repeats its request.
func (s secrets) scrub(text string) string {
	if s.tooMany {
		return stripped
	}
	for _, value := range s.values {
		if len(value) >= shortSecretBytes {
			text = strings.ReplaceAll(text, value, stripped)
		} else {
			text = replaceWord(text, value)
		}
	}
	return text
}

// replaceWord replaces a value where no letter or digit is beside it.
func replaceWord(text, value string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, value)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := i + len(value)
		alone := (i == 0 || !isWordByte(text[i-1])) && (end == len(text) || !isWordByte(text[end]))
		b.WriteString(text[:i])
		if alone {
			b.WriteString(stripped)
		} else {
			b.WriteString(value)
		}
		text = text[end:]
	}
}

func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
