// Package certs keeps the certificate by which the controller serves its webhook and its read API. In comes a Secret; out goes the newest
// certificate for each connection, and the authority that callers must trust: in the ConfigMap for the command line and in the webhook
// configuration for the API server.
//
// By default the controller makes its own authority and rotates both. With Provided, another component (cert-manager) writes the Secret, and
// the controller only reads it.
package certs

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// Object is the name of the Secret with the keys, of the ConfigMap with the authority, and of the webhook configuration's owner.
	Object = "springtide-serving"
	// Webhook is the name of the webhook configuration whose caBundle is kept.
	Webhook = "springtide"

	keyAuthority = "ca.crt"
	keySigner    = "ca.key"

	// A certificate lives for 90 days and is replaced after 60; an authority for two years, and is replaced half a year before its end, so
	// that no certificate outlives it.
	leafLife      = 90 * 24 * time.Hour
	leafLeft      = 30 * 24 * time.Hour
	authorityLife = 2 * 365 * 24 * time.Hour
	authorityLeft = 182 * 24 * time.Hour
	// A clock that is behind ours must not refuse what we made just now.
	backdate = time.Hour

	// lookEvery is how often the Secret is looked at: another controller, or cert-manager, may have written it.
	lookEvery = time.Minute
)

// Options are the terms of a Keeper.
type Options struct {
	Client    kubernetes.Interface
	Namespace string
	// Names are the host names that the certificate is for.
	Names []string
	// Provided says that another component writes the Secret and the webhook's caBundle.
	Provided bool
	Now      func() time.Time
	Log      *slog.Logger
}

// Keeper holds the newest certificate. It is safe for concurrent use.
type Keeper struct {
	o Options

	mu   sync.Mutex // guards what follows
	cert *tls.Certificate
	// alone is the Secret's content where there is no Secret to keep it in.
	alone map[string][]byte
}

// New makes a keeper that holds nothing yet.
func New(o Options) *Keeper { return &Keeper{o: o} }

// Certificate serves a TLS handshake.
func (k *Keeper) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cert == nil {
		return nil, errors.New("there is no certificate yet")
	}
	return k.cert, nil
}

// Run refreshes until ctx ends. A failure is logged, and the former certificate serves on.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if err := k.Refresh(ctx); err != nil && ctx.Err() == nil {
			k.o.Log.Error("the serving certificate was not refreshed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Refresh reads the Secret, replaces what is about to end, and publishes the authority.
func (k *Keeper) Refresh(ctx context.Context) error {
	data, err := k.settle(ctx)
	if err != nil {
		return err
	}
	cert, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("read the certificate of Secret %s/%s: %w", k.o.Namespace, Object, err)
	}
	k.mu.Lock()
	k.cert = &cert
	k.mu.Unlock()
	return errors.Join(k.publish(ctx, data[keyAuthority]), k.trust(ctx, data[keyAuthority]))
}

// settle returns the content of the Secret, renewed where that is due. Of two controllers that renew at once one gets a conflict, and takes
// what the other one wrote.
func (k *Keeper) settle(ctx context.Context) (map[string][]byte, error) {
	secrets := k.o.Client.CoreV1().Secrets(k.o.Namespace)
	for range 3 {
		secret, err := secrets.Get(ctx, Object, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && !k.o.Provided {
			return k.withoutSecret()
		}
		if err != nil {
			return nil, fmt.Errorf("read Secret %s/%s: %w", k.o.Namespace, Object, err)
		}
		if k.o.Provided {
			return secret.Data, nil
		}
		data, changed, err := renew(secret.Data, k.o.Names, k.o.Now())
		if err != nil || !changed {
			return data, err
		}
		secret.Data = data
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		if err == nil {
			k.o.Log.Info("renewed the serving certificate", "secret", Object)
			return data, nil
		}
		if !apierrors.IsConflict(err) {
			return nil, fmt.Errorf("write Secret %s/%s: %w", k.o.Namespace, Object, err)
		}
	}
	return nil, fmt.Errorf("write Secret %s/%s: other writers were quicker three times", k.o.Namespace, Object)
}

// withoutSecret keeps the certificate in memory, where the manifests of the Secret were left out: it serves one controller alone.
func (k *Keeper) withoutSecret() (map[string][]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.alone == nil {
		k.o.Log.Warn("there is no Secret for the serving certificate: it is kept in memory, and another controller has another one", "secret", Object)
	}
	data, _, err := renew(k.alone, k.o.Names, k.o.Now())
	k.alone = data
	return data, err
}

// publish writes the authority for the command line.
func (k *Keeper) publish(ctx context.Context, authority []byte) error {
	maps := k.o.Client.CoreV1().ConfigMaps(k.o.Namespace)
	m, err := maps.Get(ctx, Object, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && m.Data[keyAuthority] == string(authority) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read ConfigMap %s/%s: %w", k.o.Namespace, Object, err)
	}
	if m.Data == nil {
		m.Data = map[string]string{}
	}
	m.Data[keyAuthority] = string(authority)
	if _, err := maps.Update(ctx, m, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("write ConfigMap %s/%s: %w", k.o.Namespace, Object, err)
	}
	return nil
}

// trust writes the authority into the webhook configuration, where one is installed.
func (k *Keeper) trust(ctx context.Context, authority []byte) error {
	if k.o.Provided {
		return nil // cert-manager injects it by its own annotation
	}
	webhooks := k.o.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	w, err := webhooks.Get(ctx, Webhook, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil // the webhook is optional, and its rights come with it
	}
	if err != nil {
		return fmt.Errorf("read ValidatingWebhookConfiguration %s: %w", Webhook, err)
	}
	type clientConfig struct {
		CABundle []byte `json:"caBundle"`
	}
	type one struct {
		Name         string       `json:"name"`
		ClientConfig clientConfig `json:"clientConfig"`
	}
	var patch struct {
		Webhooks []one `json:"webhooks"`
	}
	for i := range w.Webhooks {
		if !bytes.Equal(w.Webhooks[i].ClientConfig.CABundle, authority) {
			patch.Webhooks = append(patch.Webhooks, one{w.Webhooks[i].Name, clientConfig{authority}})
		}
	}
	if len(patch.Webhooks) == 0 {
		return nil
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	if _, err := webhooks.Patch(ctx, Webhook, types.StrategicMergePatchType, body, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("write the authority into ValidatingWebhookConfiguration %s: %w", Webhook, err)
	}
	return nil
}

// renew returns the content that the Secret should have, and whether that is another one.
func renew(was map[string][]byte, names []string, now time.Time) (map[string][]byte, bool, error) {
	signer, key, err := readAuthority(was)
	madeAuthority := err != nil || now.Add(authorityLeft).After(signer.NotAfter)
	if !madeAuthority && leafIsWell(was, signer, names, now) {
		return was, false, nil
	}
	data := map[string][]byte{}
	for k, v := range was {
		data[k] = v
	}
	if madeAuthority {
		var text, keyText []byte
		if signer, key, text, keyText, err = makeAuthority(now); err != nil {
			return nil, false, err
		}
		// Callers that know the former authority alone, and those that know the new one, both find theirs.
		data[keyAuthority] = append(text, former(was[keyAuthority], now)...)
		data[keySigner] = keyText
	}
	cert, keyText, err := makeLeaf(signer, key, names, now)
	if err != nil {
		return nil, false, err
	}
	data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey] = cert, keyText
	return data, true, nil
}

// readAuthority reads the newest authority, which stands first, and its key.
func readAuthority(data map[string][]byte) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(data[keyAuthority])
	keyBlock, _ := pem.Decode(data[keySigner])
	if block == nil || keyBlock == nil {
		return nil, nil, errors.New("no authority")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, nil, err
	}
	return cert, key, nil
}

// former is the first authority of a bundle, while it is valid.
func former(bundle []byte, now time.Time) []byte {
	block, _ := pem.Decode(bundle)
	if block == nil {
		return nil
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil || now.After(cert.NotAfter) {
		return nil
	}
	return pem.EncodeToMemory(block)
}

func leafIsWell(data map[string][]byte, signer *x509.Certificate, names []string, now time.Time) bool {
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return false
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil || leaf.CheckSignatureFrom(signer) != nil || now.Add(leafLeft).After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		return false
	}
	for _, n := range names {
		if leaf.VerifyHostname(n) != nil {
			return false
		}
	}
	return true
}

func makeAuthority(now time.Time) (cert *x509.Certificate, key *ecdsa.PrivateKey, text, keyText []byte, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, nil, nil, err
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, nil, nil, nil, err
	}
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "springtide-serving " + now.UTC().Format(time.DateOnly)}, NotBefore: now.Add(-backdate),
		NotAfter: now.Add(authorityLife), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		return nil, nil, nil, nil, err
	}
	keyText, err = keyPEM(key)
	return cert, key, certPEM(der), keyText, err
}

func makeLeaf(signer *x509.Certificate, by *ecdsa.PrivateKey, names []string, now time.Time) (cert, keyText []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, NotBefore: now.Add(-backdate),
		NotAfter: now.Add(leafLife), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, key.Public(), by)
	if err != nil {
		return nil, nil, err
	}
	keyText, err = keyPEM(key)
	return certPEM(der), keyText, err
}

func serialNumber() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// InMemory returns what serves a TLS handshake with a certificate that signs itself: made at the first handshake, and again before it ends. Callers
// cannot know it, so it keeps listeners off the line and proves nothing about the server.
func InMemory(name string, now func() time.Time) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	var mu sync.Mutex
	var data map[string][]byte
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		renewed, _, err := renew(data, []string{name}, now())
		if err != nil {
			return nil, err
		}
		data = renewed
		cert, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
		return &cert, err
	}
}

// FromDir returns what serves a TLS handshake with tls.crt and tls.key of a directory. They are read for each handshake, so a mounted Secret that
// cert-manager renews is used at once.
func FromDir(dir string) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		cert, err := tls.LoadX509KeyPair(filepath.Join(dir, corev1.TLSCertKey), filepath.Join(dir, corev1.TLSPrivateKeyKey))
		return &cert, err
	}
}
