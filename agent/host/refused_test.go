package host

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/eviction"
)

// TestARefusedPodIsPassedOver: memory is short for minutes, and the eviction of the pod that is to go first is refused. The next pod goes within seconds,
// the first is asked a few times, and the ledger counts what happened.
func TestARefusedPodIsPassedOver(t *testing.T) {
	for _, x := range []struct {
		name    string
		status  metav1.Status
		seconds int
		most    int // how often the first pod is asked; 60 times in ten minutes while nothing was remembered
		stays   int // how many of its tries the ledger still counts
	}{
		{"two budgets", metav1.Status{Code: 500, Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}, 600, 4, 0},
		{"a webhook", metav1.Status{Code: 403, Message: `admission webhook "guard.example.com" denied the request: keep it`}, 120, 2, 0},
		{"no right", metav1.Status{Code: 403, Message: `pods "spare" is forbidden: User "a" cannot create resource "pods/eviction" in API group "" in the namespace "shop"`}, 120, 2, 0},
		{"a budget", metav1.Status{Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: "Cannot evict pod as it would violate the pod's disruption budget."}, 600, 8, 0},
		{"no answer, so the pod may end", metav1.Status{Code: 504, Reason: metav1.StatusReasonTimeout, Message: "gave up"}, 120, 4, 4},
	} {
		t.Run(x.name, func(t *testing.T) {
			l := newLoad(t)
			p := l.pod("other", shape.OverlapSide, shape.Reclaimed, 0)
			p.Reclaimed, p.Priority = fleet.Resources{CPU: 2000, Memory: fleet.GiB}, 5
			l.facts.Share = &v1alpha1.NodeShare{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "share"}}
			for _, pod := range []string{"spare", "other"} {
				files(t, l.roots.Cgroup, map[string]string{"kubepods/besteffort/pod" + pod + "-uid/memory.stat": "anon 1073741824"})
			}
			var mu sync.Mutex
			asked := map[string]int{}
			var ledger []v1alpha1.AgentEviction
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.Method == http.MethodPatch:
					var patch struct {
						Status struct {
							Evictions []v1alpha1.AgentEviction `json:"evictions"`
						} `json:"status"`
					}
					if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
						t.Error(err)
					}
					ledger = patch.Status.Evictions
					_, _ = w.Write([]byte(`{"apiVersion":"springtide.dev/v1alpha1","kind":"NodeShare","metadata":{"name":"m"}}`))
				case strings.HasSuffix(r.URL.Path, "/spare/eviction"):
					asked["spare"]++
					s := x.status
					s.APIVersion, s.Kind, s.Status = "v1", "Status", metav1.StatusFailure
					w.WriteHeader(int(s.Code))
					_ = json.NewEncoder(w).Encode(s)
				default:
					asked["other"]++
					w.WriteHeader(http.StatusCreated)
					_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Status","status":"Success"}`))
				}
			}))
			defer server.Close()
			core, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
			if err != nil {
				t.Fatal(err)
			}
			dyn, err := dynamic.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
			if err != nil {
				t.Fatal(err)
			}
			c := &Cluster{Core: core, Dynamic: dyn, Node: "m"}
			l.cycle()
			l.memory(0.1)
			for s := range x.seconds {
				l.second(1, 0, 0)
				for range l.Protect(t.Context(), c, l.now) { // its answer is there by the next second
					for deadline := time.Now().Add(10 * time.Second); len(l.guard.done) == 0 && time.Now().Before(deadline); {
						time.Sleep(time.Millisecond)
					}
				}
				mu.Lock()
				first := asked["other"]
				mu.Unlock()
				if s == 30 && first == 0 {
					t.Error("the other pod is not asked within half a minute")
				}
			}
			l.memory(48)
			l.Protect(t.Context(), c, l.now)
			counted := func() (n int) {
				mu.Lock()
				defer mu.Unlock()
				for _, e := range ledger {
					if strings.HasSuffix(e.Owner, "/spare") {
						n++
					}
				}
				return n
			}
			for deadline := time.Now().Add(10 * time.Second); counted() > x.stays && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond) // a charge is returned next to the seconds that are played
			}
			if n := counted(); n > x.stays || x.stays > 0 && n == 0 {
				t.Errorf("the ledger counts %d evictions of the pod that stayed, want %d", n, x.stays)
			}
			mu.Lock()
			defer mu.Unlock()
			if asked["spare"] == 0 || asked["spare"] > x.most {
				t.Errorf("the pod is asked %d times in %d s, want 1 to %d", asked["spare"], x.seconds, x.most)
			}
			t.Logf("asked in %d s: %v", x.seconds, asked)
			if got := l.cycle().Capabilities; !refusedShown(got) {
				t.Errorf("no condition says that evictions are refused: %+v", got)
			}
		})
	}
}

// TestAPodThatChangedIsAskedAgain: a refused pod whose labels or readiness changed is asked again soon, as other budgets may select it now; nothing else of it
// ends the pause.
func TestAPodThatChangedIsAskedAgain(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(p *corev1.Pod)
		again  bool
	}{
		{"a label", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "batch"} }, true},
		{"a label that is gone", func(p *corev1.Pod) { p.Labels = nil }, true},
		{"readiness", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		{"an annotation", func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, false},
		{"another condition", func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue})
		}, false},
		{"nothing", func(*corev1.Pod) {}, false},
	} {
		l := newLoad(t)
		object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
		see := func() { // as the watch brings it
			o, err := trim(object.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			f := newPodFacts(o.(*corev1.Pod))
			for i := range l.facts.Pods {
				if l.facts.Pods[i].Name == "spare" {
					l.facts.Pods[i].Judged = f.Judged
				}
			}
			l.cycle()
		}
		see()
		l.guard.refused.Note("spare-uid", "shop", eviction.Answer{Verdict: eviction.Never, Cause: fleet.RefusedByBudgets}, l.now)
		x.change(object)
		see()
		soon := l.now.Add(eviction.Least + time.Second)
		if r := l.guard.refused.Refused("spare-uid", soon); !r.Any() || r.Holds(soon) == x.again {
			t.Errorf("%s: refused until %s, at %s", x.name, r.Until, soon)
		}
	}
}

func refusedShown(all []Capability) bool {
	for _, c := range all {
		if c.Type == catalog.CapEvictions {
			return !c.OK && c.Reason == "Refused" && strings.Contains(c.Message, "spare")
		}
	}
	return false
}
