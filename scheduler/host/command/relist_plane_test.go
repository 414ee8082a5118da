//go:build plane

package command_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/springtide/springtide/lab/plane/planetest"
)

// between stands between a scheduler and the API server. It can cut all watches, and has them begin again with a fresh list, as after a long outage.
type between struct {
	proxy *httputil.ReverseProxy

	mu      sync.Mutex
	cut     bool
	expired map[string]bool // paths whose next watch is refused as too old
	running map[*http.Request]context.CancelFunc
}

// standBetween starts it, and returns it with a kubeconfig that leads through it.
func standBetween(t *testing.T) (*between, string) {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("SPRINGTIDE_TEST_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	b := &between{proxy: httputil.NewSingleHostReverseProxy(to), expired: map[string]bool{}, running: map[*http.Request]context.CancelFunc{}}
	b.proxy.Transport, b.proxy.FlushInterval = transport, -1
	b.proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusServiceUnavailable) }
	server := httptest.NewServer(b)
	t.Cleanup(func() { // after the scheduler has ended
		b.setCut(true)
		server.Close()
	})
	config := clientcmdapi.NewConfig()
	config.Clusters["between"] = &clientcmdapi.Cluster{Server: server.URL}
	config.AuthInfos["none"] = &clientcmdapi.AuthInfo{}
	config.Contexts["between"] = &clientcmdapi.Context{Cluster: "between", AuthInfo: "none"}
	config.CurrentContext = "between"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return b, file
}

// ServeHTTP passes a request on, and a watch only while it is not cut.
func (b *between) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if watch := q.Get("watch"); watch != "true" && watch != "1" {
		b.proxy.ServeHTTP(w, r)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r = r.WithContext(ctx)
	b.mu.Lock()
	tooOld := b.expired[r.URL.Path] && q.Get("sendInitialEvents") == ""
	delete(b.expired, r.URL.Path)
	isCut := b.cut
	if !isCut && !tooOld {
		b.running[r] = cancel
	}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.running, r)
		b.mu.Unlock()
	}()
	switch {
	case isCut:
		w.WriteHeader(http.StatusServiceUnavailable)
	case tooOld:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGone)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`))
	default:
		b.proxy.ServeHTTP(w, r)
	}
}

// setCut cuts all watches, or lets them begin again with a list.
func (b *between) setCut(cut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cut = cut
	for r, cancel := range b.running {
		b.expired[r.URL.Path] = true
		cancel()
	}
}

// TestPlaneRelist: while its watches are cut, a pod is deleted and made again under its name. Afterwards the scheduler knows the new one as another pod: the
// room, the anti-affinity and the host port of the former one are free.
func TestPlaneRelist(t *testing.T) {
	c := connect(t)
	b, file := standBetween(t)
	t.Setenv("SPRINGTIDE_TEST_KUBECONFIG", file)
	serve(t, "names: [relist]\nleaseNamespace: default\nleaseDuration: 5s\nbackoffFirst: 100ms\nbackoffMost: 500ms\n")
	kinds := map[string]func(*corev1.Pod){
		"room": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3")
		},
		"anti-affinity": func(p *corev1.Pod) { apart(term(hostname, "app", "relist"))(p) },
		"port":          port(4711, corev1.ProtocolTCP, ""),
	}
	of := func(name string) *corev1.Pod {
		p := pod("relist-"+name, "1")
		p.Labels = map[string]string{"app": "relist"}
		p.Spec.SchedulerName, p.Spec.NodeSelector = "relist", map[string]string{"for": "relist-" + name}
		kinds[name](p)
		return p
	}
	for _, name := range sorted(map[string]string{"room": "", "anti-affinity": "", "port": ""}) {
		n := planetest.Node("relist-"+name, map[string]string{hostname: "relist-" + name, "for": "relist-" + name})
		n.Status.Capacity[corev1.ResourceCPU], n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("4"), resource.MustParse("4")
		c.node(n)
		c.pod(of(name))
		c.bound("relist-" + name)
	}
	b.setCut(true)
	for name := range kinds {
		zero := int64(0)
		if err := c.api.CoreV1().Pods("default").Delete(t.Context(), "relist-"+name, metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
			t.Fatal(err)
		}
		c.poll("the pod is gone", func(ctx context.Context) (bool, error) {
			_, err := c.api.CoreV1().Pods("default").Get(ctx, "relist-"+name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
		c.pod(of(name))
	}
	b.setCut(false)
	for name := range kinds {
		c.bound("relist-" + name)
	}
}
