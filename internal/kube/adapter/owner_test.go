package adapter

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// elasticOf are a kind's workload, its elastic part, and where its pod templates are.
var elasticOf = []struct {
	file, part string
	templates  []string
}{
	{"job", "", []string{"spec/template/spec"}},
	{"raycluster", "workers", []string{"spec/headGroupSpec/template/spec", "spec/workerGroupSpecs/0/template/spec", "spec/workerGroupSpecs/1/template/spec"}},
	{"jobset", "workers", nil},
	{"mpijob", "worker", nil},
	{"pytorchjob", "worker", nil},
}

// gate puts Kueue's gate on the pod templates, as its webhook does where it serves elastic workloads of the kind.
func gate(t testing.TB, u *unstructured.Unstructured, templates []string) {
	for _, path := range templates {
		set(t, u, path+"/schedulingGates", []any{map[string]any{"name": "kueue.x-k8s.io/elastic-job"}})
	}
}

// Kueue stops what changes its size after it was admitted, but for what it serves as elastic.
func TestAQueuesSizeIsNotWritten(t *testing.T) {
	for _, c := range elasticOf {
		queued := func(annotations map[string]string, gates []string) *unstructured.Unstructured {
			u := load(t, c.file)
			u.SetLabels(map[string]string{"kueue.x-k8s.io/queue-name": "team"})
			u.SetAnnotations(annotations)
			gate(t, u, gates)
			return u
		}
		elastic := map[string]string{"kueue.x-k8s.io/elastic-job": "true"}
		checkRefusal(t, queued(nil, nil), worker(c.part), "SizeOwnedByKueue", "queue team")
		checkRefusal(t, queued(map[string]string{"kueue.x-k8s.io/elastic-job": "false"}, c.templates), worker(c.part), "SizeOwnedByKueue", "queue team")
		checkRefusal(t, queued(elastic, nil), worker(c.part), "SizeOwnedByKueue", "ElasticJobsViaWorkloadSlices")
		if c.templates != nil {
			checkRefusal(t, queued(elastic, c.templates), worker(c.part), "", "")
		}
		if len(c.templates) > 1 {
			checkRefusal(t, queued(elastic, c.templates[1:]), worker(c.part), "SizeOwnedByKueue", "pod templates")
		}
		prebuilt := load(t, c.file)
		prebuilt.SetLabels(map[string]string{"kueue.x-k8s.io/prebuilt-workload-name": "made"})
		checkRefusal(t, prebuilt, worker(c.part), "SizeOwnedByKueue", "bert is admitted by Kueue")
	}
}

// Kueue knows no jobs of Volcano: its label says nothing there.
func TestKueueHasNoVolcanoJobs(t *testing.T) {
	u := load(t, "volcanojob")
	u.SetLabels(map[string]string{"kueue.x-k8s.io/queue-name": "team"})
	checkRefusal(t, u, worker("workers"), "", "")
}

// A member that keeps its size needs no other owner.
func TestAQueueAdmitsStableMembers(t *testing.T) {
	for file, part := range map[string]string{"mpijob": "launcher", "raycluster": "head", "pytorchjob": "master"} {
		u := load(t, file)
		u.SetLabels(map[string]string{"kueue.x-k8s.io/queue-name": "team"})
		m := worker(part)
		m.Min, m.Max, m.Stable = 1, 1, true
		checkRefusal(t, u, m, "", "")
	}
}

// An owner whose spec holds the size writes it back, or makes the workload again with its own.
func TestAnOwnersSizeIsNotWritten(t *testing.T) {
	for _, c := range []struct {
		file, part, apiVersion, kind, want string
	}{
		{"raycluster", "workers", "ray.io/v1", "RayJob", "spec.clusterSelector"},
		{"raycluster", "workers", "ray.io/v1", "RayService", "ElasticService"},
		{"jobset", "workers", "trainer.kubeflow.org/v1alpha1", "TrainJob", "name the TrainJob"},
		{"job", "", "jobset.x-k8s.io/v1alpha2", "JobSet", "name the JobSet"},
		{"job", "", "kubeflow.org/v2beta1", "MPIJob", "name the MPIJob"},
		{"job", "", "workload.codeflare.dev/v1beta2", "AppWrapper", "AppWrapper"},
		{"job", "", "batch/v1", "CronJob", ""},
		{"job", "", "argoproj.io/v1alpha1", "Workflow", ""},
		{"raycluster", "workers", "example.org/v1", "RayJob", ""},
	} {
		u := load(t, c.file)
		set(t, u, "metadata/ownerReferences", []any{map[string]any{"apiVersion": c.apiVersion, "kind": c.kind, "name": "owner", "uid": "u", "controller": true}})
		want := "SizeOwnedElsewhere"
		if c.want == "" {
			want = ""
		}
		checkRefusal(t, u, worker(c.part), want, c.want)
	}
}

// A workload that another controller runs has no pods here.
func TestManagedElsewhere(t *testing.T) {
	for _, c := range []struct{ file, part, path, own string }{
		{"job", "", "spec/managedBy", "kubernetes.io/job-controller"},
		{"jobset", "workers", "spec/managedBy", "jobset.sigs.k8s.io/jobset-controller"},
		{"raycluster", "workers", "spec/managedBy", "ray.io/kuberay-operator"},
		{"mpijob", "worker", "spec/runPolicy/managedBy", "kubeflow.org/mpi-operator"},
		{"pytorchjob", "worker", "spec/runPolicy/managedBy", "kubeflow.org/training-operator"},
	} {
		u := load(t, c.file)
		set(t, u, c.path, "kueue.x-k8s.io/multikueue")
		checkRefusal(t, u, worker(c.part), "ManagedElsewhere", "kueue.x-k8s.io/multikueue")
		set(t, u, c.path, c.own)
		checkRefusal(t, u, worker(c.part), "", "")
	}
}

// A workload that is suspended may wait for its admission: no advice goes round it.
func TestNoAdviceGoesRoundAnAdmission(t *testing.T) {
	for _, c := range []struct{ file, part, path string }{
		{"job", "", "spec/suspend"}, {"jobset", "workers", "spec/suspend"}, {"raycluster", "workers", "spec/suspend"},
		{"raycluster", "workers", "spec/workerGroupSpecs/1/suspend"},
		{"mpijob", "worker", "spec/runPolicy/suspend"}, {"pytorchjob", "worker", "spec/runPolicy/suspend"}, {"sparkapplication", "executor", "spec/suspend"},
	} {
		for queue, by := range map[string]string{"": "the user or the queue that suspended it", "team": "Kueue, which admits it by queue team"} {
			u := load(t, c.file)
			set(t, u, c.path, true)
			if queue != "" {
				u.SetLabels(map[string]string{"kueue.x-k8s.io/queue-name": queue})
			}
			w := adapterOf(t, u).Read(u)
			var all string
			for _, x := range Refusals(&w, worker(c.part)) {
				all += x.String() + "\n"
			}
			if !strings.Contains(all, "JobSuspended: ") || !strings.Contains(all, by) || strings.Contains(all, "resume") {
				t.Errorf("%s, queue %q: %s", c.file, queue, all)
			}
		}
	}
}
