package host

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/springtide/springtide/api/config"
)

// TestGangsThatAreOff: a cluster without PodGroups is reported once, whatever else of scheduling.k8s.io it serves.
func TestGangsThatAreOff(t *testing.T) {
	for _, c := range []struct {
		name   string
		served []metav1.APIResourceList
		want   float64
	}{
		{"nothing of the group", nil, 0},
		{"priority classes alone", []metav1.APIResourceList{{GroupVersion: "scheduling.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "priorityclasses"}}}}, 0},
		{"of 1.37", []metav1.APIResourceList{{GroupVersion: "scheduling.k8s.io/v1beta1", APIResources: []metav1.APIResource{{Name: "workloads"}, {Name: "podgroups"}}}}, 1},
		{"of 1.36", []metav1.APIResourceList{{GroupVersion: "scheduling.k8s.io/v1alpha2", APIResources: []metav1.APIResource{{Name: "podgroups"}}}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := fake.NewClientset()
			for i := range c.served {
				client.Resources = append(client.Resources, &c.served[i])
			}
			kinds := map[schema.GroupVersionResource]string{}
			for _, gvr := range podGroups() {
				kinds[gvr] = "PodGroupList"
			}
			var log bytes.Buffer
			s := &Scheduler{c: config.DefaultScheduler(), client: client, dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds),
				o: Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: NewMetrics(prometheus.NewRegistry())}}
			core := newCore(s.c, s.o.Log, s.o.Metrics)
			if err := s.watch(t.Context(), core, informers.NewSharedInformerFactory(client, 0)); err != nil {
				t.Fatal(err)
			}
			if got := testutil.ToFloat64(s.o.Metrics.podGroups); got != c.want {
				t.Errorf("the gauge is %v, want %v", got, c.want)
			}
			if n := strings.Count(log.String(), "gangs by PodGroups are off"); n != int(1-c.want) {
				t.Errorf("it is said %d times:\n%s", n, log.String())
			}
		})
	}
}
