package eviction

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A disruption budget that refuses names a time to wait. It is asked once, the path is the pod's, and a request that nothing bounds is not sent.
func TestARefusalIsAnsweredAtOnce(t *testing.T) {
	var asked atomic.Int32
	var path atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path.Store(r.Method + " " + r.URL.Path)
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`))
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	e := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "training", Name: "worker-0"}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Once(ctx, client.PolicyV1().RESTClient(), e); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the answer is %v, want the refusal", err)
	}
	if got, want := path.Load(), "POST /api/v1/namespaces/training/pods/worker-0/eviction"; got != want || asked.Load() != 1 {
		t.Errorf("%d requests, the last %v; want one of %s", asked.Load(), got, want)
	}
	if err := Once(context.Background(), client.PolicyV1().RESTClient(), e); err == nil || asked.Load() != 1 {
		t.Errorf("without a deadline: %v, %d requests", err, asked.Load())
	}
}
