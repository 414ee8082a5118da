package plane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"

	"github.com/springtide/springtide/internal/clock"
)

const (
	loopback = "127.0.0.1"
	// adminUser belongs to system:masters, the group that passes every authorizer.
	adminUser  = "admin"
	adminGroup = "system:masters"
	// tokensFile has the tokens that the API server knows from its start.
	tokensFile = "tokens.csv"
	// certificateLife outlives any run; the keys go with the plane's directory.
	certificateLife = 365 * 24 * time.Hour
)

// pki is the plane's certificate authority and what it has signed. Elliptic keys, since making them takes no time.
type pki struct {
	dir    string
	server string // URL of the API server
	ca     *x509.Certificate
	caKey  *ecdsa.PrivateKey
	// token is the administrator's. Almost every request of the lab is the administrator's, and the API server verifies the chain of a client
	// certificate for each request, where it remembers a token.
	token string
	// extensions of every context.
	extensions map[string]runtime.Object
}

// keyPair is a certificate and its key, both PEM.
type keyPair struct{ cert, key []byte }

// authInfo is what a client with the certificate says of itself.
func (k keyPair) authInfo() *clientcmdapi.AuthInfo {
	return &clientcmdapi.AuthInfo{ClientCertificateData: k.cert, ClientKeyData: k.key}
}

// newPKI makes the authority, the certificate that all servers share, the key that signs service account tokens, and
// the administrator's token and kubeconfig.
func newPKI(dir, server string, lab *clock.Lab) (*pki, error) {
	p := &pki{dir: filepath.Join(dir, "pki"), server: server, token: rand.Text()}
	if lab != nil {
		text, err := json.Marshal(lab)
		if err != nil {
			return nil, fmt.Errorf("write the lab's extension: %w", err)
		}
		p.extensions = map[string]runtime.Object{clock.LabExtension: &runtime.Unknown{Raw: text, ContentType: runtime.ContentTypeJSON}}
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the key directory: %w", err)
	}
	if err := p.makeAuthority(); err != nil {
		return nil, err
	}
	serving, err := p.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "springtide-lab"},
		IPAddresses: []net.IP{net.ParseIP(loopback), net.ParseIP(HostAddress), net.ParseIP(ServiceAddress)},
		DNSNames:    []string{"localhost", "kubernetes.default.svc"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, err
	}
	// The API server is a client of kubelets, and they ask it back what this user may do.
	kubelets, err := p.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver", Organization: []string{adminGroup}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, err
	}
	signer, err := newKey()
	if err != nil {
		return nil, err
	}
	signerPEM, err := encodeKey(signer)
	if err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{
		"ca.crt":              p.caPEM(),
		"server.crt":          serving.cert,
		"server.key":          serving.key,
		"kubelet-client.crt":  kubelets.cert,
		"kubelet-client.key":  kubelets.key,
		"service-account.key": signerPEM,
		// token, user, UID, groups
		tokensFile: fmt.Appendf(nil, "%s,%s,%s,%q\n", p.token, adminUser, adminUser, adminGroup),
	} {
		if err := os.WriteFile(p.path(name), data, 0o600); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
	}
	admin := p.config(p.server, adminUser, &clientcmdapi.AuthInfo{Token: p.token})
	return p, p.write(admin, adminUser)
}

// path is where a file of the pki lies.
func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// kubeconfig is where a user's kubeconfig lies.
func (p *pki) kubeconfig(user string) string { return p.path(user + ".kubeconfig") }

// makeAuthority makes the certificate that signs all others.
func (p *pki) makeAuthority() error {
	key, err := newKey()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "springtide-lab-ca"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(certificateLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("make the certificate authority: %w", err)
	}
	p.caKey = key
	p.ca, err = x509.ParseCertificate(der)
	return err
}

// sign completes a template and signs it with a fresh key.
func (p *pki) sign(template *x509.Certificate) (keyPair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return keyPair{}, err
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = p.ca.NotBefore, p.ca.NotAfter
	template.KeyUsage = x509.KeyUsageDigitalSignature
	key, err := newKey()
	if err != nil {
		return keyPair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, p.ca, key.Public(), p.caKey)
	if err != nil {
		return keyPair{}, fmt.Errorf("sign a certificate for %s: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	return keyPair{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: keyPEM}, err
}

// writeKubeconfig makes a client certificate for a user and a kubeconfig that may be copied elsewhere.
func (p *pki) writeKubeconfig(user string, groups ...string) (string, error) {
	pair, err := p.signClient(user, groups...)
	if err != nil {
		return "", err
	}
	return p.kubeconfig(user), p.write(p.config(p.server, user, pair.authInfo()), user)
}

// write writes a user's kubeconfig.
func (p *pki) write(config *clientcmdapi.Config, user string) error {
	if err := clientcmd.WriteToFile(*config, p.kubeconfig(user)); err != nil {
		return fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}
	return nil
}

// signClient makes the certificate of a user; the API server reads its organisations as groups.
func (p *pki) signClient(user string, groups ...string) (keyPair, error) {
	return p.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// config is a kubeconfig with everything inline.
func (p *pki) config(server, user string, auth *clientcmdapi.AuthInfo) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters["springtide-lab"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: p.caPEM()}
	config.AuthInfos[user] = auth
	config.Contexts["springtide-lab"] = &clientcmdapi.Context{Cluster: "springtide-lab", AuthInfo: user, Extensions: p.extensions}
	config.CurrentContext = "springtide-lab"
	return config
}

// restConfig is the administrator's client configuration.
func (p *pki) restConfig() *rest.Config {
	return &rest.Config{
		Host:            p.server,
		BearerToken:     p.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: p.caPEM()},
		// The lab's own clients write as fast as the machine goes; the API server's own limits are what remains.
		QPS: -1,
	}
}

// httpClient talks to the plane's servers as the administrator.
func (p *pki) httpClient() *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(p.ca)
	return &http.Client{
		Timeout: 2 * time.Second,
		// One connection per question: a kept one would hold on to a server that has been taken down.
		Transport: transport.NewBearerAuthRoundTripper(p.token, &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: roots},
		}),
	}
}

// caPEM is the authority's certificate.
func (p *pki) caPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.ca.Raw})
}

// newKey makes a P-256 key.
func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
}

// encodeKey writes a key in the form that Kubernetes reads everywhere, service account keys included.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
