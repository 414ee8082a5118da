package host

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// cluster are plugins that judge a pod by what a test says of it, with the nodes, pods and namespaces as they know them.
type cluster struct {
	onePerNode
	nodes map[string]*corev1.Node
	// refuses is why a node will not do; empty where it does.
	refuses func(x *cluster, p *corev1.Pod, node string) string
}

func (x *cluster) SetNode(n *corev1.Node) { x.nodes[n.Name] = n }
func (x *cluster) RemoveNode(name string) { delete(x.nodes, name) }
func (x *cluster) Begin(_ context.Context, p *corev1.Pod) (Trial, error) {
	return &clusterTrial{oneTrial{&x.onePerNode}, x, p}, nil
}

type clusterTrial struct {
	oneTrial
	all *cluster
	pod *corev1.Pod
}

func (t *clusterTrial) Check(_ context.Context, node string) error {
	if why := t.all.refuses(t.all, t.pod, node); why != "" {
		return taken(why)
	}
	return nil
}

func (t *clusterTrial) Without(ctx context.Context, node string, _ []*corev1.Pod) error {
	return t.Check(ctx, node)
}

// judgedBy has plugins judge the pods with a label app.
func (p *play) judgedBy(refuses func(x *cluster, p *corev1.Pod, node string) string) {
	p.c.judge.terms = labelled{}
	p.c.judge.ready(&cluster{onePerNode{on: map[types.UID]*corev1.Pod{}}, map[string]*corev1.Node{}, refuses})
}

// attempts decides until there is nothing to decide, and counts.
func (p *play) attempts() (n int) {
	p.t.Helper()
	for p.c.decideOne(context.Background()) || p.make() {
		if n++; n == 1000 {
			p.t.Fatal("1,000 decisions at one time: what waits is woken by its own attempts")
		}
	}
	return n
}

// changed brings a pod that a test has changed.
func (p *play) changed(name string, change func(*corev1.Pod)) {
	o := p.c.pods[types.UID("pod-"+name)].object.DeepCopy()
	change(o)
	o.ResourceVersion += "1"
	p.c.podChanged(o)
}

func app(o *corev1.Pod) { o.Labels = map[string]string{"app": "x"} }

// wait is a reason to wait and the event that ends it. The pod is named x; a gang is the group ring, whose pods are x and y.
type wait struct {
	refused func(*play)
	ends    func(*play)
	// binds are the pods that are bound then, others than x.
	binds []string
}

// waits are the reasons.
func waitsFor() map[string]wait {
	isApp := func(o *corev1.Pod) bool { return o.Labels["app"] != "" }
	count := func(x *cluster, is func(*corev1.Pod) bool) (n int) {
		for _, o := range x.on {
			if is(o) {
				n++
			}
		}
		return n
	}
	anyOther := func(x *cluster, _ *corev1.Pod, _ string) string {
		if count(x, isApp) > 0 {
			return "another one is there"
		}
		return ""
	}
	made := false
	return map[string]wait{
		"cpu, until a pod is gone": {
			func(p *play) { p.node("a", "4"); p.runs("full", "4", "a"); p.pod("x", "2") },
			func(p *play) { p.c.podGone("pod-full") }, nil},
		"cpu, until a pod shrinks": {
			func(p *play) { p.node("a", "4"); p.runs("full", "4", "a"); p.pod("x", "2") },
			func(p *play) {
				p.changed("full", func(o *corev1.Pod) { o.Generation++; o.Spec.Containers[0].Resources.Requests = cpus(1) })
			}, nil},
		"cpu, until the pod asks for less": {
			func(p *play) { p.node("a", "4"); p.pod("x", "6") },
			func(p *play) {
				p.changed("x", func(o *corev1.Pod) { o.Generation++; o.Spec.Containers[0].Resources.Requests = cpus(1) })
			}, nil},
		"cpu that a decision holds, until another scheduler is quicker elsewhere": {
			func(p *play) { p.node("a", "4"); p.pod("held", "3"); p.settle(); p.take(); p.pod("x", "2") },
			func(p *play) { p.seen(p.c.pods["pod-held"].object, "elsewhere") }, nil},
		"cpu that another scheduler nominated a pod for, until that is bound elsewhere": {
			func(p *play) {
				p.node("a", "4")
				p.pod("held", "3", func(o *corev1.Pod) { o.Spec.SchedulerName, o.Status.NominatedNodeName = "another", "a" })
				p.pod("x", "2")
			},
			func(p *play) { p.seen(p.c.pods["pod-held"].object, "elsewhere") }, nil},
		"a taint, until it is taken away": {
			func(p *play) {
				p.node("a", "4", func(n *corev1.Node) {
					n.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
				})
				p.pod("x", "2")
			},
			func(p *play) { p.node("a", "4") }, nil},
		"a taint, until the pod tolerates it": {
			func(p *play) {
				p.node("a", "4", func(n *corev1.Node) {
					n.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
				})
				p.pod("x", "2")
			},
			func(p *play) {
				p.changed("x", func(o *corev1.Pod) {
					o.Generation++
					o.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
				})
			}, nil},
		"a host port, until it is free": {
			func(p *play) {
				p.node("a", "4")
				p.runs("holds", "1", "a", hostPort(80))
				p.pod("x", "1", hostPort(80))
			},
			func(p *play) { p.c.podGone("pod-holds") }, nil},
		"no node, until there is one": {
			func(p *play) { p.pod("x", "2") },
			func(p *play) { p.node("a", "4") }, nil},
		"affinity, until a pod that matches is bound": {
			func(p *play) {
				p.judgedBy(func(x *cluster, _ *corev1.Pod, _ string) string {
					if count(x, func(o *corev1.Pod) bool { return o.Labels["is"] == "db" }) == 0 {
						return "no db"
					}
					return ""
				})
				p.node("a", "8")
				p.pod("x", "1", app)
			},
			func(p *play) {
				p.pod("db", "1", func(o *corev1.Pod) { o.Labels, o.Spec.NodeName = map[string]string{"is": "db"}, "a" })
			}, nil},
		"anti-affinity in a zone, until the pod on a full node is gone": {
			func(p *play) {
				p.judgedBy(anyOther)
				p.node("b", "1")
				p.runs("other", "1", "b", app)
				p.pod("more", "1", func(o *corev1.Pod) { o.Spec.NodeName = "b" })
				p.node("a", "8")
				p.pod("x", "1", app)
			},
			func(p *play) { p.c.podGone("pod-other") }, nil},
		"anti-affinity, until the pod has other labels": {
			func(p *play) {
				p.judgedBy(func(_ *cluster, o *corev1.Pod, _ string) string {
					if o.Labels["app"] == "x" {
						return "is an x"
					}
					return ""
				})
				p.node("a", "8")
				p.pod("x", "1", app)
			},
			func(p *play) { p.changed("x", func(o *corev1.Pod) { o.Labels = map[string]string{"app": "y"} }) }, nil},
		"spread, until a domain is deleted": {
			func(p *play) {
				p.judgedBy(func(x *cluster, _ *corev1.Pod, node string) string {
					if len(x.nodes) > 1 && node == "a" {
						return "skew"
					}
					return ""
				})
				p.node("a", "8")
				p.node("b", "8", func(n *corev1.Node) { n.Spec.Unschedulable = true })
				p.pod("x", "1", app)
			},
			func(p *play) { p.c.removeNode("b") }, nil},
		"spread, until a pod is being deleted": {
			func(p *play) {
				p.judgedBy(func(x *cluster, _ *corev1.Pod, _ string) string {
					if count(x, func(o *corev1.Pod) bool { return isApp(o) && o.DeletionTimestamp == nil }) > 0 {
						return "skew"
					}
					return ""
				})
				p.node("a", "8")
				p.runs("other", "1", "a", app)
				p.pod("x", "1", app)
			},
			func(p *play) {
				p.changed("other", func(o *corev1.Pod) { now := metav1.NewTime(p.now); o.DeletionTimestamp = &now })
			}, nil},
		"a claim that is not made yet, until the pod names it": {
			func(p *play) {
				p.judgedBy(func(_ *cluster, o *corev1.Pod, _ string) string {
					if len(o.Status.ResourceClaimStatuses) == 0 {
						return "waits for the claim to be made"
					}
					return ""
				})
				p.node("a", "8")
				p.pod("x", "1", app)
			},
			func(p *play) {
				p.changed("x", func(o *corev1.Pod) {
					of := "x-claim"
					o.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &of}}
				})
			}, nil},
		"a volume, until it is there": {
			func(p *play) {
				made = false
				p.judgedBy(func(*cluster, *corev1.Pod, string) string {
					if !made {
						return "no volume"
					}
					return ""
				})
				p.node("a", "8")
				p.pod("x", "1", app)
			},
			func(p *play) { made = true; p.c.pluginsChanged() }, nil},
		"a namespace selector, until the namespace has the label": {
			func(p *play) {
				p.c.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
				p.judgedBy(func(*cluster, *corev1.Pod, string) string {
					if len(p.c.tenants.namespaces["default"]) == 0 {
						return "no namespace"
					}
					return ""
				})
				p.node("a", "8")
				p.pod("x", "1", app)
			},
			func(p *play) {
				p.c.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"a": "b"}}})
			}, nil},
		"a spread over zones, until the zone with the fewest has one more": {apart, func(p *play) { p.pod("other", "0", webPod, func(o *corev1.Pod) { o.Spec.NodeName = "b" }) }, nil},
		"a spread over zones, until a pod is gone":                         {apart, func(p *play) { p.c.podGone("pod-first") }, nil},
		"a spread over zones, until a pod is another's":                    {apart, func(p *play) { p.changed("first", func(o *corev1.Pod) { o.Labels = nil }) }, nil},
		"a spread over zones, until a pod leaves": {apart, func(p *play) {
			p.changed("first", func(o *corev1.Pod) { o.DeletionTimestamp = &metav1.Time{Time: p.now} })
		}, nil},
		"a spread over zones, until a zone is gone": {apart, func(p *play) { p.c.removeNode("b") }, nil},
		"a spread over zones, until the machine of a zone is in the other": {apart, func(p *play) {
			p.node("b", "0", func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = "z1" })
		}, nil},
		"a spread over zones, until a zone has room": {apart, func(p *play) {
			p.node("b", "8", func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = "z2" })
		}, nil},
		"plugins that start": {
			func(p *play) {
				p.c.judge.terms, p.c.judge.start = labelled{}, func() {}
				p.node("a", "8")
				p.pod("x", "1", app)
			},
			func(p *play) { p.c.pluginsReady(&onePerNode{on: map[types.UID]*corev1.Pod{}}) }, nil},
		"a gang's group, until it is made": {
			func(p *play) { p.node("a", "8"); p.pod("x", "1", inGroup("ring")); p.pod("y", "1", inGroup("ring")) },
			func(p *play) {
				p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
			}, []string{"y"}},
		"a gang's room": {
			func(p *play) {
				p.node("a", "4")
				p.runs("full", "3", "a")
				p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
				p.pod("x", "2", inGroup("ring"))
				p.pod("y", "2", inGroup("ring"))
			},
			func(p *play) { p.c.podGone("pod-full") }, []string{"y"}},
		"a gang's anti-affinity in a zone, until the pod on a full node is gone": {
			func(p *play) {
				p.judgedBy(func(x *cluster, _ *corev1.Pod, _ string) string {
					if count(x, func(o *corev1.Pod) bool { return o.Labels["app"] == "other" }) > 0 {
						return "another one is there"
					}
					return ""
				})
				p.node("b", "1")
				p.runs("other", "1", "b", func(o *corev1.Pod) { o.Labels = map[string]string{"app": "other"} })
				p.pod("more", "1", func(o *corev1.Pod) { o.Spec.NodeName = "b" })
				p.node("a", "8")
				p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
				p.pod("x", "1", inGroup("ring"), app)
				p.pod("y", "1", inGroup("ring"), app)
			},
			func(p *play) { p.c.podGone("pod-other") }, []string{"y"}},
	}
}

// TestEachWaitEnds: a refusal is drawn with the event that ends it. Until the event nothing is tried, however long it takes; then there is one attempt at
// once, and it places the pod. Plain pods of the same size that are decided meanwhile change nothing of that.
func TestEachWaitEnds(t *testing.T) {
	all := waitsFor()
	for _, name := range sortedKeys(all) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				w := all[name]
				p := newPlay(t)
				w.refused(p)
				p.settle()
				if got := p.take(); got["x"] != "" {
					r.Fatalf("bound %v before the event", got)
				}
				// Pods of the same size that ask for nothing else, and find a place, or none.
				for i := range rapid.IntRange(0, 2).Draw(r, "plain pods") {
					plain := fmt.Sprint("plain", i)
					size := p.c.pods["pod-x"].object.Spec.Containers[0].Resources.Requests.Cpu().String()
					var none map[string]string
					if rapid.Bool().Draw(r, "finds no place") {
						none = map[string]string{"none": "has this label"}
					}
					p.pod(plain, size, func(o *corev1.Pod) { o.Spec.NodeSelector = none })
					p.settle()
					if p.c.judge.plugins == nil { // else there is room for all, and none is asked again by its end
						p.c.podGone(types.UID("pod-" + plain))
						p.settle()
					}
				}
				p.take()
				p.now = p.now.Add(time.Duration(rapid.IntRange(0, 200).Draw(r, "seconds")) * time.Second)
				p.settle() // back-offs of what the pods above have woken are over
				if n := p.attempts(); n != 0 {
					r.Fatalf("%d attempts without an event", n)
				}
				p.now = p.now.Add(time.Minute) // a gang has five of them
				p.c.tick(p.now)
				if n := p.attempts(); n != 0 {
					r.Fatalf("%d attempts a minute later without an event", n)
				}
				w.ends(p)
				p.now = p.now.Add(time.Second)
				p.c.tick(p.now)
				if n := p.attempts(); n != 1 && p.c.judge.plugins == nil || n == 0 {
					r.Errorf("%d attempts after the event, want one", n)
				}
				got := p.take()
				for _, name := range slices.Concat([]string{"x"}, w.binds) {
					if got[name] == "" {
						r.Errorf("%s waits after the event; bound %v", name, got)
					}
				}
			})
		})
	}
}
