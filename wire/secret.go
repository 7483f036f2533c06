package wire

import (
	"errors"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/csi-windows/csi-windows/host"
)

// errWithheld stands for a cause that repeats a secret.
var errWithheld = errors.New("the cause is withheld: its text repeats a secret of the request")

// conceal takes from the error of a call whatever repeats a secret of its request.
// The agent does so for each of its calls; a node task makes many, and one that was
// given no secret may still meet it.
func conceal(err error, request proto.Message) error {
	if err == nil || !repeatsAny(err.Error(), secretsOf(request.ProtoReflect(), nil)) {
		return err
	}
	var panicked *panicError
	if errors.As(err, &panicked) {
		return &panicError{value: errWithheld, stack: panicked.stack}
	}
	var failure *host.Error
	if !errors.As(err, &failure) {
		return &host.Error{Op: Op(request), Kind: contextKind(err), Cause: errWithheld}
	}
	concealed := &host.Error{Op: failure.Op, Object: failure.Object, Kind: failure.Kind, Cause: errWithheld}
	if repeatsAny(concealed.Object, secretsOf(request.ProtoReflect(), nil)) {
		concealed.Object = ""
	}
	return concealed
}

func repeatsAny(text string, secrets []string) bool {
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			return true
		}
	}
	return false
}

// secretsOf adds the texts of a request that are declared with debug_redact.
func secretsOf(m protoreflect.Message, found []string) []string {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsList() || field.IsMap(): // hold no secrets
		case field.Message() != nil:
			found = secretsOf(value.Message(), found)
		case isSecret(field):
			found = append(found, value.String()) // Range skips empty ones
		}
		return true
	})
	return found
}

func isSecret(field protoreflect.FieldDescriptor) bool {
	options, ok := field.Options().(*descriptorpb.FieldOptions)
	return ok && options.GetDebugRedact()
}
