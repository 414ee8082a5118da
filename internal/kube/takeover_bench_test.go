package kube

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/springtide/springtide/internal/kube/election"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/leadership"
)

// BenchmarkTakeOver is how long a new leader of 20,000 machines and 2,000 services stamps before its first plan, every eighth machine in motion, with
// the clients and their rates as the controller has them, on an API server that answers at once: what is missed is reported, and fails it.
// It must be within 30 s.
func BenchmarkTakeOver(b *testing.B) {
	const machines, services, moving8th = 20_000, 2_000, 8
	objects := []metav1.Object{leaderLease("test", 1), kubetest.Pool("web", "Online", kubetest.InWeb),
		kubetest.Pool("batch", "Offline", kubetest.InBatch)}
	for i := range machines {
		n, phase := fmt.Sprintf("n%05d", i), "Lent"
		if i%moving8th == 0 {
			phase = "Noticed"
		}
		objects = append(objects, kubetest.Node(n, kubetest.InWeb), kubetest.Loan("l-"+n, n, phase, 2, 0),
			kubetest.NodeShare(n, "l-"+n, "batch", "", 2, false, 0))
	}
	for i := range services {
		n := fmt.Sprintf("svc%04d", i)
		objects = append(objects, kubetest.Deployment(n, 10), kubetest.Service(n))
	}
	w := newWorld(b, objects...)
	var version, writes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		writes.Add(1)
		v := fmt.Sprint(1_000_000 + version.Add(1))
		var answer any
		switch r.Method {
		case http.MethodPut:
			text, err := io.ReadAll(r.Body)
			var o map[string]any
			if err != nil || json.Unmarshal(text, &o) != nil {
				http.Error(rw, "no object", http.StatusBadRequest)
				return
			}
			o["metadata"].(map[string]any)["resourceVersion"] = v
			answer = o
		case http.MethodPatch:
			answer = &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: path.Base(r.URL.Path), ResourceVersion: v}}
		default:
			http.Error(rw, "only stamps", http.StatusMethodNotAllowed)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(answer)
	}))
	defer server.Close()
	epoch := int64(7)
	for b.Loop() {
		m := &election.Moving{Nodes: map[string]bool{}}
		next, err := w.NextEpoch(b.Context(), m.See)
		if err != nil {
			b.Fatal(err)
		}
		epoch = max(epoch+1, next.Epoch)
		// New clients, with their bursts unused, as a new leader's are.
		cfg := &rest.Config{Host: server.URL, QPS: w.Options.QPS, Burst: w.Options.Burst}
		w.Fence.Wrap(cfg)
		c := w.Cluster
		listed, core := c.in.Dyn, c.in.Core
		if c.in.Dyn, err = dynamic.NewForConfig(cfg); err != nil {
			b.Fatal(err)
		}
		if c.in.Core, err = kubernetes.NewForConfig(cfg); err != nil {
			b.Fatal(err)
		}
		err = c.in.TakeOver(b.Context(), m, leadership.Held{Epoch: epoch, Lease: kubetest.Lease})
		c.in.Dyn, c.in.Core = listed, core
		if err != nil {
			b.Fatal(err)
		}
		want := int64(2 + 2*machines/moving8th + services)
		if n := writes.Swap(0); n != want {
			b.Fatalf("%d stamps of %d were made in time", n, want)
		}
		b.ReportMetric(float64(want), "stamps/op")
	}
}
