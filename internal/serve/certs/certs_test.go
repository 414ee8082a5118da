package certs

import (
	"bytes"
	"crypto/x509"
	"log/slog"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

const (
	namespace = "springtide-system"
	host      = "springtide-api.springtide-system.svc"
)

var begin = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func objects() []runtime.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: Object}
	return []runtime.Object{&corev1.Secret{ObjectMeta: meta}, &corev1.ConfigMap{ObjectMeta: meta},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: Webhook}, Webhooks: []admissionv1.ValidatingWebhook{{Name: "a.springtide.dev"}, {Name: "b.springtide.dev"}}}}
}

func keeper(client *fake.Clientset, now *time.Time) *Keeper {
	return New(Options{Client: client, Namespace: namespace, Names: []string{host}, Now: func() time.Time { return *now }, Log: slog.New(slog.DiscardHandler)})
}

// verify refreshes a keeper and checks its certificate as a caller would that knows a bundle of authorities.
func verify(t *testing.T, k *Keeper, bundle []byte, now time.Time) *x509.Certificate {
	t.Helper()
	if err := k.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	cert, err := k.Certificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if bundle != nil {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle)
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now}); err != nil {
			t.Errorf("at %s: %v", now, err)
		}
	}
	return leaf
}

func published(t *testing.T, client *fake.Clientset) []byte {
	t.Helper()
	m, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), Object, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return []byte(m.Data["ca.crt"])
}

func TestKeeperMakesAndRotates(t *testing.T) {
	client := fake.NewClientset(objects()...)
	now := begin
	k := keeper(client, &now)
	if _, err := k.Certificate(nil); err == nil {
		t.Error("a keeper that read nothing serves")
	}
	verify(t, k, nil, now)
	authority := published(t, client)
	first := verify(t, k, authority, now)

	webhook, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), Webhook, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range webhook.Webhooks {
		if !bytes.Equal(w.ClientConfig.CABundle, authority) {
			t.Errorf("webhook %s trusts another authority", w.Name)
		}
	}
	if second := verify(t, keeper(client, &now), authority, now); !second.Equal(first) {
		t.Error("a second controller made a certificate of its own")
	}
	now = begin.Add(59 * 24 * time.Hour)
	if leaf := verify(t, k, authority, now); !leaf.Equal(first) {
		t.Error("replaced before its time")
	}
	now = begin.Add(61 * 24 * time.Hour)
	if leaf := verify(t, k, authority, now); leaf.Equal(first) {
		t.Error("not replaced though it is about to end")
	}
	// A client with the old bundle does not know the new authority; a client that reads the bundle again knows both.
	now = begin.Add(560 * 24 * time.Hour)
	verify(t, k, nil, now)
	renewed := published(t, client)
	if bytes.Equal(renewed, authority) || !bytes.Contains(renewed, authority) {
		t.Error("the new bundle does not hold the new and the former authority")
	}
	verify(t, k, renewed, now)
	now = now.Add(800 * 24 * time.Hour)
	verify(t, k, nil, now)
	if last := published(t, client); bytes.Contains(last, authority) {
		t.Error("an authority that ended is still published")
	}
}

func TestKeeperReadsWhatIsProvided(t *testing.T) {
	donor := fake.NewClientset(objects()...)
	now := begin
	verify(t, keeper(donor, &now), nil, now)
	secret, err := donor.CoreV1().Secrets(namespace).Get(t.Context(), Object, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	delete(secret.Data, "ca.key")
	client := fake.NewClientset(append(objects()[1:], secret)...)
	k := keeper(client, &now)
	k.o.Provided = true
	verify(t, k, secret.Data["ca.crt"], now)
	now = now.Add(1000 * 24 * time.Hour) // its provider rotates it
	verify(t, k, nil, now)
	for _, a := range client.Actions() {
		if a.GetResource().Resource == "secrets" && a.GetVerb() != "get" || a.GetResource().Resource == "validatingwebhookconfigurations" {
			t.Errorf("%s %s of what another component keeps", a.GetVerb(), a.GetResource().Resource)
		}
	}
}

func TestKeeperWithoutItsObjects(t *testing.T) {
	client := fake.NewClientset()
	now := begin
	k := keeper(client, &now)
	if a, b := verify(t, k, nil, now), verify(t, k, nil, now); !a.Equal(b) {
		t.Error("another certificate at each look")
	}
	for _, a := range client.Actions() {
		if a.GetVerb() != "get" {
			t.Errorf("%s %s", a.GetVerb(), a.GetResource().Resource)
		}
	}
}
