package deploy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/run"
	"github.com/springtide/springtide/internal/serve/readapi"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/store"
)

// TestServing runs the controller as its own account with the rights of the manifests, on a real API server: it makes its certificate, the
// webhook trusts it and refuses what no policy can judge, and the read API answers each user what that user may read.
func TestServing(t *testing.T) {
	p, core, dyn := startWith(t, plane.Options{}, slices.DeleteFunc(render(t, "webhook", "secure-metrics"), func(doc []byte) bool { return bytes.Contains(doc, []byte("kind: Deployment")) }))
	await(t, "the definitions to be served", func() bool {
		_, err := dyn.Resource(v1alpha1.GroupVersion.WithResource("nodeshares")).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	c := config.DefaultController()
	c.Kubeconfig = kubeconfigOf(t, p, tokenOf(t, core, system, "springtide-controller"))
	c.Identity, c.Namespace, c.Store = "test", system, "sqlite://"+filepath.Join(t.TempDir(), "s.db")
	c.Listen, c.Serving.Listen, c.Prometheus.URL, c.LogLevel = freeAddress(t), address, "http://127.0.0.1:1", "error"
	c.Metrics.Listen = freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run.Run(ctx, c, "") }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the controller: %v", err)
		}
	})

	// It has set the logger of the process by then, which clients read.
	await(t, "the controller to listen", func() bool {
		r, err := http.Get("http://" + c.Listen + "/healthz") //nolint:noctx // the test ends with it
		if err == nil {
			r.Body.Close()
		}
		return err == nil
	})
	// The API server of this test has no way to a Service: it is pointed at the port itself.
	webhooks := core.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	await(t, "the webhook's caBundle", func() bool {
		w, err := webhooks.Get(t.Context(), "springtide", metav1.GetOptions{})
		return err == nil && len(w.Webhooks[0].ClientConfig.CABundle) > 0
	})
	direct := fmt.Sprintf(`[{"op":"remove","path":"/webhooks/0/clientConfig/service"},{"op":"add","path":"/webhooks/0/clientConfig/url","value":"https://localhost:%s/admission"}]`, port)
	if _, err := webhooks.Patch(t.Context(), "springtide", types.JSONPatchType, []byte(direct), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	wrong := strings.ReplaceAll(serviceHead+deployment+"  windows: [{name: w, start: \"0 9 30 2 *\", duration: 1h, timeZone: Asia/Beijing, minReplicas: 2}]\n", "NAME", "late")
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(wrong), &u.Object); err != nil {
		t.Fatal(err)
	}
	services := dyn.Resource(v1alpha1.GroupVersion.WithResource("elasticservices")).Namespace("default")
	var refusal error
	await(t, "the webhook's refusal", func() bool {
		_, refusal = services.Create(t.Context(), u.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return refusal != nil
	})
	for _, want := range []string{"never starts: name a day that its months have", `zone "Asia/Beijing" is not an IANA zone`} {
		if !strings.Contains(refusal.Error(), want) {
			t.Errorf("refused by %v, want %q", refusal, want)
		}
	}

	// A tenant that may read the services of its namespace, and nothing else.
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"elasticservices"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "tenant"}}}
	if _, err := core.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.RbacV1().Roles("default").Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	authority, err := core.CoreV1().ConfigMaps(system).Get(t.Context(), "springtide-serving", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(authority.Data["ca.crt"])) {
		t.Fatal("the published authority is no certificate")
	}
	client := func(token string) *readapi.Client {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "springtide-api." + system + ".svc", MinVersion: tls.VersionTLS12}}
		return &readapi.Client{Base: "https://" + address, HTTP: &http.Client{Transport: bearer{token, transport}}}
	}
	tenant := client(tokenOf(t, core, "default", "tenant"))
	await(t, "an answer of the leader", func() bool {
		_, err = tenant.About(t.Context(), store.KindService, "default/cart", 5)
		return err == nil
	})
	if _, err := tenant.About(t.Context(), store.KindService, "kube-system/cart", 5); err == nil || !strings.Contains(err.Error(), "system:serviceaccount:default:tenant must not get elasticservices kube-system/cart") {
		t.Errorf("of another namespace: %v", err)
	}
	if _, err := client("none").About(t.Context(), store.KindService, "default/cart", 5); err == nil || !strings.Contains(err.Error(), "no bearer token") {
		t.Errorf("by a token that is none: %v", err)
	}
	checkMetrics(t, core, &c)
}

// checkMetrics: metrics go to an account that is bound to springtide-metrics-reader and to no other one, and the address of the probes has none.
func checkMetrics(t *testing.T, core kubernetes.Interface, c *config.Controller) {
	t.Helper()
	if _, err := core.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "prometheus"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "prometheus"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "springtide-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "prometheus"}}}
	if _, err := core.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The certificate signs itself, as a ServiceMonitor with insecureSkipVerify takes it.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	get := func(url, token string) (int, string) {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			q.Header.Set("Authorization", "Bearer "+token)
		}
		r, err := (&http.Client{Transport: transport}).Do(q)
		if err != nil {
			return 0, err.Error()
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body) // a TLS port answers plain HTTP and resets the connection
		return r.StatusCode, string(text)
	}
	secure := "https://" + c.Metrics.Listen + "/metrics"
	reader := tokenOf(t, core, "default", "prometheus")
	// The API server's authorizer learns of a binding a moment after it was made.
	await(t, "metrics for the account that is bound", func() bool {
		code, text := get(secure, reader)
		return code == http.StatusOK && strings.Contains(text, "springtide_")
	})
	for _, x := range []struct {
		what, url, token string
		want             int
	}{
		{"without a token", secure, "", http.StatusUnauthorized},
		{"by a token that is none", secure, "none", http.StatusUnauthorized},
		{"by an account without the right", secure, tokenOf(t, core, "default", "tenant"), http.StatusForbidden},
		{"without TLS", "http://" + c.Metrics.Listen + "/metrics", reader, http.StatusBadRequest},
		{"at the address of the probes", "http://" + c.Listen + "/metrics", reader, http.StatusNotFound},
		{"of life, at the address of the probes", "http://" + c.Listen + "/healthz", "", http.StatusOK},
	} {
		if code, text := get(x.url, x.token); code != x.want {
			t.Errorf("%s: %d %s, want %d", x.what, code, text, x.want)
		}
	}
}

// bearer sends a token.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(q *http.Request) (*http.Response, error) {
	q.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(q)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func tokenOf(t *testing.T, core kubernetes.Interface, namespace, account string) string {
	t.Helper()
	r, err := core.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status.Token
}

// kubeconfigOf is a file by which the owner of a token reaches the plane.
func kubeconfigOf(t *testing.T, p *plane.Plane, token string) string {
	t.Helper()
	from := p.RESTConfig()
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["c"] = &clientcmdapi.Cluster{Server: from.Host, CertificateAuthorityData: from.CAData, CertificateAuthority: from.CAFile}
	cfg.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	cfg.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	cfg.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*cfg, path); err != nil {
		t.Fatal(err)
	}
	return path
}
