package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// certificateTime is longer than any test.
const certificateTime = 24 * time.Hour

// authority is the cluster's own certificate authority. Whom it names in a
// certificate is that user to the API server.
type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	pem         []byte
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test cluster"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certificateTime),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, BasicConstraintsValid: true, IsCA: true,
	}}
	raw, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, key.Public(), key)
	if err != nil {
		return nil, err
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	a.certificate, err = x509.ParseCertificate(raw)
	return a, err
}

// issue makes a certificate with its key: of a server on loopback, or of a user in
// groups.
func (a *authority) issue(name string, groups []string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, err
	}
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, Organization: groups}, NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = encodeKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), key, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), err
}

// write puts what the API server and the controller manager read into a folder: the
// authority, a server's certificate, and the key that signs service accounts' tokens.
func (a *authority) write(folder string) error {
	certificate, key, err := a.issue("kube-apiserver", nil)
	if err != nil {
		return err
	}
	verifying, signing, err := a.issue("service accounts", nil)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"ca.crt": a.pem, "server.crt": certificate, "server.key": key, "accounts.key": signing, "accounts.crt": verifying} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// config is that of a user for the API server at a URL.
func (a *authority) config(url, user string, groups ...string) (*rest.Config, error) {
	certificate, key, err := a.issue(user, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: url, QPS: -1, // the limits of a test's own requests are none of its subjects
		TLSClientConfig: rest.TLSClientConfig{CAData: a.pem, CertData: certificate, KeyData: key},
	}, nil
}

// writeKubeconfig writes a file that means the same.
func writeKubeconfig(path string, config *rest.Config) error {
	file := api.NewConfig()
	file.Clusters["test"] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["user"] = &api.AuthInfo{Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	file.Contexts["test"] = &api.Context{Cluster: "test", AuthInfo: "user"}
	file.CurrentContext = "test"
	// Programs that were given an older one may read it just now.
	data, err := clientcmd.Write(*file)
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
