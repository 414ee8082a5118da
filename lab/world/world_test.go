package world

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/model"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// act is what the test does at a step of the world, by its number.
type act func(*testing.T, *World)

// script runs a small world without a controller, and does what is asked of it at each step.
func script(t *testing.T, o Options, steps map[int]act) (*World, *model.Report) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane; run without -short")
	}
	o.Plane.LabBinary, o.Plane.KWOKBinary = planetest.Binaries(t)
	o.Dir, o.Nodes, o.Services, o.Speed, o.Seed = t.TempDir(), 10, 6, 1e6, 1
	begin := time.Now()
	o.Progress = func(line string) { t.Logf("%.1fs %s", time.Since(begin).Seconds(), line) }
	o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	n := 0
	o.OnStep = func(w *World) {
		n++
		if do := steps[n]; do != nil {
			do(t, w)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	w, err := New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
			t.Errorf("the world left %v behind (%v)", left, err)
		}
	})
	report, err := w.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return w, report
}

// scaleTo sets a service's replicas, as an operator would.
func scaleTo(t *testing.T, w *World, s *model.Service, replicas int) {
	t.Helper()
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Name.Namespace, Name: s.Name.Name}, Spec: autoscalingv1.ScaleSpec{Replicas: int32(replicas)},
	}
	_, err := w.api.core.AppsV1().Deployments(s.Name.Namespace).UpdateScale(t.Context(), s.Name.Name, scale, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.wrote = true
}

// podsOf counts a service's pods that serve, start and leave.
func podsOf(w *World, s *model.Service) model.PodCount {
	_, counts := w.census()
	return counts[w.serviceByName[s.Name]]
}

func TestAWorldWithoutAController(t *testing.T) {
	var grown, shrunk *model.Service
	var evicted, again string
	_, report := script(t, Options{Length: 20 * time.Minute}, map[int]act{
		4: func(t *testing.T, w *World) {
			grown, shrunk = w.fleet.Services[0], w.fleet.Services[1]
			scaleTo(t, w, grown, grown.Static+2)
			scaleTo(t, w, shrunk, shrunk.Static-1)
		},
		5: func(t *testing.T, w *World) {
			if got := podsOf(w, grown); got.Ready != grown.Static || got.Starting != 2 {
				t.Errorf("a step after the scale-out %+v, want 2 pods that start", got)
			}
			if got := podsOf(w, shrunk); got.Ready != shrunk.Static-1 || got.Leaving != 1 {
				t.Errorf("a step after the scale-in %+v, want 1 pod that leaves", got)
			}
		},
		8: func(t *testing.T, w *World) {
			if got := podsOf(w, shrunk); got.Leaving != 0 {
				t.Errorf("%d pods still leave after their grace of %d s", got.Leaving, graceSeconds)
			}
			evicted = evictOne(t, w)
			again = restartOne(t, w, grown)
		},
		12: func(t *testing.T, w *World) { checkRestarted(t, w, grown, again) },
		// The median start-up is two minutes at most, and no draw is above 2.9 times that.
		32: func(t *testing.T, w *World) {
			if got := podsOf(w, grown); got.Ready != grown.Static+2 {
				t.Errorf("%d pods ready seven minutes after the scale-out, want %d", got.Ready, grown.Static+2)
			}
			checkTimes(t, w, grown)
			checkReplaced(t, w, evicted)
			checkExported(t, w, grown)
		},
	})
	if report.VirtualHours != 1.0/3 || report.Services != 6 || report.Nodes != 10 {
		t.Errorf("the report is about %v h of %d services on %d machines", report.VirtualHours, report.Services, report.Nodes)
	}
	if report.OfflineCoreHours <= 0 || report.OfflineCoreHoursLost <= 0 {
		t.Errorf("offline work %v core-hours, %v lost: the jobs have worked, and an eviction costs", report.OfflineCoreHours, report.OfflineCoreHoursLost)
	}
	if report.MeanUtilisation <= 0 || report.MeanUtilisation >= 1 {
		t.Errorf("mean utilisation %v", report.MeanUtilisation)
	}
}

// evictOne evicts a pod of a job, as a drain does.
func evictOne(t *testing.T, w *World) string {
	t.Helper()
	w.table.mu.Lock()
	var victim *corev1.Pod
	for _, p := range w.table.pods {
		if p.kind == offline && p.ready && (victim == nil || p.object.Name < victim.Name) {
			victim = p.object
		}
	}
	w.table.mu.Unlock()
	if victim == nil {
		t.Fatal("no job has a pod")
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: victim.Namespace, Name: victim.Name}}
	if err := w.api.core.CoreV1().Pods(victim.Namespace).EvictV1(t.Context(), eviction); err != nil {
		t.Fatal(err)
	}
	w.wrote = true
	return victim.Name
}

// restartOne lets the container of one of a service's first pods start again.
func restartOne(t *testing.T, w *World, s *model.Service) string {
	t.Helper()
	w.table.mu.Lock()
	var first *pod
	for _, p := range w.table.pods {
		// One from the start: checkTimes counts those that were added later.
		if p.owner == s.Name && p.serves() && readyTime(p.object).Equal(w.start) && (first == nil || p.object.Name < first.object.Name) {
			first = p
		}
	}
	w.table.mu.Unlock()
	if first == nil {
		t.Fatalf("service %s has no pod that serves", s.Name)
	}
	if err := w.restart(first, w.Now())(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wrote = true
	return first.object.Name
}

// checkRestarted holds a pod whose container started again a minute ago to look as on a real cluster: it began long ago, and is Ready since then.
func checkRestarted(t *testing.T, w *World, s *model.Service, name string) {
	t.Helper()
	p, err := w.api.core.CoreV1().Pods(s.Name.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	when := w.Now().Add(-4 * Step)
	if ready := readyTime(p); len(p.Status.ContainerStatuses) != 1 || p.Status.ContainerStatuses[0].RestartCount != 1 || !ready.Equal(when) ||
		!p.Status.ContainerStatuses[0].State.Running.StartedAt.Time.Equal(when) || !p.Status.StartTime.Time.Before(when) {
		t.Errorf("the status of a pod that started again at %v: %+v", when, p.Status)
	}
	for series, want := range map[string]float64{"kube_pod_container_status_restarts_total": 1, "kube_pod_status_ready_time": seconds(when)} {
		got, err := w.exporters.prom.Query(t.Context(), series+`{pod="`+name+`"}`, w.Now())
		if err != nil || len(got) != 1 || got[0].Value != want {
			t.Errorf("%s: %v (%v), want %v", series, got, err, want)
		}
	}
}

func seconds(at time.Time) float64 { return float64(at.Unix()) }

// checkTimes holds the pods' own times to be virtual and to fit the start-up that the model drew.
func checkTimes(t *testing.T, w *World, s *model.Service) {
	t.Helper()
	pods, err := w.api.core.CoreV1().Pods(s.Name.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: labelApp + "=" + s.Name.Name})
	if err != nil {
		t.Fatal(err)
	}
	young := 0
	for i := range pods.Items {
		p := &pods.Items[i]
		ready := readyTime(p)
		if p.Status.StartTime == nil || ready.Before(w.start) || ready.After(w.Now()) {
			t.Errorf("pod %s: started %v, ready %v, want virtual times up to %v", p.Name, p.Status.StartTime, ready, w.Now())
			continue
		}
		if ready.Equal(w.start) || p.Status.ContainerStatuses[0].RestartCount > 0 {
			continue
		}
		young++
		if took, want := ready.Sub(p.Status.StartTime.Time), s.StartUpOf(p.Name); (took - want).Abs() > time.Second {
			t.Errorf("pod %s took %v to start, the model says %v", p.Name, took, want)
		}
	}
	if young != 2 {
		t.Errorf("%d pods became ready since the start, want the 2 that were added", young)
	}
}

func readyTime(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// checkReplaced holds the evicted pod to be gone and counted, and its job whole again without a failure.
func checkReplaced(t *testing.T, w *World, evicted string) {
	t.Helper()
	w.table.mu.Lock()
	defer w.table.mu.Unlock()
	for _, p := range w.table.pods {
		if p.object.Name == evicted {
			t.Errorf("pod %s is still there in phase %s", evicted, p.object.Status.Phase)
		}
	}
	for name, j := range w.table.jobs {
		if j.Status.Active != *j.Spec.Parallelism {
			t.Errorf("job %s has %d active pods, want %d", name, j.Status.Active, *j.Spec.Parallelism)
		}
	}
}

// checkExported asks Prometheus what a real one would know of the service.
func checkExported(t *testing.T, w *World, s *model.Service) {
	t.Helper()
	name := `{namespace="` + s.Name.Namespace + `",deployment="` + s.Name.Name + `"}`
	got, err := w.exporters.prom.Query(t.Context(), "kube_deployment_status_replicas_ready"+name, w.Now())
	if err != nil || len(got) != 1 || got[0].Value != float64(s.Static+2) {
		t.Errorf("ready replicas %v (%v), want %d", got, err, s.Static+2)
	}
	recorded, err := w.exporters.prom.Query(t.Context(),
		`springtide:workload_ready_replicas:sum{namespace="`+s.Name.Namespace+`",workload="`+s.Name.Name+`"}`, w.Now())
	if err != nil || len(recorded) != 1 || recorded[0].Value < float64(s.Static) {
		t.Errorf("recorded ready replicas %v (%v), want at least %d", recorded, err, s.Static)
	}
}

// An outage of the API server or of etcd on purpose costs virtual time, and the world finds its way back.
func TestAnOutageOfTheAPIServer(t *testing.T) {
	for _, what := range []Target{APIServer, Etcd} {
		t.Run(string(what), func(t *testing.T) { playOutage(t, what) })
	}
}

func playOutage(t *testing.T, what Target) {
	var s *model.Service
	var down, up time.Time
	script(t, Options{Length: 30 * time.Minute}, map[int]act{
		8: func(_ *testing.T, w *World) { w.TakeDown(what, 3*time.Minute) },
		10: func(t *testing.T, w *World) {
			if v := w.View(); len(v.Down) != 1 || v.Down[0] != what || !slices.Equal(w.Down(), v.Down) || !w.clock.Outage() {
				t.Errorf("down: %v and %v, outage %v, want %s", v.Down, w.Down(), w.clock.Outage(), what)
			}
			down = w.Now()
			// The rest is played slowly, so that the server is back long before the world ends.
			w.options.Speed = 60
		},
		100: func(t *testing.T, w *World) {
			if w.clock.Outage() || w.stalled() {
				t.Fatalf("%s is not back: %v are down", what, w.Down())
			}
			up = w.Now()
			s = w.fleet.Services[0]
			scaleTo(t, w, s, s.Static+1)
		},
		104: func(t *testing.T, w *World) {
			if got := podsOf(w, s); got.Ready+got.Starting != s.Static+1 {
				t.Errorf("after the outage %+v, want one pod more than %d", got, s.Static)
			}
		},
	})
	if !up.After(down) {
		t.Errorf("virtual time stood at %s during the outage", down)
	}
}

// The fleet has what the machines' shape promises: both pools in every zone, and GPUs in both pools.
func TestMachines(t *testing.T) {
	ms := machines(200, false)
	zones, gpus := map[string]map[string]int{}, map[string]int64{}
	for _, m := range ms {
		if zones[m.pool] == nil {
			zones[m.pool] = map[string]int{}
		}
		zones[m.pool][m.zone]++
		gpus[m.pool] += m.gpus
	}
	if len(zones[onlinePool]) != 3 || len(zones[offlinePool]) != 3 || gpus[onlinePool] == 0 || gpus[offlinePool] == 0 {
		t.Errorf("zones %v, GPUs %v", zones, gpus)
	}
	if got := onlineCores(ms); got != 160*coresPerNode {
		t.Errorf("%d online cores, want those of 160 machines", got)
	}
	if got := ms[0].allocatable().CPU; got != fleet.MilliCPU(1000*coresPerNode) {
		t.Errorf("a machine offers %d millicores", got)
	}
}
