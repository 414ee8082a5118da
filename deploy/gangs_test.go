package deploy_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/plane"
)

// TestPodsOfJobsNameTheirGroup: pods of an ElasticJob that has a PodGroup name it; pods of others, of divisible members, and those that name one already come in
// as they are. On the oldest Kubernetes that takes the policy a job has no PodGroup, and its pods come in as they are.
func TestPodsOfJobsNameTheirGroup(t *testing.T) {
	for name, o := range map[string]plane.Options{"newest": {}, "1.36": {EmulatedVersion: "1.36"}} {
		t.Run(name, func(t *testing.T) {
			_, core, dyn := startWith(t, o, render(t, "offline"))
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(`
apiVersion: springtide.dev/v1alpha1
kind: ElasticJob
metadata: {name: train, namespace: default}
spec:
  members:
    - {role: worker, min: 2, max: 4, workloadRef: {apiVersion: batch/v1, kind: Job, name: train}}
    - {role: fill, min: 0, max: 4, divisible: true, workloadRef: {apiVersion: batch/v1, kind: Job, name: fill}}
`), &u.Object); err != nil {
				t.Fatal(err)
			}
			jobs := dyn.Resource(v1alpha1.GroupVersion.WithResource("elasticjobs")).Namespace("default")
			if _, err := jobs.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			await(t, "the service account", func() bool {
				_, err := core.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
				return err == nil
			})
			yes, other := true, "other"
			groupOf := func(kind, owner string, change func(*corev1.Pod)) string {
				t.Helper()
				p := pod("p")
				p.Namespace = "default"
				if owner != "" {
					p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: kind, Name: owner, UID: "u", Controller: &yes}}
				}
				if change != nil {
					change(p)
				}
				made, err := core.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				if err != nil {
					t.Fatal(err)
				}
				if s := made.Spec.SchedulingGroup; s != nil && s.PodGroupName != nil {
					return *s.PodGroupName
				}
				return ""
			}
			if got := groupOf("Job", "train", nil); got != "" {
				t.Errorf("before there is a group, a pod names %q", got)
			}
			if o.EmulatedVersion != "" {
				return
			}
			if _, err := jobs.Patch(t.Context(), "train", "application/merge-patch+json", []byte(`{"status":{"podGroup":"train-gang"}}`), metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
			await(t, "a pod of the job to name the group", func() bool { return groupOf("Job", "train", nil) == "train-gang" })
			for _, c := range []struct {
				what, kind, owner string
				change            func(*corev1.Pod)
				want              string
			}{
				{"of another Job", "Job", "other", nil, ""},
				{"of another kind", "CronJob", "train", nil, ""},
				{"of no controller", "", "", nil, ""},
				{"of a divisible member", "Job", "fill", nil, ""},
				{"that names a group", "Job", "train", func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &other} }, "other"},
			} {
				if got := groupOf(c.kind, c.owner, c.change); got != c.want {
					t.Errorf("a pod %s names %q, want %q", c.what, got, c.want)
				}
			}
		})
	}
}
