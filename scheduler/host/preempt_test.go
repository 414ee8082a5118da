package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/host/bind"
	"github.com/springtide/springtide/scheduler/host/queue"
)

// taken keeps the pods that are evicted, in order.
func (p *play) taken() *[]string {
	var out []string
	p.c.preempt.evict = func(o *corev1.Pod, answered func(error)) { out = append(out, o.Name); answered(nil) }
	return &out
}

// runs places a pod and plays that it is bound.
func (p *play) runs(name, cpu, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	p.t.Helper()
	o := p.pod(name, cpu, change...)
	p.settle()
	if got := p.take()[name]; got != node {
		p.t.Fatalf("%s is on %q, want %s", name, got, node)
	}
	return p.bound(o, node)
}

func owned(kind, name string) func(*corev1.Pod) {
	yes := true
	return func(o *corev1.Pod) {
		o.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &yes}}
	}
}

// freeze freezes all, or thaws it with an empty reason.
func (p *play) freeze(why string) {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.c.c.Namespace}}
	if why != "" {
		n.Annotations = map[string]string{v1alpha1.AnnotationFreeze: why}
	}
	p.c.setNamespace(n)
}

// TestPreemptionIsCharged: no victim is evicted before the ledger of its pool counts all of them, and what the ledger holds back is not evicted.
func TestPreemptionIsCharged(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
	p.node("a", "4")
	p.runs("low-1", "2", "a", online(1))
	p.runs("low-2", "2", "a", online(1))
	var owed []charge
	var answer func(error)
	p.c.preempt.charge = func(x []charge, f func(error)) { owed, answer = append(owed, x...), f }
	nominated, say := "", p.c.say
	p.c.say = func(v verdict) { nominated = v.nominated; say(v) }
	high := p.pod("high", "4", online(10))
	p.settle()
	want := []charge{{pool: "web", owner: "pod default/low-1", of: 1, all: 2, at: p.now}, {pool: "web", owner: "pod default/low-2", of: 1, all: 2, at: p.now}}
	if !slices.Equal(owed, want) || len(*evicted) != 0 {
		t.Fatalf("charged %v and evicted %v, want the charge alone", owed, *evicted)
	}
	p.c.preempt.expire(p.c, p.now)
	if len(owed) != 2 {
		t.Fatalf("charged %v again before the ledger answered", owed)
	}
	answer(errors.New("held back by the disruption ledger of pool web: 1 pods a minute"))
	if got := p.said[high.UID]; len(*evicted) != 0 || got != "waits to take room on node a: held back by the disruption ledger of pool web: 1 pods a minute" {
		t.Fatalf("evicted %v, and the message is %q", *evicted, got)
	}
	if nominated != "a" {
		t.Errorf("while the ledger holds its victims back the pod is nominated for %q, want the node that it holds", nominated)
	}
	p.now = p.now.Add(2 * askAgain)
	p.c.preempt.expire(p.c, p.now)
	answer(nil)
	if len(*evicted) != 2 || len(owed) != 4 {
		t.Errorf("charged %v and evicted %v once the ledger allows it", owed, *evicted)
	}
}

// TestChargeThatComesTooLate: where the pod is gone when the ledger answers, no victim is evicted for it, and the victims can be taken again.
func TestChargeThatComesTooLate(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
	p.node("a", "4")
	p.runs("low", "4", "a", online(1))
	var answer func(error)
	p.c.preempt.charge = func(_ []charge, f func(error)) { answer = f }
	high := p.pod("high", "4", online(10))
	p.settle()
	p.c.podGone(high.UID)
	answer(nil)
	if len(*evicted) != 0 {
		t.Fatalf("evicted %v for a pod that is gone", *evicted)
	}
	p.pod("next", "4", online(10))
	p.settle()
	answer(nil)
	if !slices.Equal(*evicted, []string{"low"}) {
		t.Errorf("evicted %v for the next pod", *evicted)
	}
}

// TestPreemptionIsGivenUp: after some minutes of refusals the pod gives its room up, and a later try takes the same victim.
func TestPreemptionIsGivenUp(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
	p.node("a", "4")
	p.runs("low", "4", "a", online(1))
	held := errors.New("held back by the disruption ledger of pool web")
	p.c.preempt.charge = func(_ []charge, f func(error)) { f(held) }
	high := p.pod("high", "4", online(10))
	p.settle()
	for end := p.now.Add(refusals); p.now.Before(end); {
		p.now = p.now.Add(askAgain)
		p.c.preempt.expire(p.c, p.now)
	}
	if got := p.c.pods[high.UID].stage; got != waits || len(*evicted) != 0 {
		t.Fatalf("after %s of refusals the stage is %v, evicted %v", refusals, got, *evicted)
	}
	held = nil
	p.now = p.now.Add(time.Minute) // beyond its back-off
	p.settle()
	if !slices.Equal(*evicted, []string{"low"}) {
		t.Errorf("evicted %v once the ledger allows it", *evicted)
	}
}

// TestARefusedVictimIsPassedOver: the API server refuses to evict the cheapest victim. Another victim is taken at once, the first is asked once (160 times in
// 13 minutes while nothing was remembered), and its charge is returned.
func TestARefusedVictimIsPassedOver(t *testing.T) {
	for name, err := range map[string]error{
		"two budgets": answerOf(500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."),
		"a webhook":   answerOf(403, `admission webhook "guard.example.com" denied the request: keep it`),
		"no right":    answerOf(403, `pods "first" is forbidden: User "a" cannot create resource "pods/eviction" in API group "" in the namespace "default"`),
		"a budget":    answerOf(429, "Cannot evict pod as it would violate the pod's disruption budget."),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			var asked []string
			p.c.preempt.evict = func(o *corev1.Pod, answered func(error)) {
				if asked = append(asked, o.Name); o.Name == "first" {
					answered(err)
					return
				}
				answered(nil)
			}
			owed := map[string]int{}
			count := func(all []charge, n int) {
				for _, x := range all {
					owed[x.owner] += n
				}
			}
			p.c.preempt.charge = func(all []charge, f func(error)) { count(all, 1); f(nil) }
			p.c.preempt.uncharge = func(all []charge) { count(all, -1) }
			p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
			p.node("a", "4")
			first := p.runs("first", "4", "a", online(1))
			p.node("b", "4")
			second := p.runs("second", "4", "b", online(2))
			high := p.pod("high", "4", online(10))
			p.settle()
			p.seconds(60)
			if !slices.Equal(asked, []string{"first", "second"}) {
				t.Fatalf("asked for %v within a minute, want the first once and then the second", asked)
			}
			if owed["pod "+first.Namespace+"/first"] != 0 || owed["pod "+first.Namespace+"/second"] != 1 {
				t.Errorf("charged are %v, want what was evicted", owed)
			}
			p.c.podGone(second.UID)
			p.settle()
			if got := p.take()[high.Name]; got != "b" {
				t.Errorf("the pod is on %q, want b", got)
			}
		})
	}
}

func answerOf(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

// seconds lets time pass.
func (p *play) seconds(n int) {
	for range n {
		p.now = p.now.Add(time.Second)
		p.c.preempt.expire(p.c, p.now)
		p.settle()
	}
}

// TestARefusedVictimAlone: where no other victim is there, the pod waits and asks seldom, and a budget that gains room ends the wait.
func TestARefusedVictimAlone(t *testing.T) {
	p := newPlay(t)
	tries, open := 0, false
	p.c.preempt.evict = func(_ *corev1.Pod, answered func(error)) {
		if tries++; open {
			answered(nil)
			return
		}
		answered(answerOf(429, "Cannot evict pod as it would violate the pod's disruption budget."))
	}
	p.node("a", "4")
	low := p.runs("low", "4", "a", online(1))
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: low.Namespace, Name: "keep"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
	p.c.setBudget(budget)
	p.pod("high", "4", online(10))
	p.settle()
	p.seconds(600)
	t.Logf("asked %d times in ten minutes", tries)
	if tries == 0 || tries > 10 {
		t.Errorf("asked %d times in ten minutes, want 1 to 10", tries)
	}
	open = true
	was := tries
	budget = budget.DeepCopy()
	budget.Status.DisruptionsAllowed = 1
	p.c.setBudget(budget)
	if p.seconds(20); tries != was+1 {
		t.Errorf("asked %d times within 20 s of a budget that gained room, want once", tries-was)
	}
}

// TestNoVictimIsLostForARefusal: of several victims those that budgets protect are asked first, one at a time: where one is refused no other is evicted.
func TestNoVictimIsLostForARefusal(t *testing.T) {
	p := newPlay(t)
	var asked []string
	p.c.preempt.evict = func(o *corev1.Pod, answered func(error)) {
		if asked = append(asked, o.Name); o.Name == "kept" {
			answered(answerOf(403, `admission webhook "guard.example.com" denied the request: keep it`))
			return
		}
		answered(nil)
	}
	owed := 0
	p.c.preempt.charge = func(all []charge, f func(error)) { owed += len(all); f(nil) }
	p.c.preempt.uncharge = func(all []charge) { owed -= len(all) }
	p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
	p.node("a", "4")
	free := p.runs("free-1", "1", "a", online(1))
	p.c.setBudget(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: free.Namespace, Name: "keep"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"keep": "yes"}}}, Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1}})
	p.runs("kept", "1", "a", online(1), func(o *corev1.Pod) { o.Labels = map[string]string{"keep": "yes"} })
	p.runs("free-2", "2", "a", online(1))
	p.pod("high", "4", online(10))
	p.settle()
	if !slices.Equal(asked, []string{"kept"}) || owed != 0 {
		t.Errorf("asked for %v and charged %d, want the refused one alone and no charge", asked, owed)
	}
}

// TestLongNotice: a notice may be longer than the time for which refusals are waited out.
func TestLongNotice(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	job := &v1alpha1.ElasticJob{}
	job.Spec.Checkpoint = &v1alpha1.Checkpoint{Seconds: 3600}
	job.Spec.Members = []v1alpha1.JobMember{{Role: "worker", Min: 1, Max: 1, WorkloadRef: v1alpha1.TargetRef{Kind: "Job", Name: "train"}}}
	p.c.setJob("default/train", job)
	p.node("a", "4")
	p.runs("low", "3", "a", online(1), owned("Job", "train"))
	p.pod("high", "3", online(10))
	p.settle()
	p.now = p.now.Add(59 * time.Minute)
	p.c.preempt.expire(p.c, p.now)
	p.settle()
	if len(*evicted) != 0 {
		t.Fatalf("evicted %v before its notice is over", *evicted)
	}
	p.now = p.now.Add(time.Minute)
	p.c.preempt.expire(p.c, p.now)
	if !slices.Equal(*evicted, []string{"low"}) {
		t.Errorf("evicted %v after its notice", *evicted)
	}
}

// TestSpend: the charge goes into the counts that the controller reads, and a bound of the budget refuses all of it.
func TestSpend(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pool := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "web"},
			"spec": map[string]any{"disruptions": map[string]any{"evictionsPerMinute": int64(3), "servicePercent": int64(50), "fleetPercent": int64(100)}}}}
	}
	u := pool()
	if err := spend(u, []charge{{pool: "web", owner: "service shop/cart", of: 4, all: 10}, {pool: "web", owner: "service shop/cart", of: 4, all: 10}}, now); err != nil {
		t.Fatal(err)
	}
	got, _, _ := unstructured.NestedInt64(u.Object, "status", "disruptions", "evictions")
	if f, ok, _ := unstructured.NestedFloat64(u.Object, "status", "disruptions", "evictions"); ok {
		got = int64(f)
	}
	if got != 2 {
		t.Errorf("the ledger counts %d evictions in %v", got, u.Object["status"])
	}
	if err := spend(u, []charge{{pool: "web", owner: "service shop/blog", of: 9, all: 10}, {pool: "web", owner: "service shop/blog", of: 9, all: 10}}, now); err == nil || !strings.Contains(err.Error(), "3 pods a minute") {
		t.Errorf("4 pods in a minute of at most 3: %v", err)
	}
	if err := spend(pool(), []charge{{pool: "web", owner: "job train/bert", of: 2, all: 10}, {pool: "web", owner: "job train/bert", of: 2, all: 10}}, now); err == nil || !strings.Contains(err.Error(), "50 % of one service") {
		t.Errorf("all pods of a job at once: %v", err)
	}
}

// TestPreemptionGivesNotice: a pod of a job that asks for it may save its work first, its answer shortens the wait, and a freeze holds the eviction until
// the notice was given again.
func TestPreemptionGivesNotice(t *testing.T) {
	p := newPlay(t)
	p.c.c.Namespace = "springtide-system"
	evicted := p.taken()
	var notices []time.Time
	p.c.preempt.notice = func(_ *corev1.Pod, deadline time.Time) { notices = append(notices, deadline) }
	job := &v1alpha1.ElasticJob{}
	job.Spec.Checkpoint = &v1alpha1.Checkpoint{Seconds: 120}
	job.Spec.Members = []v1alpha1.JobMember{{Role: "worker", Min: 1, Max: 1, WorkloadRef: v1alpha1.TargetRef{Kind: "Job", Name: "train"}}}
	p.c.setJob("default/train", job)
	p.node("a", "4")
	low := p.runs("low", "3", "a", online(1), owned("Job", "train"))
	p.pod("high", "3", online(10))
	p.settle()
	if len(*evicted) != 0 || len(notices) != 1 || !notices[0].Equal(p.now.Add(2*time.Minute)) {
		t.Fatalf("evicted %v, notices %v: want two minutes to save its work", *evicted, notices)
	}
	p.freeze("festival")
	p.now = p.now.Add(3 * time.Minute)
	p.c.preempt.expire(p.c, p.now)
	if len(*evicted) != 0 {
		t.Fatalf("evicted %v under a freeze", *evicted)
	}
	p.freeze("")
	if len(*evicted) != 0 || len(notices) != 2 || !notices[1].Equal(p.now.Add(2*time.Minute)) {
		t.Fatalf("evicted %v, notices %v: want a notice again after the thaw", *evicted, notices)
	}
	acked := low.DeepCopy()
	acked.ResourceVersion += "2"
	for _, old := range []int64{1, noticeEpoch(notices[0])} {
		acked.Annotations = answers(old)
		p.c.podChanged(acked.DeepCopy())
		p.c.preempt.expire(p.c, p.now)
		if len(*evicted) != 0 {
			t.Fatalf("evicted %v after its answer to another notice (%d)", *evicted, old)
		}
	}
	acked.Annotations = answers(noticeEpoch(notices[1]))
	p.c.podChanged(acked)
	p.c.preempt.expire(p.c, p.now)
	if !slices.Equal(*evicted, []string{"low"}) {
		t.Errorf("evicted %v after its answer", *evicted)
	}
}

// answers are the annotations of a pod that answered the notice of a preemption.
func answers(epoch int64) map[string]string {
	return map[string]string{v1alpha1.AnnotationNotice: fmt.Sprintf(`{"loan":"preemption","epoch":%d}`, epoch), v1alpha1.AnnotationAck: fmt.Sprint(epoch)}
}

// TestAnAnswerIsToOneNotice: a pod that answered the notice of a preemption of which nothing came has its time again at the next one.
func TestAnAnswerIsToOneNotice(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	job := &v1alpha1.ElasticJob{}
	job.Spec.Checkpoint = &v1alpha1.Checkpoint{Seconds: 120}
	job.Spec.Members = []v1alpha1.JobMember{{Role: "worker", Min: 1, Max: 1, WorkloadRef: v1alpha1.TargetRef{Kind: "Job", Name: "train"}}}
	p.c.setJob("default/train", job)
	p.node("a", "4")
	p.runs("low", "3", "a", online(1), owned("Job", "train"))
	p.pod("first", "3", online(10))
	p.settle()
	p.changed("low", func(o *corev1.Pod) { o.Annotations = answers(noticeEpoch(p.now.Add(2 * time.Minute))) })
	p.c.podGone("pod-first") // before the answer was seen
	p.now = p.now.Add(time.Hour)
	p.pod("second", "3", online(10))
	p.settle()
	p.seconds(119)
	if len(*evicted) != 0 {
		t.Fatalf("evicted %v by an answer of an hour ago", *evicted)
	}
	p.seconds(2)
	if !slices.Equal(*evicted, []string{"low"}) {
		t.Errorf("evicted %v after two minutes", *evicted)
	}
}

// TestGangPreempts: a gang takes room for all of its pods or for none, and is bound when all of its victims are gone.
func TestGangPreempts(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	p.node("a", "4")
	p.node("b", "4")
	first := p.runs("low-1", "3", "a", online(1))
	second := p.runs("low-2", "3", "b", online(1))
	for _, g := range []string{"ring", "large"} {
		p.c.setGroup("default/"+g, &podGroup{namespace: "default", name: g, minCount: map[string]int{"ring": 2, "large": 3}[g]})
	}
	for i := range 3 {
		p.pod(fmt.Sprint("l", i), "3", inGroup("large"), online(10))
	}
	p.settle()
	if len(*evicted) != 0 {
		t.Fatalf("evicted %v for a gang of three that two nodes never hold", *evicted)
	}
	p.pod("g0", "3", inGroup("ring"), online(10))
	p.pod("g1", "3", inGroup("ring"), online(10))
	p.settle()
	slices.Sort(*evicted)
	if !slices.Equal(*evicted, []string{"low-1", "low-2"}) {
		t.Fatalf("evicted %v", *evicted)
	}
	p.c.podGone(first.UID)
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v before the second victim is gone", got)
	}
	p.c.podGone(second.UID)
	p.settle()
	if got := p.take(); len(got) != 2 || got["g0"] == got["g1"] {
		t.Errorf("bound %v", got)
	}
}

// TestGangPreemptsInOneDomain: of the domains that help the one with the fewest victims is taken.
func TestGangPreemptsInOneDomain(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	for _, n := range []string{"a1", "a2", "b1", "b2"} {
		p.node(n, "4", func(o *corev1.Node) { o.Labels["rack"] = n[:1] })
	}
	for _, n := range []string{"a1", "a2", "b1"} {
		p.runs("low-"+n, "3", n, online(1), on(n))
	}
	p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2, topologyKey: "rack"})
	p.pod("g0", "3", inGroup("ring"), online(10))
	p.pod("g1", "3", inGroup("ring"), online(10))
	p.settle()
	if !slices.Equal(*evicted, []string{"low-b1"}) {
		t.Fatalf("evicted %v, want the one pod of rack b", *evicted)
	}
	p.c.podGone("pod-low-b1")
	p.settle()
	if got := p.take(); got["g0"][:1] != "b" || got["g1"][:1] != "b" {
		t.Errorf("bound %v, want both in rack b", got)
	}
}

// TestAGangGoesWhole: where too few pods of a gang would stay all of them go.
func TestAGangGoesWhole(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	p.node("a", "4")
	p.node("b", "4")
	p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
	one, two := p.pod("g0", "3", inGroup("ring"), online(1)), p.pod("g1", "3", inGroup("ring"), online(1))
	p.settle()
	at := p.take()
	p.bound(one, at["g0"])
	p.bound(two, at["g1"])
	p.pod("high", "3", online(10))
	p.settle()
	slices.Sort(*evicted)
	if !slices.Equal(*evicted, []string{"g0", "g1"}) {
		t.Errorf("evicted %v, want the gang as a whole", *evicted)
	}
}

// TestANominatedGangThatLosesAPod takes its decision back, so that half of it does not start.
func TestANominatedGangThatLosesAPod(t *testing.T) {
	p := newPlay(t)
	p.taken()
	p.node("a", "4")
	p.node("b", "4")
	p.runs("low-1", "3", "a", online(1))
	p.runs("low-2", "3", "b", online(1))
	p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
	gone := p.pod("g0", "3", inGroup("ring"), online(10))
	p.pod("g1", "3", inGroup("ring"), online(10))
	p.settle()
	p.c.podGone(gone.UID)
	p.c.podGone("pod-low-1")
	p.c.podGone("pod-low-2")
	p.now = p.now.Add(time.Minute)
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Errorf("bound %v of a gang that lost a pod", got)
	}
}

// TestAGangThatLostOneGoesWhole: once a member of a gang was evicted, what is left of it is of no use, whatever becomes of the pod that it was evicted for. A
// member may be gone before the answer to its eviction is there, and the room with it be free.
func TestAGangThatLostOneGoesWhole(t *testing.T) {
	refused := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	for name, c := range map[string]struct {
		play func(p *play, first *corev1.Pod, answer func(error), high *corev1.Pod)
		want int
	}{
		"the answer comes first": {func(p *play, first *corev1.Pod, answer func(error), _ *corev1.Pod) {
			answer(nil)
			p.c.podGone(first.UID)
		}, 2},
		"the pod is gone first": {func(p *play, first *corev1.Pod, answer func(error), _ *corev1.Pod) {
			p.c.podGone(first.UID)
			p.settle()
			answer(nil)
		}, 2},
		"room comes elsewhere": {func(p *play, first *corev1.Pod, answer func(error), _ *corev1.Pod) {
			answer(nil)
			p.node("c", "4")
			p.settle()
		}, 2},
		"the pod is gone, and the one that waits is decided before the answer": {func(p *play, first *corev1.Pod, answer func(error), high *corev1.Pod) {
			p.c.podGone(first.UID)
			p.c.queue.Again(queue.Key(high.UID))
			p.settle()
			answer(nil)
		}, 2},
		"the pod that waits goes before the answer": {func(p *play, _ *corev1.Pod, answer func(error), high *corev1.Pod) {
			p.c.podGone(high.UID)
			p.settle()
			answer(nil)
		}, 2},
		"the pod that waits goes after the answer": {func(p *play, first *corev1.Pod, answer func(error), high *corev1.Pod) {
			p.c.podGone(first.UID)
			p.c.podGone(high.UID)
			p.settle()
			answer(nil)
		}, 2},
		"the pod that waits goes, and the eviction is refused": {func(p *play, _ *corev1.Pod, answer func(error), high *corev1.Pod) {
			p.c.podGone(high.UID)
			p.settle()
			answer(refused)
		}, 1},
		"room comes elsewhere, and the eviction is refused": {func(p *play, _ *corev1.Pod, answer func(error), _ *corev1.Pod) {
			p.node("c", "4")
			p.settle()
			answer(refused)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			var asked []*corev1.Pod
			var answers []func(error)
			p.c.preempt.evict = func(o *corev1.Pod, answered func(error)) {
				asked, answers = append(asked, o), append(answers, answered)
			}
			p.node("a", "4")
			p.node("b", "4")
			p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
			one, two := p.pod("g0", "3", inGroup("ring"), online(1)), p.pod("g1", "3", inGroup("ring"), online(1))
			p.settle()
			at := p.take()
			p.bound(one, at["g0"])
			p.bound(two, at["g1"])
			high := p.pod("high", "3", online(10))
			p.settle()
			if len(asked) != 1 {
				t.Fatalf("asked for %d evictions at first, want one", len(asked))
			}
			c.play(p, asked[0], answers[0], high)
			p.settle()
			if len(asked) != c.want {
				t.Fatalf("asked for %d evictions, want %d", len(asked), c.want)
			}
			if c.want == 2 {
				answers[1](nil)
				p.c.podGone(asked[0].UID)
				p.c.podGone(asked[1].UID)
			}
			p.settle()
			if at := p.take()["high"]; at == "" && p.c.pods[high.UID] != nil && c.want == 2 {
				t.Error("high is not bound")
			}
			p.now = p.now.Add(10 * time.Minute)
			p.c.tick(p.now)
			p.settle()
			if x := p.c.preempt; len(asked) != c.want || len(x.takenBy) != 0 || len(x.rollbacks) != 0 {
				t.Errorf("at the end %d were asked for, %d are to go, %d gangs roll back", len(asked), len(x.takenBy), len(x.rollbacks))
			}
		})
	}
}

// TestAGangIsRefused: a gang of which the first eviction is refused stays whole. Where only a later one is refused, it is asked for again for some minutes, and then
// what is left stays.
func TestAGangIsRefused(t *testing.T) {
	refused := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	for name, c := range map[string]struct {
		refused map[string]bool
		evicted []string
	}{
		"the first":  {map[string]bool{"g0": true}, nil},
		"the second": {map[string]bool{"g1": true}, []string{"g0"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			var evicted []string
			asked := 0
			p.c.preempt.evict = func(o *corev1.Pod, answered func(error)) {
				if asked++; c.refused[o.Name] {
					answered(refused)
					return
				}
				evicted = append(evicted, o.Name)
				answered(nil)
				p.c.podGone(o.UID)
			}
			p.node("a", "4")
			p.node("b", "4")
			p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
			one, two := p.pod("g0", "3", inGroup("ring"), online(1)), p.pod("g1", "3", inGroup("ring"), online(1))
			p.settle()
			at := p.take()
			p.bound(one, at["g0"])
			p.bound(two, at["g1"])
			high := p.pod("high", "3", online(10))
			p.settle()
			p.c.podGone(high.UID) // no pod wants the room any more
			for range 30 {
				p.now = p.now.Add(time.Minute)
				p.c.tick(p.now)
				p.settle()
			}
			if !slices.Equal(evicted, c.evicted) {
				t.Errorf("evicted %v, want %v", evicted, c.evicted)
			}
			if x := p.c.preempt; len(x.takenBy) != 0 || len(x.rests) != 0 {
				t.Errorf("half an hour later %d pods are still to go, after %d requests", len(x.takenBy), asked)
			}
		})
	}
}

// TestGangQuota: a quota admits a gang as a whole or not at all.
func TestGangQuota(t *testing.T) {
	p := newPlay(t)
	p.node("a", "16")
	p.c.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "red"}}})
	q := &v1alpha1.CapacityQuota{ObjectMeta: metav1.ObjectMeta{Name: "red"}}
	q.Spec.NamespaceSelector = v1alpha1.Selector{MatchLabels: map[string]string{"team": "red"}}
	q.Spec.Guarantee.CPU.Set(3)
	q.Spec.BorrowingLimit = &v1alpha1.ResourceAmounts{}
	p.c.tenants.setQuota(q)
	p.c.tenantsChanged()
	p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
	p.pod("g0", "2", inGroup("ring"))
	p.pod("g1", "2", inGroup("ring"))
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v beyond the quota", got)
	}
	if got := p.said["pod-g0"]; got != "the quota red is used up: guarantee and borrowing limit do not hold the gang" {
		t.Errorf("the message is %q", got)
	}
}

// onePerNode are plugins that accept one pod with the label app on each node.
type onePerNode struct{ on map[types.UID]*corev1.Pod }

func (x *onePerNode) SetNode(*corev1.Node)                 {}
func (x *onePerNode) RemoveNode(string)                    {}
func (x *onePerNode) SetGroup(*schedulingv1beta1.PodGroup) {}
func (x *onePerNode) RemoveGroup(string, string)           {}
func (x *onePerNode) SetPod(p *corev1.Pod)                 { x.on[p.UID] = p }
func (x *onePerNode) RemovePod(u types.UID)                { delete(x.on, u) }
func (x *onePerNode) Assume(p *corev1.Pod, node string) {
	o := p.DeepCopy()
	o.Spec.NodeName = node
	x.on[p.UID] = o
}
func (x *onePerNode) Begin(context.Context, *corev1.Pod) (Trial, error) { return &oneTrial{x}, nil }

func (x *onePerNode) Gang() func() { return func() {} }

type oneTrial struct{ x *onePerNode }

type taken string

func (r taken) Error() string   { return string(r) }
func (r taken) Refused() string { return string(r) }

func (t *oneTrial) Only() ([]string, bool) { return nil, false }
func (t *oneTrial) Check(ctx context.Context, node string) error {
	return t.Without(ctx, node, nil)
}
func (t *oneTrial) Without(_ context.Context, node string, gone []*corev1.Pod) error {
	for uid, p := range t.x.on {
		if p.Spec.NodeName == node && p.Labels["app"] != "" && !slices.ContainsFunc(gone, func(g *corev1.Pod) bool { return g.UID == uid }) {
			return taken("node has one")
		}
	}
	return nil
}
func (t *oneTrial) Best(_ context.Context, nodes []string) []string { return nodes }
func (t *oneTrial) Reserve(context.Context, string) error           { return nil }
func (t *oneTrial) Unreserve(context.Context, string)               {}
func (t *oneTrial) GiveUp(context.Context)                          {}
func (t *oneTrial) PreBind(context.Context, string, func()) error   { return nil }

type labelled struct{}

func (labelled) Forget(string)                    {}
func (labelled) Needs(p *corev1.Pod) bool         { return p.Labels["app"] != "" }
func (labelled) Repels(*corev1.Pod) string        { return "" }
func (labelled) Selects(string, *corev1.Pod) bool { return false }

// onePerNode has plugins judge the pods with the label app that is returned, and take one of them on a node.
func (p *play) onePerNode() func(*corev1.Pod) {
	p.c.judge.terms = labelled{}
	p.c.judge.ready(&onePerNode{on: map[types.UID]*corev1.Pod{}})
	return func(o *corev1.Pod) { o.Labels = map[string]string{"app": "x"} }
}

// TestBackoffIsCutShort: a pod that an event may help is tried before its back-off is over when nothing else is ready. A pod whose binding failed waits.
func TestBackoffIsCutShort(t *testing.T) {
	p := newPlay(t)
	app := p.onePerNode()
	p.node("a", "4")
	first := p.pod("first", "1", app)
	p.settle()
	first = p.bound(first, p.take()["first"])
	p.pod("second", "1", app)
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v, and the plugins accept one pod on a node", got)
	}
	p.c.podGone(first.UID)
	p.settle() // at the same time
	if got := p.take(); got["second"] != "a" {
		t.Fatalf("the node is free and %v was bound", got)
	}
	p.c.answered(bind.Result{Request: bind.Request{UID: "pod-second", Name: "second", Namespace: "default", Node: "a"}, Outcome: bind.Refused, Err: errNotOurs})
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Errorf("bound %v in the back-off of a binding that failed", got)
	}
}

// TestPluginsThatStart: pods that came while the plugins were starting are decided as soon as they have started.
func TestPluginsThatStart(t *testing.T) {
	p := newPlay(t)
	p.c.judge.terms, p.c.judge.start = labelled{}, func() {}
	p.node("a", "4")
	p.pod("first", "1", func(o *corev1.Pod) { o.Labels = map[string]string{"app": "x"} })
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v without the plugins", got)
	}
	p.c.pluginsReady(&onePerNode{on: map[types.UID]*corev1.Pod{}})
	p.settle()
	if got := p.take(); got["first"] != "a" {
		t.Errorf("the plugins have started and %v was bound", got)
	}
}

// besideOne are plugins that accept the nodes that have a pod with the label app.
type besideOne struct{ onePerNode }

func (x *besideOne) Begin(context.Context, *corev1.Pod) (Trial, error) {
	return &besideTrial{oneTrial{&x.onePerNode}}, nil
}

type besideTrial struct{ oneTrial }

func (t *besideTrial) Check(ctx context.Context, node string) error {
	if t.oneTrial.Check(ctx, node) == nil {
		return taken("node has none")
	}
	return nil
}

// TestAPodWakesThoseThatArePulled: a pod that comes, or gets the label, wakes those that wait for it. No room came free by that.
func TestAPodWakesThoseThatArePulled(t *testing.T) {
	label := func(o *corev1.Pod) { o.Labels = map[string]string{"app": "db"} }
	for how, come := range map[string]func(*play){
		"bound": func(p *play) {
			p.seen(p.pod("db", "1", label, func(o *corev1.Pod) { o.Spec.SchedulerName = "other" }), "a")
		},
		"labelled": func(p *play) {
			o := p.c.pods["pod-plain"].object.DeepCopy()
			label(o)
			o.ResourceVersion += "1"
			p.c.podChanged(o)
		},
	} {
		p := newPlay(t)
		p.c.judge.terms = labelled{}
		p.c.judge.ready(&besideOne{onePerNode{on: map[types.UID]*corev1.Pod{}}})
		p.node("a", "8")
		p.runs("plain", "1", "a")
		p.pod("pulled", "1", label)
		p.settle()
		if got := p.take(); len(got) != 0 {
			t.Fatalf("%s: bound %v to nobody", how, got)
		}
		p.now = p.now.Add(time.Minute)
		p.settle()
		come(p)
		p.settle()
		p.now = p.now.Add(time.Minute) // after the back-off
		p.settle()
		if got := p.take(); got["pulled"] != "a" {
			t.Errorf("%s: bound %v", how, got)
		}
	}
}

// TestPreemptionThatThePluginsJudge: a pod that the table has room for, and the plugins have not, takes the pod that is in its way and no other.
func TestPreemptionThatThePluginsJudge(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	app := p.onePerNode()
	p.node("a", "8")
	p.runs("plain", "1", "a", online(1))
	inTheWay := p.runs("low", "1", "a", online(1), app)
	p.pod("high", "1", online(10), app)
	p.settle()
	if !slices.Equal(*evicted, []string{"low"}) {
		t.Fatalf("evicted %v, want the pod that is in the way", *evicted)
	}
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v before the victim is gone", got)
	}
	p.c.podGone(inTheWay.UID)
	p.settle()
	if got := p.take(); got["high"] != "a" {
		t.Errorf("bound %v", got)
	}
}

// TestPluginsWaitForAllThatLeave: a pod that upstream's plugins judge is not asked about again while a pod that may be in its way still leaves, though the table
// has room and the node changes: the plugins would refuse it, and the nomination would end for nothing.
func TestPluginsWaitForAllThatLeave(t *testing.T) {
	for name, change := range map[string]func(*play){
		"another pod is gone":  func(p *play) { p.c.podGone("pod-plain") },
		"the node has more":    func(p *play) { p.node("a", "16") },
		"another pod is bound": func(p *play) { p.runs("more", "1", "a") },
		"another pod is resized": func(p *play) {
			p.changed("plain", func(o *corev1.Pod) {
				o.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("500m")
			})
		},
	} {
		p := newPlay(t)
		p.taken()
		app := p.onePerNode()
		p.node("a", "8")
		p.runs("plain", "1", "a", online(1))
		low := p.runs("low", "1", "a", online(1), app)
		p.pod("high", "1", online(10), app)
		p.settle()
		change(p)
		p.settle()
		if p.c.pods["pod-high"].stage != nominated || p.c.preempt.byPod["pod-high"] == nil || len(p.c.preempt.nothing) != 0 {
			t.Errorf("%s: the nomination ended before the victim was gone", name)
		}
		p.c.podGone(low.UID)
		p.settle()
		if got := p.take(); got["high"] != "a" {
			t.Errorf("%s: bound %v", name, got)
		}
	}
}

// TestPreemptionIsTriedAgain: a pod, or a gang, that might take room but for a while must not is tried again when that while is over, though nothing in the
// cluster changes: after a thaw, after the start protection of the pods in the way, and when their bindings have an answer.
func TestPreemptionIsTriedAgain(t *testing.T) {
	started := func(p *play, o *corev1.Pod) *corev1.Pod {
		next := o.DeepCopy()
		next.Status.StartTime, next.ResourceVersion = new(metav1.NewTime(p.now)), o.ResourceVersion+"2"
		p.c.podChanged(next)
		return next
	}
	for _, c := range []struct {
		name        string
		begin, over func(p *play, low *corev1.Pod)
		free        bool // low is not bound before high comes
	}{
		{"a freeze", func(p *play, _ *corev1.Pod) { p.freeze("festival") }, func(p *play, _ *corev1.Pod) { p.freeze("") }, false},
		{"a start a moment ago", func(p *play, low *corev1.Pod) { p.c.preempt.protect = time.Minute; started(p, low) },
			func(p *play, _ *corev1.Pod) { p.now = p.now.Add(time.Minute) }, false},
		{"a binding under way", func(*play, *corev1.Pod) {}, func(p *play, low *corev1.Pod) { p.bound(low, "a"); p.now = p.now.Add(askAgain) }, true},
	} {
		for _, gang := range []bool{false, true} {
			p := newPlay(t)
			p.c.c.Namespace = "springtide-system"
			evicted := p.taken()
			p.node("a", "4")
			low := p.pod("low", "3", online(1))
			p.settle()
			if p.take(); !c.free {
				low = p.bound(low, "a")
			}
			c.begin(p, low)
			change := online(10)
			if gang {
				p.c.setGroup("default/pair", &podGroup{namespace: "default", name: "pair", minCount: 1})
				change = func(o *corev1.Pod) { online(10)(o); inGroup("pair")(o) }
			}
			p.pod("high", "3", change)
			p.settle()
			if len(*evicted) != 0 {
				t.Fatalf("%s: evicted %v before it is over", c.name, *evicted)
			}
			c.over(p, low)
			p.c.tick(p.now)
			p.settle()
			if len(*evicted) != 1 || (*evicted)[0] != "low" {
				t.Errorf("%s, gang %v: evicted %v after it was over, want low", c.name, gang, *evicted)
			}
		}
	}
}

// TestARelabelledVictimIsAskedSoon: the advice for a pod under two budgets is to let one alone select it. Where its owner follows it by the pod's labels, no
// budget changes; the pod is asked again at once, and not only when the ten minutes of its pause are over.
func TestARelabelledVictimIsAskedSoon(t *testing.T) {
	for name, err := range map[string]error{
		"two budgets": answerOf(500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."),
		"a webhook":   answerOf(403, `admission webhook "guard.example.com" denied the request: keep it`),
		"a budget":    answerOf(429, "Cannot evict pod as it would violate the pod's disruption budget."),
	} {
		p := newPlay(t)
		tries := 0
		p.c.preempt.evict = func(_ *corev1.Pod, answered func(error)) { tries++; answered(err) }
		p.node("a", "4")
		low := p.runs("low", "4", "a", online(1))
		p.pod("high", "4", online(10))
		p.settle()
		p.seconds(300)
		was := tries
		low = p.c.pods[low.UID].object.DeepCopy()
		low.Labels = map[string]string{"app": "other"}
		p.c.podChanged(low)
		if p.seconds(20); tries != was+1 {
			t.Errorf("%s: asked %d times within 20 s of new labels, want once (%d before)", name, tries-was, was)
		}
	}
}
