package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/plane/planetest"
	"github.com/springtide/springtide/lab/world"
)

// watcher sees what the API says at each step of the world, and what must never be seen.
type watcher struct {
	t    *testing.T
	core kubernetes.Interface
	dyn  dynamic.Interface

	// loans are the newest states of every loan that was ever seen, shares those of the last look.
	loans  map[string]v1alpha1.Loan
	shares []v1alpha1.NodeShare

	// planted are findings of the judge that a test itself causes, each with its reason.
	planted []planted

	mu      sync.Mutex
	evicted []string // online pods that were disrupted
}

// planted is a finding that a test causes: a rule, part of the object's name, and why it is so. One that must be found fails the test when it is not.
type planted struct {
	rule, object, why string
	must, found       bool
}

// plants says that the judge may find what the test does: the API server may refuse it.
func (s *watcher) plants(rule, object, why string) {
	s.planted = append(s.planted, planted{rule: rule, object: object, why: why})
}

// expects says that the judge has to find what the test does.
func (s *watcher) expects(rule, object, why string) {
	s.planted = append(s.planted, planted{rule: rule, object: object, why: why, must: true})
}

// judged ends the judge and fails the test for each broken promise that the test did not cause.
func (s *watcher) judged(w *world.World) {
	s.t.Helper()
	r, err := w.Judge()
	if err != nil {
		s.t.Error(err)
	}
	if r == nil {
		s.t.Error("no judge followed the run")
		return
	}
	s.t.Log("judge: " + r.Line())
	for _, f := range r.Findings {
		if i := slices.IndexFunc(s.planted, func(p planted) bool { return p.rule == f.Rule && strings.Contains(f.Object, p.object) }); i >= 0 {
			s.t.Logf("judge, as played (%s): %s", s.planted[i].why, f)
			s.planted[i].found = true
			continue
		}
		s.t.Errorf("judge: %s", f)
	}
	for _, p := range s.planted {
		if p.must && !p.found {
			s.t.Errorf("the judge did not find that promise %s was broken for %s: %s", p.rule, p.object, p.why)
		}
	}
}

// play starts a world, calls each after every step until it says stop or the world ends, and closes the world with the test.
func play(t *testing.T, o world.Options, each func(w *world.World, s *watcher) (stop bool)) (*world.World, *watcher) {
	t.Helper()
	if testing.Short() {
		t.Skip("plays the lab")
	}
	lab, kwok := planetest.Binaries(t)
	o.Plane.KWOKBinary = kwok
	if o.Plane.LabBinary == "" {
		o.Plane.LabBinary = lab
	}
	o.Springtide = springtide(t)
	o.Dir, o.Keep = t.TempDir(), true
	if o.Speed == 0 {
		o.Speed = 1e6 // as fast as it goes
	}
	o.Progress = func(line string) { t.Log(line) }
	ctx, cancel := context.WithCancel(t.Context())
	var s *watcher
	stopped := false
	o.OnStep = func(w *world.World) {
		if stopped || s == nil {
			return
		}
		if !slices.ContainsFunc(w.Down(), func(d world.Target) bool { return d == world.APIServer || d == world.Etcd }) {
			s.look() // a list waits for a minute where the API server has no etcd
		}
		if each != nil && each(w, s) {
			stopped = true
			cancel()
		}
	}
	w, err := world.New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			logs(t, w)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	s = watch(t, w)
	_, err = w.Run(ctx)
	s.judged(w)
	if err != nil && !stopped {
		t.Fatal(err)
	}
	return w, s
}

func watch(t *testing.T, w *world.World) *watcher {
	t.Helper()
	cfg := w.Plane().RESTConfig()
	s := &watcher{t: t, core: kubernetes.NewForConfigOrDie(cfg), dyn: dynamic.NewForConfigOrDie(cfg), loans: map[string]v1alpha1.Loan{}}
	factory := informers.NewSharedInformerFactory(s.core, 0)
	pods := factory.Core().V1().Pods().Informer()
	check := func(obj any) {
		p, ok := obj.(*corev1.Pod)
		if !ok || len(p.OwnerReferences) == 0 || p.OwnerReferences[0].Kind != "ReplicaSet" {
			return
		}
		if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget }) {
			s.mu.Lock()
			s.evicted = append(s.evicted, p.Namespace+"/"+p.Name)
			s.mu.Unlock()
		}
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: check, UpdateFunc: func(_, o any) { check(o) }, DeleteFunc: check}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	factory.Start(done)
	t.Cleanup(func() { close(done); factory.Shutdown() })
	return s
}

// look reads loans and shares, and checks what must hold at every moment.
func (s *watcher) look() {
	s.t.Helper()
	now := list[v1alpha1.Loan](s, "loans")
	s.shares = list[v1alpha1.NodeShare](s, "nodeshares")
	alive := map[string]v1alpha1.Loan{}
	for _, l := range now {
		s.loans[l.Name] = l
		alive[string(l.UID)] = l
	}
	for _, share := range s.shares {
		holder := map[int32]string{}
		for _, p := range share.Spec.Parcels {
			for _, c := range p.Cells {
				if other, taken := holder[c]; taken {
					s.t.Errorf("cell %d of %s is in two parcels' hands: %s and %s", c, share.Name, other, p.LoanName)
				}
				holder[c] = p.LoanName
			}
			l, ok := alive[p.LoanUID]
			if ok && p.Epoch < l.Status.Epoch {
				s.t.Errorf("the share of %s is behind its loan: epoch %d, the loan's is %d", share.Name, p.Epoch, l.Status.Epoch)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.evicted {
		s.t.Errorf("online pod %s was disrupted", p)
	}
	s.evicted = nil
}

// phases is the order in which a loan went through its phases.
func phases(l *v1alpha1.Loan) string {
	var out []string
	for _, h := range l.Status.History {
		if len(out) == 0 || out[len(out)-1] != h.Phase {
			out = append(out, h.Phase)
		}
	}
	return strings.Join(out, " ")
}

// returned lists the loans of a kind that went all the way, by name.
func (s *watcher) returned(kind string) []v1alpha1.Loan {
	var out []v1alpha1.Loan
	for _, l := range s.loans {
		if l.Spec.Kind == kind && phases(&l) == "Emptying Lent Noticed Draining Returned" {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.Loan) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// in counts the loans that were last seen in a phase.
func (s *watcher) in(phase string) int {
	n := 0
	for _, l := range s.loans {
		if l.Status.Phase == phase {
			n++
		}
	}
	return n
}

func list[T any](s *watcher, resource string) []T {
	s.t.Helper()
	got, err := s.dyn.Resource(v1alpha1.GroupVersion.WithResource(resource)).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil // the API server may be down on purpose; what is not seen is not judged
	}
	out := make([]T, len(got.Items))
	for i := range got.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Items[i].Object, &out[i]); err != nil {
			s.t.Fatal(err)
		}
	}
	return out
}

// service reads one ElasticService.
func (s *watcher) services() []v1alpha1.ElasticService {
	return list[v1alpha1.ElasticService](s, "elasticservices")
}

// apply creates one of our objects.
func (s *watcher) apply(resource string, obj any) {
	s.t.Helper()
	b, err := json.Marshal(obj)
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = s.dyn.Resource(v1alpha1.GroupVersion.WithResource(resource)).
		Create(context.Background(), decodeObject(s.t, b), metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}

// festival asks for the given replicas of every service from now on for a while.
func festival(name string, from time.Time, d time.Duration, services []v1alpha1.ElasticService, factor float64) *v1alpha1.FestivalPlan {
	p := &v1alpha1.FestivalPlan{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FestivalPlan"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.FestivalPlanSpec{TimeZone: "UTC", Approved: true, Phases: []v1alpha1.FestivalPhase{{Name: "peak"}},
			When: v1alpha1.FestivalWhen{From: from.UTC().Format("2006-01-02T15:04"),
				To: from.Add(d).UTC().Format("2006-01-02T15:04")}},
	}
	for i := range services {
		floor := min(int32(float64(services[i].Spec.Replicas.Max)*factor), services[i].Spec.Replicas.Max)
		p.Spec.Phases[0].Lifts = append(p.Spec.Phases[0].Lifts,
			v1alpha1.FestivalLift{Namespace: services[i].Namespace, Service: services[i].Name, Replicas: &floor})
	}
	return p
}

func (s *watcher) summary() string {
	count := map[string]int{}
	for _, l := range s.loans {
		count[l.Status.Phase]++
	}
	return fmt.Sprint(count)
}
