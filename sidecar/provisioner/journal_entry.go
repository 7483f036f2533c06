package provisioner

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
)

// intent is a volume that may be in the making: what is needed to ask the
// driver for it once more, and to delete it, when the claim is gone.
type intent struct {
	// Namespace and Claim are the claim's names.
	Namespace, Claim string
	// Volume is the name of the object that is to be saved.
	Volume string
	// Secret is what the driver needs; only its name is kept.
	Secret *v1.SecretReference
	// Request is the request, without secrets.
	Request *csi.CreateVolumeRequest
}

// entryForm is how an intent is written.
type entryForm struct {
	Namespace string              `json:"namespace"`
	Claim     string              `json:"claim"`
	Volume    string              `json:"volume"`
	Secret    *v1.SecretReference `json:"secret,omitempty"`
	Request   json.RawMessage     `json:"request"`
}

// entryMaxBytes bounds what is unpacked from an entry.
const entryMaxBytes = 1 << 20

// encode writes an intent as compressed JSON. Secrets are left out.
func (i *intent) encode() (string, error) {
	request := proto.CloneOf(i.Request)
	request.Secrets = nil
	text, err := protojson.Marshal(request)
	if err != nil {
		return "", fmt.Errorf("journal entry of claim %s/%s: %w", i.Namespace, i.Claim, err)
	}
	text, err = json.Marshal(entryForm{i.Namespace, i.Claim, i.Volume, i.Secret, text})
	if err != nil {
		return "", fmt.Errorf("journal entry of claim %s/%s: %w", i.Namespace, i.Claim, err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err = z.Write(text); err == nil {
		err = z.Close()
	}
	if err != nil {
		return "", fmt.Errorf("journal entry of claim %s/%s: %w", i.Namespace, i.Claim, err)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}

// decodeIntent reads what encode wrote.
func decodeIntent(entry string) (*intent, error) {
	packed, err := base64.StdEncoding.DecodeString(entry)
	if err != nil {
		return nil, fmt.Errorf("journal entry: %w", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("journal entry: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, entryMaxBytes))
	if err != nil {
		return nil, fmt.Errorf("journal entry: %w", err)
	}
	var form entryForm
	if err := json.Unmarshal(text, &form); err != nil {
		return nil, fmt.Errorf("journal entry: %w", err)
	}
	request := &csi.CreateVolumeRequest{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(form.Request, request); err != nil {
		return nil, fmt.Errorf("journal entry: %w", err)
	}
	if form.Volume == "" || request.GetName() == "" {
		return nil, fmt.Errorf("journal entry: it names no volume")
	}
	return &intent{form.Namespace, form.Claim, form.Volume, form.Secret, request}, nil
}
