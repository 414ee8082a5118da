package host

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

// TestThePodGroupOfAJob: where a PodGroup was made for an ElasticJob the job is the gang, with the pods that do not name the group too: those that were made
// before the group was there. How it stands is said on the group.
func TestThePodGroupOfAJob(t *testing.T) {
	yes := true
	job := func(least int32) *v1alpha1.ElasticJob {
		return &v1alpha1.ElasticJob{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "default"}, Spec: v1alpha1.ElasticJobSpec{
			Members: []v1alpha1.JobMember{{Role: "worker", Min: least, WorkloadRef: v1alpha1.TargetRef{Kind: "Job", Name: "train"}}}}}
	}
	of := func(owner string) func(*corev1.Pod) {
		return func(o *corev1.Pod) {
			o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: owner, UID: "job", Controller: &yes}}
		}
	}
	for name, c := range map[string]struct {
		grouped, plain int // pods that name the group, and that do not
		least          int32
		first          bool // the group is known before the job
		cpu            string
		want           int
		said           string
	}{
		"all name it":                         {3, 0, 3, false, "1", 3, "true"},
		"none does":                           {0, 3, 3, false, "1", 3, ""},
		"some came before it":                 {1, 2, 3, false, "1", 3, "true"},
		"some came before, and the job later": {2, 1, 3, true, "1", 3, "true"},
		"one is missing":                      {1, 1, 3, false, "1", 0, ""},
		"no room for all":                     {1, 2, 3, false, "3", 0, "false"},
		"more than the minimum":               {3, 1, 2, false, "1", 4, "true"},
		"no minimum any more":                 {1, 0, 1, false, "1", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			said := ""
			p.c.gangs.result = func(o *podGroup, placed bool, _ string) { said = fmt.Sprint(placed) }
			p.c.preempt.evict = func(o *corev1.Pod, _ func(error)) { t.Errorf("%s is evicted", o.Name) }
			p.node("a", "8")
			made := map[string]*corev1.Pod{}
			group := &podGroup{namespace: "default", name: "train-gang", uid: "g", minCount: 3, job: "default/train"}
			if !c.first {
				p.c.setJob("default/train", job(c.least))
			}
			p.c.setGroup("default/train-gang", group)
			for i := range c.plain {
				n := fmt.Sprint("plain-", i)
				made[n] = p.pod(n, c.cpu, of("train"))
			}
			for i := range c.grouped {
				n := fmt.Sprint("grouped-", i)
				made[n] = p.pod(n, c.cpu, of("train"), inGroup("train-gang"))
			}
			if c.first {
				p.c.setJob("default/train", job(c.least))
			}
			p.settle()
			got := p.take()
			for n, node := range got {
				p.seen(made[n], node)
			}
			if len(got) != c.want || said != c.said {
				t.Errorf("bound %v, want %d; the group says %q, want %q; the pods %v", got, c.want, said, c.said, p.said)
			}
			p.now = p.now.Add(p.c.gangs.timeout * 2)
			p.c.tick(p.now)
		})
	}
}
