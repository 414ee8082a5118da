package kube

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// foreign is one operator's workload in testdata/workloads, four members strong, and where its size stands.
type foreign struct {
	file, part string
	size       []string
}

func foreigners() []foreign {
	return []foreign{
		{"mpijob", "worker", []string{"spec", "mpiReplicaSpecs", "Worker", "replicas"}},
		{"pytorchjob", "worker", []string{"spec", "pytorchReplicaSpecs", "Worker", "replicas"}},
		{"raycluster", "workers", []string{"spec", "workerGroupSpecs", "1", "replicas"}},
		{"volcanojob", "workers", []string{"spec", "tasks", "1", "replicas"}},
	}
}

// readWorkload reads a file of testdata/workloads under another name.
func readWorkload(t testing.TB, file, name string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("testdata/workloads/" + file + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(string(text), "bert", name)))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(asJSON); err != nil {
		t.Fatal(err)
	}
	return u
}

// foreignWorkload is an object as an API server gives it.
func foreignWorkload(t testing.TB, file string) *unstructured.Unstructured {
	t.Helper()
	u := readWorkload(t, file, "bert")
	u.SetUID(kubetest.UID(u.GetKind(), "bert"))
	u.SetResourceVersion("100")
	u.SetCreationTimestamp(kubetest.Stamp(time.Hour))
	return u
}

// jobOn is an ElasticJob on one part of a workload.
func jobOn(u *unstructured.Unstructured, part string, low, high int32) *v1alpha1.ElasticJob {
	j := kubetest.ElasticJob("bert")
	j.Namespace = u.GetNamespace()
	j.Spec.Members = []v1alpha1.JobMember{{Role: "worker", Part: part, Min: low, Max: high,
		WorkloadRef: v1alpha1.TargetRef{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName()}}}
	return j
}

func resizeOf(u *unstructured.Unstructured, job string, from, to int32) planner.JobScale {
	return planner.JobScale{Job: fleet.JobID(u.GetNamespace() + "/" + job), Role: "worker", Kind: u.GetKind(),
		Workload: fleet.Name{Namespace: u.GetNamespace(), Name: u.GetName()}, From: from, To: to}
}

func sizeIn(t testing.TB, u *unstructured.Unstructured, path []string) int64 {
	t.Helper()
	var v any = u.Object
	for _, p := range path {
		switch x := v.(type) {
		case map[string]any:
			v = x[p]
		case []any:
			v = x[p[0]-'0']
		}
	}
	n, ok := v.(int64)
	if !ok {
		t.Fatalf("%v is %v", path, v)
	}
	return n
}

// TestForeignWorkloads: each operator's workload is read, and resized by its own field.
func TestForeignWorkloads(t *testing.T) {
	for _, f := range foreigners() {
		t.Run(f.file, func(t *testing.T) {
			u := foreignWorkload(t, f.file)
			w := newWorld(t, u, jobOn(u, f.part, 1, 8))
			ad, _ := adapter.For(u.GetAPIVersion(), u.GetKind())
			j := w.snapshot(t).Job("train/bert")
			if m := j.Members[0]; j.Blocked.Any() || m.Desired != 4 || m.UID != fleet.UID(u.GetUID()) || f.file != "raycluster" && m.Request.CPU != 8000 {
				t.Fatalf("blocked %q, member %+v", j.Blocked, m)
			}
			for _, to := range []int32{7, 2} {
				from := w.snapshot(t).Job("train/bert").Members[0].Desired
				if rs := w.do(t, planner.Plan{Jobs: []planner.JobScale{resizeOf(u, "bert", from, to)}}); rs[0].Outcome != loop.Done {
					t.Fatalf("%d -> %d: %+v", from, to, rs[0])
				}
				now, err := w.dyn.Resource(ad.Resource()).Namespace("train").Get(t.Context(), "bert", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got := sizeIn(t, now, f.size); got != int64(to) || leadership.StampOn(now) != (leadership.Stamp{Epoch: 7,
					Lease: kubetest.Lease}) {
					t.Fatalf("size %d, want %d; annotations %v", got, to, now.GetAnnotations())
				}
				waitFor(t, func() bool { return w.snapshot(t).Job("train/bert").Members[0].Desired == to })
			}
			if rs := w.do(t, planner.Plan{Jobs: []planner.JobScale{resizeOf(u, "bert", 7, 3)}}); rs[0].Outcome != loop.Stale {
				t.Errorf("from a size that is no more: %+v", rs[0])
			}
		})
	}
}

// TestForeignWriterOfSize: another client's write between the decision and ours is never undone, nor is one in the
// blink between read and patch.
func TestForeignWriterOfSize(t *testing.T) {
	u := foreignWorkload(t, "raycluster")
	w := newWorld(t, u, jobOn(u, "workers", 1, 8))
	gvr := schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}
	w.snapshot(t)
	var patches atomic.Int32
	w.dyn.PrependReactor("patch", "rayclusters", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if patches.Add(1) == 1 {
			theirs := u.DeepCopy()
			groups, _, _ := unstructured.NestedSlice(theirs.Object, "spec", "workerGroupSpecs")
			groups[1].(map[string]any)["replicas"] = int64(5)
			if err := unstructured.SetNestedSlice(theirs.Object, groups, "spec", "workerGroupSpecs"); err != nil {
				t.Error(err)
			}
			if err := w.dyn.Tracker().Update(gvr, theirs, "train"); err != nil {
				t.Error(err)
			}
		}
		return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "RayCluster"}, "bert", nil)
	})
	rs := w.do(t, planner.Plan{Jobs: []planner.JobScale{resizeOf(u, "bert", 4, 7)}})
	if rs[0].Outcome != loop.Stale || patches.Load() != 1 {
		t.Errorf("result %+v after %d patches, want Stale after one", rs[0], patches.Load())
	}
}

// TestMadeAgain: a workload under the same name is another one, and is not resized by what was decided on the old one.
func TestMadeAgain(t *testing.T) {
	u := foreignWorkload(t, "raycluster")
	w := newWorld(t, u, jobOn(u, "workers", 1, 8))
	w.snapshot(t)
	renewed := u.DeepCopy()
	renewed.SetUID("another")
	w.dyn.PrependReactor("get", "rayclusters", func(clienttesting.Action) (bool, runtime.Object, error) { return true, renewed, nil })
	w.dyn.PrependReactor("patch", "rayclusters", func(clienttesting.Action) (bool, runtime.Object, error) {
		t.Error("it was written")
		return true, renewed, nil
	})
	if rs := w.do(t, planner.Plan{Jobs: []planner.JobScale{resizeOf(u, "bert", 4, 7)}}); rs[0].Outcome != loop.Stale {
		t.Errorf("result %+v", rs[0])
	}
}

// TestSelfSized: what sizes itself is read and counted, and never written.
func TestSelfSized(t *testing.T) {
	u := foreignWorkload(t, "sparkapplication")
	driver := kubetest.Pod("train", "bert-driver", "", "SparkApplication", "bert")
	driver.Labels = map[string]string{"spark-role": "driver"}
	executor := kubetest.Pod("train", "bert-exec-1", "", "Pod", "bert-driver")
	executor.Labels = map[string]string{"spark-role": "executor"}
	executor.OwnerReferences[0].UID = driver.UID
	e := jobOn(u, "executor", 0, 8)
	e.Spec.Members = append(e.Spec.Members, v1alpha1.JobMember{Role: "driver", Stable: true, Min: 1, Max: 1, WorkloadRef: e.Spec.Members[0].WorkloadRef})
	w := newWorld(t, u, e, driver, executor)
	s := w.snapshot(t)
	j := s.Job("train/bert")
	if m := j.Members[0]; j.Blocked.Any() || !m.SelfSized || m.Desired != 4 || m.Remaining != 4 || m.Active != 1 || m.Request.CPU != 2000 { // as its pod asks, not the 8 cores of the spec
		t.Errorf("blocked %q, executors %+v", j.Blocked, m)
	}
	if m := j.Members[1]; !m.Fixed || m.Active != 1 {
		t.Errorf("driver %+v", m)
	}
	for name, role := range map[string]string{"bert-driver": "driver", "bert-exec-1": "worker"} {
		i := slices.IndexFunc(s.Pods, func(p fleet.Pod) bool { return p.Name.Name == name })
		if p := s.Pods[i]; p.Job != "train/bert" || p.Role != role || p.Class != fleet.PodOffline {
			t.Errorf("%s is %s of %q, class %s", name, p.Role, p.Job, p.Class)
		}
	}
	if rs := w.do(t, planner.Plan{Jobs: []planner.JobScale{resizeOf(u, "bert", 4, 7)}}); rs[0].Outcome != loop.Stale {
		t.Errorf("a resize of what sizes itself: %+v", rs[0])
	}
}

// TestForeignPods: pods find their member by owner and label, a launcher's through the Job between.
func TestForeignPods(t *testing.T) {
	u := foreignWorkload(t, "mpijob")
	launcherJob := kubetest.BatchJob("bert-launcher", 1)
	launcherJob.OwnerReferences = kubetest.OwnedBy("MPIJob", "bert")
	launcher := kubetest.Pod("train", "bert-launcher-x", "", "Job", "bert-launcher")
	launcher.Labels = map[string]string{"training.kubeflow.org/job-role": "launcher"}
	one := kubetest.Pod("train", "bert-worker-0", "", "MPIJob", "bert")
	one.Labels = map[string]string{"training.kubeflow.org/job-role": "worker"}
	leaving := one.DeepCopy()
	leaving.Name, leaving.UID, leaving.DeletionTimestamp, leaving.Finalizers = "bert-worker-1", "w1",
		kubetest.Ptr(kubetest.Stamp(0)), []string{"x"}
	stray := kubetest.Pod("train", "stray", "", "MPIJob", "bert") // of no part that is named
	e := jobOn(u, "worker", 1, 8)
	e.Spec.Members = append(e.Spec.Members, v1alpha1.JobMember{Role: "launcher", Stable: true, Min: 1, Max: 1, WorkloadRef: e.Spec.Members[0].WorkloadRef})
	s := newWorld(t, u, e, launcherJob, launcher, one, leaving, stray).snapshot(t)
	j := s.Job("train/bert")
	if m := j.Members; j.Blocked.Any() || m[0].Active != 1 || m[0].Ending != 1 || m[1].Active != 1 || !m[1].Fixed || m[0].Leaves != fleet.LeavesHighest {
		t.Errorf("blocked %q, members %+v", j.Blocked, m)
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		want := map[string]string{"bert-launcher-x": "launcher", "bert-worker-0": "worker", "bert-worker-1": "worker", "stray": ""}[p.Name.Name]
		if p.Role != want {
			t.Errorf("%s has role %q, want %q", p.Name, p.Role, want)
		}
	}
}

// TestJobSet: the size of a JobSet's part is that of the Job it made, which is written in its place.
func TestJobSet(t *testing.T) {
	u := foreignWorkload(t, "jobset")
	child := kubetest.BatchJob("bert-workers-0", 4)
	w := newWorld(t, u, jobOn(u, "workers", 1, 8), child)
	if got := w.snapshot(t).Job("train/bert").Blocked.String(); !strings.HasPrefix(got, "WorkloadNotFound: ") {
		t.Errorf("a Job of that name that is not the JobSet's: %q", got)
	}
	child = kubetest.BatchJob("bert-workers-0", 4)
	child.OwnerReferences = kubetest.OwnedBy("JobSet", "bert")
	w = newWorld(t, u, jobOn(u, "workers", 1, 8), child, kubetest.Pod("train", "bert-workers-0-0", "", "Job",
		"bert-workers-0"))
	s := w.snapshot(t)
	if j := s.Job("train/bert"); j.Blocked.Any() || j.Members[0].Desired != 4 || s.Pods[0].Role != "worker" {
		t.Fatalf("blocked %q, member %+v, pod of %q", j.Blocked, j.Members[0], s.Pods[0].Role)
	}
	if rs := w.do(t, planner.Plan{Jobs: []planner.JobScale{resizeOf(u, "bert", 4, 6)}}); rs[0].Outcome != loop.Done {
		t.Fatalf("result %+v", rs[0])
	}
	got, err := w.core.BatchV1().Jobs("train").Get(t.Context(), "bert-workers-0", metav1.GetOptions{})
	if err != nil || *got.Spec.Parallelism != 6 {
		t.Errorf("parallelism %d, %v", *got.Spec.Parallelism, err)
	}
	// Parameter servers in two Jobs keep their size: their pods are found by label, through Job and JobSet.
	groups, _, _ := unstructured.NestedSlice(u.Object, "spec", "replicatedJobs")
	groups[0].(map[string]any)["replicas"] = int64(2)
	twice := u.DeepCopy()
	if err := unstructured.SetNestedSlice(twice.Object, groups, "spec", "replicatedJobs"); err != nil {
		t.Fatal(err)
	}
	e := jobOn(u, "workers", 1, 8)
	e.Spec.Members = append(e.Spec.Members, v1alpha1.JobMember{Role: "ps", Stable: true, Min: 4, Max: 4, WorkloadRef: e.Spec.Members[0].WorkloadRef})
	second := kubetest.BatchJob("bert-ps-1", 2)
	second.OwnerReferences = kubetest.OwnedBy("JobSet", "bert")
	server := kubetest.Pod("train", "bert-ps-1-0", "", "Job", "bert-ps-1")
	server.Labels = map[string]string{"jobset.sigs.k8s.io/replicatedjob-name": "ps"}
	s = newWorld(t, twice, e, child, second, server).snapshot(t)
	if m := s.Job("train/bert").Members[1]; s.Job("train/bert").Blocked.Any() || m.Desired != 4 || m.Active != 1 || !m.Fixed || s.Pods[0].Role != "ps" {
		t.Errorf("blocked %q, servers %+v, pod of %q", s.Job("train/bert").Blocked, m, s.Pods[0].Role)
	}
	ended := u.DeepCopy()
	if err := unstructured.SetNestedSlice(ended.Object, []any{map[string]any{"type": "Completed", "status": "True"}}, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	for _, left := range [][]metav1.Object{nil, {child}} { // its Jobs are deleted by and by
		s := newWorld(t, append([]metav1.Object{ended, jobOn(u, "workers", 1, 8)}, left...)...).snapshot(t)
		if j := s.Job("train/bert"); j.Blocked.Any() || j.Members[0].Remaining != 0 {
			t.Errorf("blocked %q after its end, member %+v", j.Blocked, j.Members[0])
		}
	}
	suspended := child.DeepCopy()
	suspended.Spec.Suspend = kubetest.Ptr(true)
	if got := newWorld(t, u, jobOn(u, "workers", 1, 8), suspended).snapshot(t).Job("train/bert").Blocked.String(); !strings.HasPrefix(got, "JobSuspended: ") {
		t.Errorf("blocked %q", got)
	}
}

// TestKindsComeAndGo: an operator that is not installed is silent until a job names its kind, is picked up when it is
// installed, and is let go when it is removed, or no job names it.
func TestKindsComeAndGo(t *testing.T) {
	u := foreignWorkload(t, "raycluster")
	w := newWorld(t, u)
	var hidden atomic.Bool
	hidden.Store(true)
	w.core.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
		if hidden.Load() {
			return true, nil, apierrors.NewNotFound(schema.GroupResource{}, "group")
		}
		return false, nil, nil
	})
	if got := len(w.Kinds.Watched); got != 0 {
		t.Fatalf("%d kinds are watched that nobody named", got)
	}
	raw, err := object.Encode(object.GVRJobs, jobOn(u, "workers", 0, 8))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.dyn.Tracker().Create(object.GVRJobs, raw, "train"); err != nil {
		t.Fatal(err)
	}
	blocked := func() string {
		if j := w.snapshot(t).Job("train/bert"); j != nil {
			return j.Blocked.String()
		}
		return "no job"
	}
	waitFor(t, func() bool {
		return strings.HasPrefix(blocked(), "KindNotInstalled: member worker: the cluster has no RayCluster of ray.io/v1")
	})
	// Installed, and not to be read: that is not the same as empty.
	var forbidden atomic.Bool
	forbidden.Store(true)
	w.dyn.PrependReactor("list", "rayclusters", func(clienttesting.Action) (bool, runtime.Object, error) {
		return forbidden.Load(), nil, apierrors.NewForbidden(schema.GroupResource{Resource: "rayclusters"}, "", nil)
	})
	hidden.Store(false)
	w.RefreshKinds(t.Context())
	if got := blocked(); !strings.HasPrefix(got, "KindNotRead: member worker: rayclusters.ray.io") {
		t.Errorf("blocked %q", got)
	}
	forbidden.Store(false)
	waitFor(t, func() bool { return blocked() == "" })
	hidden.Store(true)
	w.RefreshKinds(t.Context())
	if got := blocked(); !strings.HasPrefix(got, "KindNotInstalled: ") {
		t.Errorf("after it was removed: %q", got)
	}
	hidden.Store(false)
	w.RefreshKinds(t.Context())
	if err := w.dyn.Tracker().Delete(object.GVRJobs, "train", "bert"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return w.snapshot(t).Job("train/bert") == nil })
	w.RefreshKinds(t.Context())
	if w.Kinds.Get(watch.KindName{APIVersion: "ray.io/v1", Kind: "RayCluster"}) != nil {
		t.Error("a kind that nobody names any more is still watched")
	}
}

// TestTwoJobsOneWorkload: parts of one workload belong to one job.
func TestTwoJobsOneWorkload(t *testing.T) {
	u := foreignWorkload(t, "raycluster")
	older, younger := jobOn(u, "workers", 0, 8), jobOn(u, "gpu_group", 1, 2)
	younger.Name, younger.UID, younger.CreationTimestamp = "zweit", types.UID("zweit"), kubetest.Stamp(time.Minute)
	s := newWorld(t, u, older, younger).snapshot(t)
	if a, b := s.Job("train/bert").Blocked, s.Job("train/zweit").Blocked; a.Any() || b.Reason != "Conflicted" {
		t.Errorf("older %q, younger %q", a, b)
	}
	both := jobOn(u, "workers", 0, 8)
	both.Spec.Members = append(both.Spec.Members, younger.Spec.Members[0])
	both.Spec.Members[1].Role = "gpu"
	j := newWorld(t, u, both).snapshot(t).Job("train/bert")
	if j.Blocked.Any() || j.Members[0].Desired != 4 || j.Members[1].Desired != 1 {
		text, _ := json.Marshal(j.Members)
		t.Errorf("blocked %q, members %s", j.Blocked, text)
	}
}

func waitFor(t *testing.T, f func() bool) {
	t.Helper()
	for limit := time.Now().Add(10 * time.Second); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("waited in vain")
		}
	}
}
