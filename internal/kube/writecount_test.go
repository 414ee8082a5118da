package kube

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
)

func TestWritesAreCountedByResourceAndVerb(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) }))
	defer server.Close()
	for _, c := range []struct{ method, path, resource, verb string }{
		{"GET", "/api/v1/nodes/n1", "", ""},
		{"PATCH", "/api/v1/nodes/n1", "nodes", "patch"},
		{"PUT", "/apis/springtide.dev/v1alpha1/loans/l/status", "loans/status", "update"},
		{"POST", "/api/v1/namespaces/batch/pods/p/eviction", "pods/eviction", "create"},
		{"POST", "/apis/batch/v1/namespaces/batch/jobs", "jobs", "create"},
		{"PATCH", "/k8s/clusters/c-1/apis/apps/v1/namespaces/shop/deployments/cart/scale", "deployments/scale", "patch"},
		{"DELETE", "/api/v1/namespaces/springtide", "namespaces", "delete"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", ""},
		{"PATCH", "/api/v1/nodes/n1?dryRun=All", "", ""},
		{"POST", "/version", "", ""},
	} {
		count := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "writes_total"}, []string{"resource", "verb"})
		client := http.Client{Transport: &writeCounter{http.DefaultTransport, count}}
		r, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		want := 0
		if c.verb != "" {
			want = 1
		}
		if n := testutil.CollectAndCount(count); n != want {
			t.Errorf("%s %s: %d series, want %d", c.method, c.path, n, want)
		} else if want == 1 && testutil.ToFloat64(count.WithLabelValues(c.resource, c.verb)) != 1 {
			t.Errorf("%s %s is not counted as %s %s", c.method, c.path, c.resource, c.verb)
		}
	}
}

// The clients of a cluster are made of a configuration that counts.
func TestTheClientsOfAClusterCount(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	defer server.Close()
	c, err := New(&rest.Config{Host: server.URL}, watch.Options{Namespace: kubetest.Namespace, Identity: "test",
		Clock: &kubetest.Clock{Time: kubetest.Now}})
	if err != nil {
		t.Fatal(err)
	}
	before := testutil.ToFloat64(apiWrites.WithLabelValues("nodes", "patch"))
	_, _ = c.in.Core.CoreV1().Nodes().Patch(context.Background(), "n1", "application/merge-patch+json", []byte("{}"),
		object.PatchOptions())
	if got := testutil.ToFloat64(apiWrites.WithLabelValues("nodes", "patch")) - before; got != 1 {
		t.Errorf("%v patches are counted", got)
	}
}
