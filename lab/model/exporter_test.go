package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/measure"
	"github.com/springtide/springtide/lab/traces"
)

// scraped is an exporter with what a store would have made of it.
type scraped struct {
	e      *Exporter
	labels map[Handle]string
	ended  map[Handle]bool
}

func newScraped() *scraped {
	return &scraped{e: NewExporter(), labels: map[Handle]string{}, ended: map[Handle]bool{}}
}

func (s *scraped) read(t *testing.T, from func([]Sample) []Sample) map[string]float64 {
	t.Helper()
	for _, f := range s.e.Fresh() {
		if _, ok := s.labels[f.Handle]; ok {
			t.Errorf("handle %d is used twice", f.Handle)
		}
		if !slices.IsSortedFunc(f.Labels, func(a, b Label) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("labels are not sorted: %v", f.Labels)
		}
		var name string
		var rest []string
		for _, l := range f.Labels {
			switch {
			case l.Name == "__name__":
				name = l.Value
			case l.Value != "":
				rest = append(rest, fmt.Sprintf("%s=%q", l.Name, l.Value))
			}
		}
		s.labels[f.Handle] = name + "{" + strings.Join(rest, ",") + "}"
	}
	for _, h := range s.e.Gone() {
		s.ended[h] = true
	}
	out := map[string]float64{}
	for _, x := range from(nil) {
		name, ok := s.labels[x.Handle]
		if !ok || s.ended[x.Handle] {
			t.Errorf("a sample of handle %d, which is not registered or ended", x.Handle)
		}
		if _, ok := out[name]; ok {
			t.Errorf("%s appears twice", name)
		}
		out[name] = x.Value
	}
	return out
}

func wantSamples(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if g, ok := got[name]; !ok || g != v {
			t.Errorf("%s is %v (there: %v), want %v", name, g, ok, v)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s was not expected", name)
		}
	}
}

func cart(http bool) PodMeta {
	return PodMeta{
		Name: fleet.Name{Namespace: "shop", Name: "cart-7d-a"}, UID: "u1", Node: "n1", OwnerKind: "ReplicaSet", OwnerName: "cart-7d",
		Container: "app", Request: fleet.Resources{CPU: 4000, Memory: 12 * fleet.GiB}, HTTP: http, Created: time.Unix(1000, 0),
	}
}

func TestStateSpeaksAsKubeStateMetricsDoes(t *testing.T) {
	s := newScraped()
	s.e.AddNode("n1", fleet.Resources{CPU: 64000, Memory: 256 * fleet.GiB, Pods: 110, GPU: 8})
	s.e.SetDeployment(fleet.Name{Namespace: "shop", Name: "cart"}, 1, 0)
	s.e.AddReplicaSet(fleet.Name{Namespace: "shop", Name: "cart-7d"}, "cart")
	s.e.AddReplicaSet(fleet.Name{Namespace: "shop", Name: "cart-7d"}, "cart")
	p := s.e.AddPod(cart(false))
	want := map[string]float64{
		`kube_node_status_allocatable{node="n1",resource="cpu",unit="core"}`:                                                                      64,
		`kube_node_status_allocatable{node="n1",resource="memory",unit="byte"}`:                                                                   256 * 1 << 30,
		`kube_node_status_allocatable{node="n1",resource="pods",unit="integer"}`:                                                                  110,
		`kube_node_status_allocatable{node="n1",resource="nvidia_com_gpu",unit="integer"}`:                                                        8,
		`kube_deployment_spec_replicas{deployment="cart",namespace="shop"}`:                                                                       1,
		`kube_deployment_status_replicas_ready{deployment="cart",namespace="shop"}`:                                                               0,
		`kube_replicaset_owner{namespace="shop",owner_is_controller="true",owner_kind="Deployment",owner_name="cart",replicaset="cart-7d"}`:       1,
		`kube_pod_container_resource_requests{container="app",namespace="shop",node="n1",pod="cart-7d-a",resource="cpu",uid="u1",unit="core"}`:    4,
		`kube_pod_container_resource_requests{container="app",namespace="shop",node="n1",pod="cart-7d-a",resource="memory",uid="u1",unit="byte"}`: 12 * 1 << 30,
		`kube_pod_info{created_by_kind="ReplicaSet",created_by_name="cart-7d",namespace="shop",node="n1",pod="cart-7d-a",uid="u1"}`:               1,
		`kube_pod_owner{namespace="shop",owner_is_controller="true",owner_kind="ReplicaSet",owner_name="cart-7d",pod="cart-7d-a",uid="u1"}`:       1,
		`kube_pod_created{namespace="shop",pod="cart-7d-a",uid="u1"}`:                                                                             1000,
		`kube_pod_status_ready{condition="true",namespace="shop",pod="cart-7d-a",uid="u1"}`:                                                       0,
		`kube_pod_status_ready{condition="false",namespace="shop",pod="cart-7d-a",uid="u1"}`:                                                      1,
		`kube_pod_status_ready{condition="unknown",namespace="shop",pod="cart-7d-a",uid="u1"}`:                                                    0,
		`kube_pod_container_status_restarts_total{container="app",namespace="shop",pod="cart-7d-a",uid="u1"}`:                                     0,
	}
	wantSamples(t, s.read(t, s.e.State), want)

	s.e.SetDeployment(fleet.Name{Namespace: "shop", Name: "cart"}, 1, 1)
	s.e.Started(p, time.Unix(1010, 0))
	s.e.Ready(p, true, time.Unix(1042, 500_000_000))
	want[`kube_deployment_status_replicas_ready{deployment="cart",namespace="shop"}`] = 1
	want[`kube_pod_status_ready{condition="true",namespace="shop",pod="cart-7d-a",uid="u1"}`] = 1
	want[`kube_pod_status_ready{condition="false",namespace="shop",pod="cart-7d-a",uid="u1"}`] = 0
	want[`kube_pod_start_time{namespace="shop",pod="cart-7d-a",uid="u1"}`] = 1010
	want[`kube_pod_status_ready_time{namespace="shop",pod="cart-7d-a",uid="u1"}`] = 1042.5
	wantSamples(t, s.read(t, s.e.State), want)

	s.e.RemovePod(p)
	for name := range s.read(t, s.e.State) {
		if strings.Contains(name, "pod=") {
			t.Errorf("%s outlives its pod", name)
		}
	}
}

func TestCountersAreCumulativeAndThePodsOwn(t *testing.T) {
	s := newScraped()
	p := s.e.AddPod(cart(true))
	s.e.Use(p, 2, Step)
	wantSamples(t, s.read(t, s.e.Usage), nil) // nothing before the container runs
	wantSamples(t, s.read(t, s.e.HTTP), nil)  // nor before the first request
	s.e.Started(p, noon)
	s.e.Use(p, 4, Step)
	cpu := `container_cpu_usage_seconds_total{container="app",cpu="total",namespace="shop",node="n1",pod="cart-7d-a"}`
	memory := `container_memory_working_set_bytes{container="app",namespace="shop",node="n1",pod="cart-7d-a"}`
	wantSamples(t, s.read(t, s.e.Usage), map[string]float64{cpu: 90, memory: 8 << 30})

	l := Latencies{Mean: 0.05}
	for i, b := range measure.Bounds {
		if b >= 0.05 {
			l.UpTo[i] = 0.5
		}
		if b >= 0.1 {
			l.UpTo[i] = 1
		}
	}
	s.e.Serve(p, 100, &l)
	s.e.Serve(p, 100, &l)
	got := s.read(t, s.e.HTTP)
	labels := `http_request_method="GET",http_response_status_code="200",%snamespace="shop",pod="cart-7d-a"}`
	for le, v := range map[string]float64{"0.025": 0, "0.05": 100, "0.1": 200, "10.0": 200, "+Inf": 200} {
		name := "http_server_request_duration_seconds_bucket{" + fmt.Sprintf(labels, fmt.Sprintf("le=%q,", le))
		if g, ok := got[name]; !ok || g != v {
			t.Errorf("%s is %v (there: %v), want %v", name, g, ok, v)
		}
	}
	if got["http_server_request_duration_seconds_count{"+fmt.Sprintf(labels, "")] != 200 || got["http_server_request_duration_seconds_sum{"+fmt.Sprintf(labels, "")] != 10 || len(got) != len(measure.Bounds)+3 {
		t.Errorf("got %v", got)
	}

	// The next pod takes the slot, not the handles and not the counters.
	s.e.RemovePod(p)
	again := s.e.AddPod(cart(true))
	if again != p {
		t.Errorf("the slot %d was not used again, got %d", p, again)
	}
	s.e.Started(again, noon)
	s.e.Use(again, 1, Step)
	if got := s.read(t, s.e.Usage); got[cpu] != 15 {
		t.Errorf("the new pod's counter is %v, want 15", got[cpu])
	}
}

// The history's numbers and those of a run's exports are the same: one service at its static replicas over a few
// minutes.
func TestHistoryAgreesWithTheExporter(t *testing.T) {
	f := testFleet(t, 12, func(s *traces.Source) {
		for i := range s.Load.Values { // constant, so that a minute's jitter is all that differs
			s.Load.Values[i] = 0.7
		}
	})
	s := f.Services[slices.IndexFunc(f.Services, func(s *Service) bool { return s.HTTP && !s.Source.Young })]
	until := traces.ReplayStart()
	h := map[string]float64{}
	for _, r := range s.History(until) {
		if !r.Series.End().Equal(until.Add(time.Minute)) {
			t.Errorf("the last value of %v is stamped %s, want %s", r.Labels, r.Series.End().Add(-time.Minute), until)
		}
		h[r.Labels[0].Value] = r.Series.Values[r.Series.Len()-1]
	}
	o := s.Step(&Queue{}, 0.7*s.Scale, s.Static, Step)
	l := o.Latencies()
	near(t, "cores", h[recordedCPU], o.UsedCores(), 1e-9)
	near(t, "requests", h[recordedLoad], 0.7*s.Scale, 1e-9)
	near(t, "replicas", h[recordedReady], float64(s.Static), 0)
	near(t, "p99", h[recordedP99], l.Quantile(0.99), 1e-9)
}

func TestHistoryKeepsGaps(t *testing.T) {
	f := testFleet(t, 40, nil)
	gaps := 0
	for _, s := range f.Services {
		load := s.Source.History()
		for _, r := range s.History(traces.ReplayStart()) {
			if r.Series.Len() != load.Len() {
				t.Fatalf("%s: %d values of %d minutes", s.Name, r.Series.Len(), load.Len())
			}
			for i, v := range load.Values {
				if gap := v != v; gap != (r.Series.Values[i] != r.Series.Values[i]) && !(r.Labels[0].Value == recordedP99 && v == 0) {
					t.Fatalf("%s: minute %d is %v, its record %v", s.Name, i, v, r.Series.Values[i])
				}
			}
		}
		gaps += load.Len() - load.Known()
		if n := len(s.History(traces.ReplayStart())); s.HTTP && n != 4 || !s.HTTP && n != 2 {
			t.Errorf("%s: %d recorded series", s.Name, n)
		}
	}
	if gaps == 0 {
		t.Error("no trace has a gap, so the test shows nothing")
	}
}

// TestRestartBeginsAgain: a container that starts again has counters at zero, and cAdvisor's series under another id.
func TestRestartBeginsAgain(t *testing.T) {
	s := newScraped()
	p := s.e.AddPod(cart(false))
	s.e.Started(p, noon)
	s.e.Use(p, 2, Step)
	before := s.read(t, s.e.Usage)
	s.e.Restart(p)
	s.e.Use(p, 1, Step)
	after := s.read(t, s.e.Usage)
	for name := range before {
		if _, ok := after[name]; ok {
			t.Errorf("%s goes on after the restart", name)
		}
	}
	for name, v := range after {
		if strings.HasPrefix(name, "container_cpu_usage_seconds_total") && v != Step.Seconds() {
			t.Errorf("%s is %v: want %v", name, v, Step.Seconds())
		}
	}
	s.e.RemovePod(p)
	if left := s.read(t, s.e.Usage); len(left) > 0 || len(s.ended) == 0 {
		t.Errorf("%v outlives its pod", left)
	}
}

func BenchmarkExportStep(b *testing.B) {
	e := NewExporter()
	var refs []PodRef
	for i := range 1200 {
		m := cart(true)
		m.Name.Name = fmt.Sprint("pod-", i)
		ref := e.AddPod(m)
		e.Started(ref, noon)
		e.Ready(ref, true, noon)
		refs = append(refs, ref)
	}
	s := &measure.Station{Cores: 8, CPUSeconds: 0.01, SLO: fleet.Levels(fleet.Latency(0.99, 100*time.Millisecond))}
	o := s.Step(&Queue{}, 0.6*1200*8/s.CPUSeconds, 1200, Step)
	buf := make([]Sample, 0, 60_000)
	b.ResetTimer()
	for range b.N {
		for range 40 {
			_ = o.Latencies()
		}
		l := o.Latencies()
		for _, r := range refs {
			e.Use(r, o.CPU, Step)
			e.Serve(r, o.Served*Step.Seconds()/1200, &l)
		}
		buf = e.State(e.HTTP(e.Usage(buf[:0])))
	}
	b.ReportMetric(float64(len(buf)), "samples/op")
}

func BenchmarkHistory(b *testing.B) {
	s := testFleet(b, 12, nil).Services[9]
	b.ResetTimer()
	for range b.N {
		s.History(traces.ReplayStart())
	}
}
