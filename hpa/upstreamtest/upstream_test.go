package upstreamtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"
	"unsafe"

	autoscaling "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
)

const (
	tolerance      = 0.1
	initialisation = 300 * time.Second
	readiness      = 30 * time.Second
	window         = time.Minute
)

// TestMain draws more inputs than rapid's default of 100: one takes a tenth of a millisecond, and most of the algorithm's corners need several
// coincidences.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("5000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// source is a metrics client that answers from memory.
type source struct {
	pods     metrics.PodMetricsInfo
	external []int64
}

func (s source) GetResourceMetric(context.Context, corev1.ResourceName, string, labels.Selector, string) (metrics.PodMetricsInfo, time.Time, error) {
	if len(s.pods) == 0 {
		return nil, time.Time{}, errors.New("no metrics returned from resource metrics API")
	}
	out := metrics.PodMetricsInfo{} // the calculator changes what it is given
	for name, m := range s.pods {
		out[name] = m
	}
	return out, time.Time{}, nil
}

func (s source) GetRawMetric(string, string, labels.Selector, labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	return nil, time.Time{}, errors.New("not asked for")
}

func (s source) GetObjectMetric(string, string, *autoscaling.CrossVersionObjectReference, labels.Selector) (int64, time.Time, error) {
	return 0, time.Time{}, errors.New("not asked for")
}

func (s source) GetExternalMetric(string, string, labels.Selector) ([]int64, time.Time, error) {
	return s.external, time.Time{}, nil
}

// calculator is upstream's, over the given pods and metrics.
func calculator(t *rapid.T, pods []*corev1.Pod, s source) *podautoscaler.ReplicaCalculator {
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, p := range pods {
		if err := index.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	return podautoscaler.NewReplicaCalculator(s, corelisters.NewPodLister(index), initialisation, readiness)
}

// tolerances fills upstream's struct of two unexported numbers, which has no constructor.
func tolerances(t *rapid.T) podautoscaler.Tolerances {
	var tol podautoscaler.Tolerances
	typ := reflect.TypeFor[podautoscaler.Tolerances]()
	if typ.NumField() != 2 || typ.Field(0).Type.Kind() != reflect.Float64 || typ.Field(1).Type.Kind() != reflect.Float64 {
		t.Fatalf("upstream's Tolerances changed: %v", typ)
	}
	*(*[2]float64)(unsafe.Pointer(&tol)) = [2]float64{tolerance, tolerance}
	return tol
}

// twin is one pod as upstream and as Springtide see it, with its sample; usage is negative where it has none.
type twin struct {
	theirs *corev1.Pod
	ours   fleet.Pod
	usage  int64
	sample time.Time
}

// drawPod draws a pod. Ages keep some seconds away from every limit, since upstream reads the wall clock.
func drawPod(t *rapid.T, i int, now time.Time) twin {
	ages := []time.Duration{10 * time.Second, 45 * time.Second, 2 * time.Minute, 4 * time.Minute, 6 * time.Minute, time.Hour}
	started := now.Add(-rapid.SampledFrom(ages).Draw(t, "started"))
	// The Ready condition changed at the start, within the readiness delay, or later.
	changed := started.Add(rapid.SampledFrom([]time.Duration{0, 5 * time.Second, 20 * time.Second, 35 * time.Second, 90 * time.Second, 3 * time.Minute}).Draw(t, "changed"))
	if changed.After(now) {
		changed = now
	}
	ready := rapid.IntRange(0, 4).Draw(t, "ready") > 0
	phase := rapid.SampledFrom([]corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodFailed}).Draw(t, "phase")
	deleting := rapid.IntRange(0, 9).Draw(t, "deleting") == 0
	request := rapid.SampledFrom([]int64{100, 250, 1000, 1500}).Draw(t, "request")
	tw := twin{usage: -1, sample: now.Add(-rapid.SampledFrom([]time.Duration{5 * time.Second, 50 * time.Second, 100 * time.Second}).Draw(t, "sample"))}
	if rapid.IntRange(0, 4).Draw(t, "measured") > 0 {
		tw.usage = rapid.Int64Range(0, 2*request).Draw(t, "usage")
	}
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	name := fmt.Sprintf("cart-%03d", i)
	start := metav1.NewTime(started)
	tw.theirs = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{"app": "cart"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(request, resource.DecimalSI)}}}}},
		Status: corev1.PodStatus{Phase: phase, StartTime: &start, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(changed)}}},
	}
	if deleting {
		tw.theirs.DeletionTimestamp = &start
	}
	tw.ours = fleet.Pod{
		Name: fleet.Name{Namespace: "shop", Name: name}, Class: fleet.PodOnline, Requests: fleet.Resources{CPU: fleet.MilliCPU(request)},
		Phase: fleet.PodPhase(phase), Ready: ready, CurrentRevision: true, Deleting: deleting, Created: started,
		Started: fleet.KnownAt(started, started), ReadySince: fleet.KnownAt(changed, changed),
	}
	switch rapid.IntRange(0, 14).Draw(t, "told") { // what a node that was just asked to run a pod has not told yet
	case 0:
		tw.theirs.Status.StartTime, tw.ours.Started = nil, fleet.Known[time.Time]{}
	case 1:
		tw.theirs.Status.Conditions, tw.ours.Ready, tw.ours.ReadySince = nil, false, fleet.Known[time.Time]{}
	}
	return tw
}

// ask returns what one reactive part of a sizing asks for.
func ask(t *rapid.T, svc *fleet.Service, live hpa.Live, now time.Time, name string) fleet.Known[int32] {
	o := hpa.Options{Defaults: hpa.Defaults{ImputeFor: 1000 * time.Hour}} // upstream imputes for ever
	tg := hpa.Ask(svc, portrait.Portrait{Signal: portrait.CPU}, forecast.Tide{}, live, now, o).Within(hpa.Bounds{})
	for i := range tg.Parts {
		if p := &tg.Parts[i]; p.String() == name {
			return p.Replicas
		}
	}
	t.Fatalf("no part %s in %+v", name, tg.Parts)
	return fleet.Known[int32]{}
}

func TestCPUAsUpstream(t *testing.T) {
	selector := labels.SelectorFromSet(labels.Set{"app": "cart"})
	agreed, moved, held := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		n := rapid.IntRange(1, 12).Draw(t, "pods")
		current := rapid.Int32Range(1, 15).Draw(t, "current")
		target := rapid.Int32Range(5, 200).Draw(t, "target")
		svc := &fleet.Service{TargetFound: true, Desired: fleet.KnownAt(current, now),
			Metrics: []fleet.Metric{{Name: "cpu", Type: fleet.MetricCPU, Target: float64(target) / 100}}}
		live := hpa.Live{CPU: map[fleet.Name]fleet.Known[fleet.MilliCPU]{}}
		s := source{pods: metrics.PodMetricsInfo{}}
		var pods []*corev1.Pod
		for i := range n {
			tw := drawPod(t, i, now)
			pods, svc.Pods = append(pods, tw.theirs), append(svc.Pods, tw.ours)
			if tw.usage >= 0 {
				live.CPU[tw.ours.Name] = fleet.KnownAt(fleet.MilliCPU(tw.usage), tw.sample)
				s.pods[tw.theirs.Name] = metrics.PodMetric{Timestamp: tw.sample, Window: window, Value: tw.usage}
			}
		}
		want, percent, _, _, err := calculator(t, pods, s).GetResourceReplicas(context.Background(), current, target, corev1.ResourceCPU,
			tolerances(t), "shop", selector, "")
		got := ask(t, svc, live, now, "reactive:cpu")
		if err != nil {
			if got.OK {
				t.Fatalf("upstream cannot judge (%v), and the part asks for %d", err, got.Value)
			}
			return
		}
		if percent > target && want < current {
			want = current // the one difference: usage above its target never asks for fewer
			held++
		}
		if !got.OK || got.Value != want {
			t.Fatalf("the part asks for %+v, upstream for %d (at %d%% of %d%%)", got, want, percent, target)
		}
		agreed++
		if want != current {
			moved++
		}
	})
	t.Logf("%d agreed, %d of them on a change; %d times usage above its target asked upstream for fewer", agreed, moved, held)
	if moved == 0 {
		t.Error("no input asked for a change: the comparison says nothing")
	}
}

func TestValuePerReplicaAsUpstream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		current := rapid.Int32Range(1, 100).Draw(t, "current")
		target := rapid.Int64Range(1, 100_000).Draw(t, "target in thousandths")
		value := rapid.Int64Range(0, 10_000_000).Draw(t, "value in thousandths")
		if rapid.Bool().Draw(t, "exact") {
			value = target * rapid.Int64Range(0, 200).Draw(t, "times") // the edges of rounding up
		}
		want, _, _, err := calculator(t, nil, source{external: []int64{value}}).GetExternalPerPodMetricReplicas(current, target, "queue",
			tolerances(t), "shop", &metav1.LabelSelector{})
		if err != nil {
			t.Fatal(err)
		}
		svc := &fleet.Service{TargetFound: true, Desired: fleet.KnownAt(current, now),
			Metrics: []fleet.Metric{{Name: "queue", Type: fleet.MetricQuery, Target: float64(target) / 1000}}}
		live := hpa.Live{Signals: map[string]fleet.Known[float64]{"queue": fleet.KnownAt(float64(value)/1000, now)}}
		if got := ask(t, svc, live, now, "reactive:queue"); !got.OK || got.Value != want {
			t.Fatalf("%d/1000 at %d/1000 a replica of %d: the part asks for %+v, upstream for %d", value, target, current, got, want)
		}
	})
}
