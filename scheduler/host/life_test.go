package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/host/bind"
)

// makes keeps what is being made for decisions, until the test ends it: with an error, or nil. stopped are those that the core ended.
type makes struct {
	p       *play
	done    map[string]func(error)
	stopped []string
}

// makesVolumes has upstream's plugins judge the pods that are given the label, and something to make for each of them before its binding.
func (p *play) makesVolumes() (*makes, func(*corev1.Pod)) {
	app := p.onePerNode()
	p.c.judge.plugins = anyNode{p.c.judge.plugins.(*onePerNode)}
	m := &makes{p: p, done: map[string]func(error){}}
	p.c.make = func(work func(context.Context) error, done func(error)) func() {
		var name string
		_ = work(context.WithValue(context.Background(), madeFor{}, &name))
		m.done[name] = done
		return func() {
			if m.done[name] != nil {
				m.stopped = append(m.stopped, name)
			}
		}
	}
	return m, app
}

// madeFor is the key of where the name of the pod is noted for which something is to be made.
type madeFor struct{}

// anyNode are plugins that accept each node for pods with the label app, and have something to make for them.
type anyNode struct{ *onePerNode }

type anyTrial struct {
	oneTrial
	pod *corev1.Pod
}

func (x anyNode) Begin(_ context.Context, o *corev1.Pod) (Trial, error) {
	return &anyTrial{oneTrial{x.onePerNode}, o}, nil
}
func (t *anyTrial) Check(context.Context, string) error                  { return nil }
func (t *anyTrial) Without(context.Context, string, []*corev1.Pod) error { return nil }
func (t *anyTrial) PreBind(ctx context.Context, _ string, begin func()) error {
	begin()
	*ctx.Value(madeFor{}).(*string) = t.pod.Name
	return nil
}

func (m *makes) end(name string, err error) {
	m.p.t.Helper()
	done := m.done[name]
	if done == nil {
		m.p.t.Fatalf("nothing is being made for %s: %v", name, slices.Sorted(maps.Keys(m.done)))
	}
	delete(m.done, name)
	done(err)
	m.p.settle()
}

// TestRoomIsHeldWhileVolumesAreMade: the room of a decision is taken until its volumes are there and it is bound, and is free again where that fails.
func TestRoomIsHeldWhileVolumesAreMade(t *testing.T) {
	for name, end := range map[string]func(*play, *makes, *corev1.Pod) string{
		"they are made": func(p *play, m *makes, o *corev1.Pod) string {
			m.end("slow", nil)
			if got := p.take(); got["slow"] != "a" {
				t.Errorf("its volumes are there and %v was bound", got)
			}
			p.bound(o, "a")
			return ""
		},
		"they fail":       func(_ *play, m *makes, _ *corev1.Pod) string { m.end("slow", errors.New("no space")); return "a" },
		"the pod is gone": func(p *play, _ *makes, o *corev1.Pod) string { p.c.podGone(o.UID); return "a" },
		"another scheduler binds it elsewhere": func(p *play, _ *makes, o *corev1.Pod) string {
			p.node("b", "1")
			p.seen(o, "b")
			return "a"
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			m, app := p.makesVolumes()
			p.node("a", "4")
			slow := p.pod("slow", "3", app)
			p.settle()
			p.pod("quick", "2")
			p.settle()
			p.seconds(30)
			if got := p.take(); len(got) != 0 {
				t.Fatalf("bound %v while the volumes are made", got)
			}
			want := end(p, m, slow)
			p.settle()
			if got := p.take()["quick"]; got != want {
				t.Errorf("after that the other pod is on %q, want %q", got, want)
			}
			if p.c.making != 0 || p.c.pods[slow.UID] != nil && p.c.pods[slow.UID].stop != nil {
				t.Errorf("%d pods count as those whose volumes are made", p.c.making)
			}
		})
	}
}

// TestVolumesHoldNothingUp: pods whose volumes are being made count neither as bindings that are under way, nor in what an acknowledgement waits for; and where
// the parcel has changed hands by the time they are there, no binding follows the acknowledgement.
func TestVolumesHoldNothingUp(t *testing.T) {
	p := newPlay(t)
	m, app := p.makesVolumes()
	p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
	p.c.setPool("batch", &poolFacts{name: "batch", class: fleet.Offline, selector: labels.Nothing()})
	p.node("a", "400", func(n *corev1.Node) {
		n.Status.Allocatable[corev1.ResourcePods] = n.Status.Allocatable[corev1.ResourceMemory]
	})
	for i := range mostUnbound + 4 {
		p.pod(fmt.Sprint("slow-", i), "1", app)
	}
	p.settle()
	if len(m.done) != mostUnbound+4 {
		t.Errorf("volumes are made for %d pods, want %d", len(m.done), mostUnbound+4)
	}
	p.pod("plain", "1")
	p.settle()
	if got := p.take(); len(got) != 1 || got["plain"] != "a" {
		t.Errorf("while volumes are made %v was bound", got)
	}
	p.bound(p.c.pods["pod-plain"].object, "a")
	p.c.setShare("a", share("a", 1, v1alpha1.ShareParcel{Cells: []int32{0}, Holder: "web", Next: "batch", LoanName: "l", LoanUID: "l", Epoch: 1}))
	if len(p.acked) != 1 {
		t.Errorf("acknowledged %v while volumes are made", p.acked)
	}
	m.end("slow-0", nil)
	if got := p.take(); len(got) != 0 {
		t.Errorf("bound %v to a parcel whose share was acknowledged", got)
	}
	if got := p.c.pods["pod-slow-0"].stage; got != waits {
		t.Errorf("the pod is in stage %v", got)
	}
	p.c.setShare("a", share("a", 2))
	p.settle()
	m.end("slow-1", nil)
	if got := p.take(); got["slow-1"] != "a" {
		t.Errorf("the parcel stays and %v was bound", got)
	}
}

// TestVolumesOfAPodThatChanges: what is made for a decision says nothing about the next decision on the pod.
func TestVolumesOfAPodThatChanges(t *testing.T) {
	p := newPlay(t)
	m, app := p.makesVolumes()
	p.node("a", "4")
	o := p.pod("slow", "3", app)
	p.settle()
	first := m.done["slow"]
	p.c.podGone(o.UID)
	if !slices.Equal(m.stopped, []string{"slow"}) {
		t.Errorf("the pod is gone and the making of %v was ended", m.stopped)
	}
	p.pod("slow", "3", app, func(o *corev1.Pod) { o.UID = types.UID("another") })
	p.settle()
	first(nil)
	if got := p.take(); len(got) != 0 {
		t.Errorf("the volumes of the former pod are there and %v was bound", got)
	}
	p.now = p.now.Add(time.Second)
	m.end("slow", nil)
	if got := p.take(); got["slow"] != "a" {
		t.Errorf("bound %v", got)
	}
}

// TestRoomIsHeldForAClaimThatPodsShare: of pods that share a claim the first one's writes allocate it, and the others are judged on their nodes again after that.
// They keep their room meanwhile, also from a pod that waits for it; where the node is refused then, they give it up.
func TestRoomIsHeldForAClaimThatPodsShare(t *testing.T) {
	for name, c := range map[string]struct {
		refuse bool
		want   map[string]string
	}{
		"the node is accepted": {want: map[string]string{"slow": "a"}},
		"it is refused":        {refuse: true, want: map[string]string{"quick": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			m, app := p.makesVolumes()
			p.node("a", "4")
			p.pod("slow", "3", app)
			p.settle()
			p.pod("quick", "2")
			p.settle()
			if c.refuse {
				p.c.judge.plugins = noNode{p.c.judge.plugins.(anyNode).onePerNode}
			}
			m.end("slow", fmt.Errorf("write the claim: %w", ErrAgain))
			if !c.refuse {
				if got := p.take(); len(got) > 0 {
					t.Fatalf("bound %v before the claim is there", got)
				}
				m.end("slow", nil)
			}
			if got := p.take(); !maps.Equal(got, c.want) {
				t.Errorf("bound %v, want %v", got, c.want)
			}
		})
	}
}

// noNode are plugins that refuse every pod.
type noNode struct{ *onePerNode }

func (noNode) Begin(context.Context, *corev1.Pod) (Trial, error) { return nil, taken("not here") }

// TestAPodThatChangesMeanwhile: what a pod asks for may change while it is nominated or decided. It is decided as it is then: at once where it waits for room to
// come, and else when the decision is not carried out.
func TestAPodThatChangesMeanwhile(t *testing.T) {
	type change struct {
		cpu    string // of the other node, which is tainted
		change func(*corev1.Pod)
	}
	tolerates := func(o *corev1.Pod) {
		o.Spec.Tolerations = append(o.Spec.Tolerations, corev1.Toleration{Key: "special", Operator: corev1.TolerationOpExists})
	}
	changes := map[string]change{
		"it tolerates the other node": {"4", tolerates},
		"it is smaller, and tolerates the other node": {"1", func(o *corev1.Pod) {
			tolerates(o)
			o.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
		}},
	}
	shrinks := func(p *play) { p.node("a", "500m") }
	for stands, begin := range map[string]func(*play) (ends func()){
		"nominated": func(p *play) func() {
			p.evicts()
			p.runs("low", "4", "a", online(1))
			p.pod("x", "3", online(9))
			p.settle()
			return func() {}
		},
		"nominated, with a gang": func(p *play) func() {
			p.evicts()
			p.runs("low", "4", "a", online(1))
			p.node("c", "1")
			p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
			p.pod("y", "1", online(9), grouped("ring"))
			p.pod("x", "3", online(9), grouped("ring"))
			p.settle()
			return func() {}
		},
		"its binding is refused": func(p *play) func() {
			x := p.pod("x", "3", online(9))
			p.settle()
			p.take()
			return func() {
				shrinks(p)
				p.c.answered(bind.Result{Request: bind.Request{UID: string(x.UID), Node: "a"}, Outcome: bind.Refused, Err: errors.New("conflict")})
			}
		},
		"its volumes fail": func(p *play) func() {
			m, app := p.makesVolumes()
			p.pod("x", "3", online(9), app)
			p.settle()
			return func() {
				shrinks(p)
				m.end("x", errors.New("no space"))
				p.seconds(2)
				m.end("x", nil)
			}
		},
	} {
		for name, c := range changes {
			t.Run(stands+", "+name, func(t *testing.T) {
				p := newPlay(t)
				p.node("a", "4")
				p.node("b", c.cpu, func(n *corev1.Node) {
					n.Spec.Taints = []corev1.Taint{{Key: "special", Effect: corev1.TaintEffectNoSchedule}}
				})
				ends := begin(p)
				if got := p.c.pods["pod-x"].node; got != "a" {
					t.Fatalf("the pod stands on %q before it changes", got)
				}
				p.changed("x", func(o *corev1.Pod) {
					o.Generation++
					c.change(o)
				})
				p.settle()
				ends()
				p.seconds(2)
				if got := p.take()["x"]; got != "b" {
					t.Errorf("after that it is on %q, want the other node", got)
				}
			})
		}
	}
}

// TestADeletedPodIsNotDecidedAgain: a pod that is deleted while its binding is written may stay for ever, by a finalizer. Once the binding is refused it neither
// holds room nor is decided again.
func TestADeletedPodIsNotDecidedAgain(t *testing.T) {
	for _, gang := range []bool{false, true} {
		p := newPlay(t)
		p.node("a", "4")
		var in []func(*corev1.Pod)
		if gang {
			p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
			in = append(in, grouped("ring"))
			p.pod("y", "1", in...)
		}
		x := p.pod("x", "3", in...)
		p.settle()
		p.take()
		p.changed("x", func(o *corev1.Pod) { o.DeletionTimestamp = &metav1.Time{Time: p.now} })
		p.c.answered(bind.Result{Request: bind.Request{UID: string(x.UID), Node: "a"}, Outcome: bind.Refused, Err: errors.New("the pod is being deleted")})
		p.pod("other", "3")
		p.seconds(60)
		if got := p.take(); len(got) != 1 || got["other"] != "a" {
			t.Errorf("gang %v: bound %v, want the other pod alone", gang, got)
		}
	}
}

// TestARefusalThatNeverChanges: bindings that are always refused, and volumes that always fail, are tried again ever less often, as with kube-scheduler: 10 s apart
// in the end.
func TestARefusalThatNeverChanges(t *testing.T) {
	t.Run("a binding", func(t *testing.T) {
		p := newPlay(t)
		p.node("a", "4")
		p.pod("x", "3")
		n := 0
		for range 600 {
			p.seconds(1)
			for _, r := range p.binds {
				n++
				p.c.answered(bind.Result{Request: r, Outcome: bind.Refused, Err: errors.New("admission webhook denied the request")})
			}
			p.binds = nil
		}
		if n < 55 || n > 70 {
			t.Errorf("%d bindings in ten minutes, want about 62", n)
		}
	})
	t.Run("a volume", func(t *testing.T) {
		p := newPlay(t)
		m, app := p.makesVolumes()
		p.node("a", "4")
		p.pod("x", "3", app)
		n := 0
		for range 600 {
			p.seconds(1)
			if m.done["x"] != nil {
				n++
				m.end("x", errors.New("no space"))
			}
		}
		if n < 55 || n > 70 {
			t.Errorf("%d volumes were made in ten minutes, want about 62", n)
		}
	})
}
