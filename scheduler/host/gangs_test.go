package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/facts"
)

// elasticJob is an ElasticJob with a minimum for each role, of batch Jobs of the role's name.
func elasticJob(timeout int32, least map[string]int32) *v1alpha1.ElasticJob {
	job := &v1alpha1.ElasticJob{}
	job.Spec.GangTimeoutSeconds = timeout
	for _, role := range sortedKeys(least) {
		job.Spec.Members = append(job.Spec.Members, v1alpha1.JobMember{Role: role, Min: least[role], Max: 9, WorkloadRef: v1alpha1.TargetRef{Kind: "Job", Name: role}})
	}
	return job
}

// verdicts keeps the pods on which a gang is reported as timed out.
func (p *play) verdicts() *[]string {
	var out []string
	say := p.c.say
	p.c.say = func(v verdict) {
		if v.gangTimedOut {
			out = append(out, v.pod.Name)
		}
		say(v)
	}
	return &out
}

// TestElasticJobTimesOut: the time of an ElasticJob's gang begins when all of its pods are there, and is as long as the job says. Its end stands on the pods
// that wait, they back off, and what runs is left to the controller. A gang that runs has no time.
func TestElasticJobTimesOut(t *testing.T) {
	p := newPlay(t)
	timedOut := p.verdicts()
	evicted := p.taken()
	p.c.setJob("default/train", elasticJob(60, map[string]int32{"worker": 2}))
	p.node("a", "4")
	first, second := p.pod("w0", "2", owned("Job", "worker")), p.pod("w1", "2", owned("Job", "worker"))
	p.settle()
	p.take()
	p.bound(first, "a")
	p.c.gangs.expire(p.c, p.now.Add(time.Hour))
	if len(*timedOut) != 0 {
		t.Fatalf("timed out: %v of a gang that runs", *timedOut)
	}
	p.c.podGone(p.bound(second, "a").UID)
	p.c.gangs.expire(p.c, p.now.Add(time.Hour))
	if len(*timedOut) != 0 {
		t.Fatalf("timed out: %v, and none waits", *timedOut)
	}
	p.pod("w2", "3", owned("Job", "worker"))
	p.settle()
	p.c.gangs.expire(p.c, p.now.Add(59*time.Second))
	if len(*timedOut) != 0 {
		t.Fatalf("timed out early: %v", *timedOut)
	}
	p.now = p.now.Add(time.Minute)
	p.c.gangs.expire(p.c, p.now)
	if !slices.Equal(*timedOut, []string{"w2"}) || len(*evicted) != 0 {
		t.Fatalf("timed out: %v, evicted %v", *timedOut, *evicted)
	}
	if want := "its gang lacked 1 pods for 1m0s: it is tried again after a back-off"; p.said["pod-w2"] != want {
		t.Errorf("said %q", p.said["pod-w2"])
	}
	p.node("b", "4")
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v in its back-off", got)
	}
	p.now = p.now.Add(time.Minute)
	p.settle()
	if got := p.take(); got["w2"] != "b" {
		t.Errorf("after its back-off, bound %v", got)
	}
}

// TestPodGroupOfAnElasticJob: the PodGroup says how many pods are needed in all, the ElasticJob of its pods how many of each role, and for how long they may
// lack. The job may be made after the pods.
func TestPodGroupOfAnElasticJob(t *testing.T) {
	p := newPlay(t)
	timedOut := p.verdicts()
	p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 3})
	of := func(role string) func(*corev1.Pod) {
		return func(o *corev1.Pod) {
			inGroup("ring")(o)
			owned("Job", role)(o)
		}
	}
	for _, name := range []string{"w0", "w1", "w2"} {
		p.pod(name, "1", of("worker"))
	}
	p.c.setJob("default/train", elasticJob(60, map[string]int32{"ps": 1, "worker": 1}))
	p.node("a", "4")
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v without the parameter server", got)
	}
	p.now = p.now.Add(time.Minute)
	p.c.gangs.expire(p.c, p.now)
	if !slices.Equal(*timedOut, []string{"w0", "w1", "w2"}) {
		t.Fatalf("timed out: %v", *timedOut)
	}
	p.pod("ps", "1", of("ps"))
	p.now = p.now.Add(time.Minute)
	p.settle()
	if got := p.take(); len(got) != 4 || got["ps"] == "" {
		t.Errorf("bound %v, want the minimum of three with the parameter server, and the third worker", got)
	}
}

// TestLatePodsStayInTheirDomain: a pod that comes to a gang that runs is bound in the domain of the gang or waits for room there, also where it could make
// room elsewhere. A gang that is gone may form in another domain.
func TestLatePodsStayInTheirDomain(t *testing.T) {
	p := newPlay(t)
	evicted := p.taken()
	for _, n := range []string{"a1", "a2", "b1", "b2"} {
		p.node(n, "4", func(o *corev1.Node) { o.Labels["rack"] = n[:1] })
	}
	p.runs("low", "4", "b1", on("b1"), online(1))
	p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2, topologyKey: "rack"})
	one, two := p.pod("g0", "3", inGroup("ring"), online(10)), p.pod("g1", "3", inGroup("ring"), online(10))
	p.settle()
	at := p.take()
	if at["g0"][:1] != "a" || at["g1"][:1] != "a" {
		t.Fatalf("bound %v, want rack a", at)
	}
	p.bound(one, at["g0"])
	p.bound(two, at["g1"])
	p.pod("late", "3", inGroup("ring"), online(10))
	p.settle()
	if got := p.take(); len(got) != 0 || len(*evicted) != 0 {
		t.Fatalf("bound %v and evicted %v outside of the rack of its gang", got, *evicted)
	}
	p.node("a3", "4", func(o *corev1.Node) { o.Labels["rack"] = "a" })
	p.settle()
	if got := p.take(); got["late"] != "a3" {
		t.Errorf("bound %v, want the new node of rack a", got)
	}
}

// TestGangPrefersOneGPUModel: the pods of an ElasticJob that ask for GPUs share a GPU model where one has room for all of them, though nodes of another
// model score better alone; where none has, they are bound on two models rather than wait. Pods without a job have no such wish.
func TestGangPrefersOneGPUModel(t *testing.T) {
	gpus := func(n string) func(*corev1.Pod) {
		return func(o *corev1.Pod) { o.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse(n) }
	}
	model := func(name, n string) func(*corev1.Node) {
		return func(o *corev1.Node) {
			o.Labels[facts.LabelGPUModel] = name
			o.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse(n)
		}
	}
	for _, c := range []struct {
		name string
		gpus []string // of each pod
		job  bool
		want []string // models
	}{
		{"one model holds both", []string{"4", "4"}, true, []string{"h100"}},
		{"no model holds all five", []string{"8", "8", "8", "2", "2"}, true, []string{"a100", "h100"}},
		{"without a job, each pod goes where it fits best", []string{"4", "4"}, false, []string{"a100", "h100"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlay(t)
			// The first pod fills a100 exactly, which leaves no GPU behind: alone it is the best node.
			p.node("a", "8", model("a100", "4"))
			for i := range 3 {
				p.node(fmt.Sprint("h", i), "8", model("h100", "8"))
			}
			if c.job {
				p.c.setJob("default/train", elasticJob(60, map[string]int32{"worker": int32(len(c.gpus))}))
			}
			for i, n := range c.gpus {
				p.pod(fmt.Sprint("w", i), "1", owned("Job", "worker"), gpus(n))
			}
			p.settle()
			at := p.take()
			models := map[string]bool{}
			for _, node := range at {
				models[map[byte]string{'a': "a100", 'h': "h100"}[node[0]]] = true
			}
			if len(at) != len(c.gpus) || !slices.Equal(sortedKeys(models), c.want) {
				t.Errorf("bound %v, want %d pods on %v", at, len(c.gpus), c.want)
			}
		})
	}
}

// TestElasticJobAfterItsPods: with several instances, pods that came before their ElasticJob become those of its partition, as one gang.
func TestElasticJobAfterItsPods(t *testing.T) {
	p := newPlay(t)
	p.c.c.Partitions, p.c.c.Partition = 3, partitionOf("default/train", 3)
	for i := 0; len(p.c.nodes) == 0; i++ {
		if name := fmt.Sprint("n", i); partitionOf(name, 3) == p.c.c.Partition {
			p.node(name, "8")
		}
	}
	first, second := 0, 0 // of this partition by UID, and of another one
	for i := 0; first == 0 || second == 0; i++ {
		if at := partitionOf(fmt.Sprint("pod-w", i), 3); at == p.c.c.Partition && first == 0 {
			first = i + 1
		} else if at != p.c.c.Partition && second == 0 {
			second = i + 1
		}
	}
	p.pod(fmt.Sprint("w", second-1), "2", owned("Job", "worker"))
	p.c.setJob("default/train", elasticJob(60, map[string]int32{"worker": 2}))
	p.pod(fmt.Sprint("w", first-1), "2", owned("Job", "worker"))
	p.settle()
	if got := p.take(); len(got) != 2 {
		t.Errorf("bound %v, want both pods of the gang", got)
	}
}

// TestAGangInTwoDomains: where the pods of a group that run are in two domains of its topology key, or on a node without that label, nothing joins them, and no room is
// taken for what cannot be placed: upstream's answer, and the same each time. Once they are in one, what waits goes there.
func TestAGangInTwoDomains(t *testing.T) {
	rack := func(r string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			if r != "" {
				n.Labels["rack"] = r
			}
		}
	}
	leaves := func(p *play, runs []*corev1.Pod) { p.c.podGone(runs[0].UID) }
	moves := func(p *play, _ []*corev1.Pod) { p.node("a", "8", rack("2")) }
	for name, c := range map[string]struct {
		group podGroup
		racks map[string]string
		on    []string // where pods of it run
		comes int
		cure  func(*play, []*corev1.Pod)
		want  []string // one of these
	}{
		"a late pod, and one leaves":                   {group: podGroup{minCount: 2, topologyKey: "rack"}, on: []string{"a", "b"}, comes: 1, cure: leaves, want: []string{"b"}},
		"a late pod, and the racks are one":            {group: podGroup{minCount: 2, topologyKey: "rack"}, on: []string{"a", "b"}, comes: 1, cure: moves, want: []string{"a", "b"}},
		"a late pod, and a node without the label":     {group: podGroup{minCount: 2, topologyKey: "rack"}, racks: map[string]string{"a": ""}, on: []string{"a", "b"}, comes: 1, cure: leaves, want: []string{"b"}},
		"a late pod, and one domain in the cluster":    {group: podGroup{minCount: 1, topologyKey: "rack"}, racks: map[string]string{"a": "", "c": "2"}, on: []string{"a"}, comes: 1, cure: moves, want: []string{"a", "b", "c"}},
		"the rest of the minimum":                      {group: podGroup{minCount: 4, topologyKey: "rack"}, on: []string{"a", "b"}, comes: 2, cure: moves, want: []string{"a", "b"}},
		"the rest of the minimum, one after the other": {group: podGroup{minCount: 5, topologyKey: "rack", whole: true}, on: []string{"a", "b", "b"}, comes: 2, cure: moves, want: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 8 { // the order of a map is another one each time
				p := newPlay(t)
				evicted := p.taken()
				for n, r := range map[string]string{"a": "1", "b": "2", "c": "3"} {
					if other, ok := c.racks[n]; ok {
						r = other
					}
					p.node(n, "8", rack(r))
				}
				p.runs("low", "7", "c", online(1), on("c"))
				group := c.group
				group.namespace, group.name = "default", "ring"
				p.c.setGroup("default/ring", &group)
				var runs []*corev1.Pod
				for i, node := range c.on {
					runs = append(runs, p.bound(p.pod(fmt.Sprint("runs-", i), "1", online(10), inGroup("ring"), func(o *corev1.Pod) { o.Spec.SchedulerName = "other" }), node))
				}
				for i := range c.comes {
					p.pod(fmt.Sprint("comes-", i), "1", online(10), inGroup("ring"))
				}
				p.passes(30)
				if got := p.take(); len(got)+len(*evicted) > 0 || !strings.Contains(p.said["pod-comes-0"], "in one domain of rack") {
					t.Fatalf("bound %v, evicted %v; it says %q", got, *evicted, p.said["pod-comes-0"])
				}
				c.cure(p, runs)
				p.passes(30)
				got := p.take()
				for _, node := range got {
					if !slices.Contains(c.want, node) {
						t.Errorf("bound %v, want on %v", got, c.want)
					}
				}
				if len(got) != c.comes {
					t.Errorf("bound %v, want %d pods; it says %q", got, c.comes, p.said["pod-comes-0"])
				}
			}
		})
	}
}
