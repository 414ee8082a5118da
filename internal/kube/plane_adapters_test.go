//go:build plane

package kube

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/act"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/kube/snapshot"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// fault is one setting that makes return impossible, written before the workload is created: the definition must keep it.
type fault struct {
	path  string // "spec/tasks/1/replicas"
	value any    // nil takes the field out
	want  string // the reason, and what its sentence has to name
	names string
}

// adapted is what a real API server must show of one kind.
type adapted struct {
	file, part string
	low        int32    // the member's minimum; the maximum is 8
	size       []string // the field that holds the size, in its carrier; nil where it must not be written
	blocked    string   // the reason for which no workload of this kind is ever lent to
	labels     map[string]string
	faults     []fault
	ended      string // the status of a workload that wants nothing any more; empty where the kind has none
}

func adaptedKinds() []adapted {
	const stamp = `"reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"`
	elastic := func(flags string) []any {
		return argv("horovodrun --min-np 2 --max-np 16 " + flags + " python train.py")
	}
	launcher := "spec/mpiReplicaSpecs/Launcher/template/spec/containers/0/command"
	return []adapted{
		{file: "job", low: 1, size: []string{"spec", "parallelism"}, faults: []fault{
			{"spec/podFailurePolicy", nil, "PodFailurePolicyMissing", "DisruptionTarget"},
			{"spec/podFailurePolicy/rules", []any{map[string]any{"action": "FailJob", "onExitCodes": map[string]any{"operator": "In", "values": []any{int64(137), int64(143)}}},
				map[string]any{"action": "Ignore", "onPodConditions": []any{map[string]any{"type": "DisruptionTarget", "status": "True"}}}}, "PodFailurePolicyOrder", "spec.podFailurePolicy.rules.0"},
			{"spec/suspend", true, "JobSuspended", "spec.suspend"},
			{"spec/template/spec/containers/0/command", argv("torchrun --rdzv-backend=c10d --nnodes=1:8 --max-restarts=3 --rdzv-conf=last_call_timeout=5 train.py"), "MaxRestartsTooLow", "--max-restarts"},
			{"spec/template/spec/containers/0/command", argv("torchrun --rdzv-backend=c10d --nnodes=1:8 --max-restarts=2000 train.py"), "LastCallTooLong", "last_call_timeout"},
		}},
		{file: "mpijob", part: "worker", low: 1, size: []string{"spec", "mpiReplicaSpecs", "Worker", "replicas"},
			labels: map[string]string{"training.kubeflow.org/job-role": "worker"},
			faults: []fault{
				{"spec/runPolicy/cleanPodPolicy", nil, "CleanPodPolicyMissing", "spec.runPolicy.cleanPodPolicy"},
				{"spec/runPolicy/suspend", true, "JobSuspended", "spec.runPolicy.suspend"},
				{launcher, argv("mpirun -np 4 python train.py"), "LauncherNotElastic", "horovodrun"},
				{launcher, elastic("--host-discovery-script /hosts"), "BlacklistWithoutCooldown", "--blacklist-cooldown-range"},
			},
			ended: `{"conditions":[{"type":"Succeeded","status":"True"}]}`},
		{file: "pytorchjob", part: "worker", low: 1, size: []string{"spec", "pytorchReplicaSpecs", "Worker", "replicas"},
			labels: map[string]string{"training.kubeflow.org/replica-type": "worker"},
			faults: []fault{
				{"spec/elasticPolicy", nil, "ElasticPolicyMissing", "spec.elasticPolicy"},
				{"spec/elasticPolicy/maxRestarts", int64(3), "MaxRestartsTooLow", "spec.elasticPolicy.maxRestarts"},
				{"spec/elasticPolicy/rdzvConf", nil, "LastCallTooLong", "last_call_timeout"},
				{"spec/elasticPolicy/rdzvHost", nil, "RendezvousOnWorker", "spec.elasticPolicy.rdzvHost"},
				{"spec/elasticPolicy/minReplicas", int64(3), "BoundsDiffer", "spec.elasticPolicy.minReplicas"},
			},
			ended: `{"conditions":[{"type":"Failed","status":"True"}],"replicaStatuses":{}}`},
		{file: "trainjob", low: 1, blocked: "FixedMembership: spec.trainer.numNodes",
			ended: `{"conditions":[{"type":"Complete","status":"True",` + stamp + `}]}`},
		{file: "jobset", part: "workers", low: 1, size: []string{"spec", "parallelism"}, faults: []fault{
			{"spec/suspend", true, "JobSuspended", "spec.suspend"},
			{"spec/replicatedJobs/1/template/spec/podFailurePolicy", nil, "PodFailurePolicyMissing", "DisruptionTarget"},
			{"spec/replicatedJobs/1/replicas", int64(3), "RoleMustBeStable", "3 Jobs"},
		}},
		{file: "raycluster", part: "workers", size: []string{"spec", "workerGroupSpecs", "1", "replicas"},
			labels: map[string]string{"ray.io/group": "workers", "ray.io/node-type": "worker"},
			faults: []fault{
				{"spec/enableInTreeAutoscaling", true, "ForeignScaler", "spec.enableInTreeAutoscaling"},
				{"spec/workerGroupSpecs/1/numOfHosts", int64(2), "MultiHostGroup", "numOfHosts"},
				{"spec/workerGroupSpecs/1/maxReplicas", int64(6), "BoundsDiffer", "maxReplicas"},
				{"spec/workerGroupSpecs/1/suspend", true, "JobSuspended", "spec.workerGroupSpecs.1.suspend"},
				{"spec/suspend", true, "JobSuspended", "spec.suspend"},
			}},
		{file: "sparkapplication", part: "executor", faults: []fault{
			{"spec/dynamicAllocation/enabled", false, "DynamicAllocationOff", "spec.dynamicAllocation.enabled"},
			{"spec/dynamicAllocation/minExecutors", int64(1), "BoundsDiffer", "spec.dynamicAllocation.minExecutors"},
			{"spec/sparkConf/spark.decommission.enabled", "false", "DecommissionOff", "spark.decommission.enabled"},
			{"spec/sparkConf/spark.stage.ignoreDecommissionFetchFailure", nil, "FetchFailuresCount", "ignoreDecommissionFetchFailure"},
		}, ended: `{"applicationState":{"state":"COMPLETED"},"executorState":{"b":"RUNNING"}}`},
		{file: "volcanojob", part: "workers", size: []string{"spec", "tasks", "1", "replicas"},
			labels: map[string]string{"volcano.sh/task-spec": "workers"},
			faults: []fault{
				{"spec/policies/0/action", "RestartJob", "PolicyEndsJob", "PodFailed with RestartJob"},
				{"spec/tasks/1/policies", []any{map[string]any{"exitCode": int64(143), "action": "TerminateJob"}}, "PolicyEndsJob", "PodFailed with TerminateJob"},
				{"spec/minAvailable", int64(4), "BoundsDiffer", "spec.minAvailable"},
			},
			ended: `{"state":{"phase":"Completed"}}`},
	}
}

func argv(s string) []any {
	var out []any
	for w := range strings.FieldsSeq(s) {
		out = append(out, w)
	}
	return out
}

// TestPlaneAdapters leads a workload of every kind that an adapter knows through what a cluster does with it, on the
// operators' own definitions and with the controller's own rights: it is read, refused with the setting that stands in
// the way, resized by its public field, read again as its status moves on, and left alone where another client wrote.
func TestPlaneAdapters(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	kinds := adaptedKinds()
	for _, ad := range adapter.All() {
		i := slices.IndexFunc(kinds, func(k adapted) bool { return adapterFor(t, k.file) == ad })
		if i < 0 {
			t.Errorf("%v is not tested here", ad.Kind())
			continue
		}
		k := kinds[i]
		t.Run(k.file, func(t *testing.T) {
			if ad.Kind() != adapter.KindBatchJob {
				p.define(t, ad)
			}
			p.refuses(t, ad, k)
			w := p.bring(t, ad, k)
			switch {
			case k.blocked != "":
				if j := p.job(t, w.job); !strings.HasPrefix(j.Blocked.String(), k.blocked) {
					t.Fatalf("blocked %q, want %s", j.Blocked, k.blocked)
				}
			case k.size == nil:
				w.sizesItself(t)
			default:
				w.resizes(t)
				w.countsPods(t)
				w.conflicts(t)
			}
			w.ends(t)
		})
	}
}

// refuses submits the workload with one setting wrong after the other.
func (p *plane) refuses(t *testing.T, ad adapter.Adapter, k adapted) {
	t.Helper()
	for _, f := range k.faults {
		t.Logf("%s = %v", f.path, f.value)
		id := "r-" + rand.String(5)
		u := nowhere(t, k.file, id)
		changeField(t, u, strings.Split(f.path, "/"), f.value)
		u = p.submit(t, ad, u)
		if k.file == "jobset" {
			p.replicate(t, u, id+"-workers-0")
		}
		j := p.elastic(t, u, id, k.part, k.low, 8)
		if !strings.HasPrefix(j.Blocked.String(), f.want+": ") || !strings.Contains(j.Blocked.Message, f.names) {
			t.Errorf("with %s = %v it is blocked by %q, want %s, naming %q", f.path, f.value, j.Blocked, f.want, f.names)
		}
	}
}

// elsewhere is a node selector that no machine of these tests fulfils: what is left of one test takes no room from another.
var elsewhere = map[string]string{"example.com/elsewhere": "true"}

// nowhere reads a workload of which no pod will ever be bound.
func nowhere(t *testing.T, file, name string) *unstructured.Unstructured {
	t.Helper()
	u := readWorkload(t, file, name)
	templates := map[string][]string{"job": {"spec/template/spec/"},
		"jobset": {"spec/replicatedJobs/0/template/spec/template/spec/", "spec/replicatedJobs/1/template/spec/template/spec/"}}
	for _, path := range templates[file] { // of the others no pods are made
		for k, v := range elsewhere {
			changeField(t, u, strings.Split(path+"nodeSelector", "/"), map[string]any{k: v})
		}
	}
	return u
}

// changeField writes a field of an object that was read from a file; nil takes it out.
func changeField(t *testing.T, u *unstructured.Unstructured, path []string, value any) {
	t.Helper()
	var v any = u.Object
	for _, step := range path[:len(path)-1] {
		switch x := v.(type) {
		case map[string]any:
			v = x[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil {
				t.Fatal(err)
			}
			v = x[i]
		}
	}
	fields, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("%v leads to %T", path, v)
	}
	if fields[path[len(path)-1]] = value; value == nil {
		delete(fields, path[len(path)-1])
	}
}

// brought is a workload of one kind on the API server, with the ElasticJob that names it.
type brought struct {
	*plane
	adapted
	adapter adapter.Adapter
	object  *unstructured.Unstructured
	id      string
	job     fleet.JobID
	// The carrier of the size: the workload, or the Job that a JobSet made.
	carrier dynamic.ResourceInterface
	writer  adapter.Adapter
	name    string
}

// bring submits the workload as it may be lent to.
func (p *plane) bring(t *testing.T, ad adapter.Adapter, k adapted) *brought {
	t.Helper()
	id := "w-" + rand.String(5)
	w := &brought{plane: p, adapted: k, adapter: ad, id: id, job: fleet.JobID("default/" + id), writer: ad, name: id}
	w.object = p.submit(t, ad, nowhere(t, k.file, id))
	w.carrier = p.dyn.Resource(ad.Resource()).Namespace("default")
	if k.file == "jobset" {
		w.writer, w.name = snapshot.BatchAdapter, id+"-workers-0"
		w.carrier = p.dyn.Resource(snapshot.BatchAdapter.Resource()).Namespace("default")
		p.replicate(t, w.object, w.name)
	}
	p.elastic(t, w.object, id, k.part, k.low, 8)
	return w
}

// replicate makes the Job of a JobSet's second replicated job, as JobSet's controller would.
func (p *plane) replicate(t *testing.T, set *unstructured.Unstructured, name string) {
	t.Helper()
	groups, _, _ := unstructured.NestedSlice(set.Object, "spec", "replicatedJobs")
	template, _, _ := unstructured.NestedMap(groups[1].(map[string]any), "template", "spec")
	spec := batchv1.JobSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &spec); err != nil {
		t.Fatal(err)
	}
	child := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: ownerOf(set)}, Spec: spec}
	if _, err := p.core.BatchV1().Jobs("default").Create(t.Context(), child, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func ownerOf(u *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(u, u.GroupVersionKind())}
}

func (p *plane) job(t *testing.T, id fleet.JobID) *fleet.Job {
	t.Helper()
	j := p.snapshot(t).Job(id)
	if j == nil {
		t.Fatalf("job %s is gone", id)
	}
	return j
}

// scale is the decision to bring the member from one size to another.
func (w *brought) scale(from, to int32) planner.Plan {
	return planner.Plan{Jobs: []planner.JobScale{resizeOf(w.object, w.id, from, to)}}
}

func (w *brought) get(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	u, err := w.carrier.Get(t.Context(), w.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// resizes leads it up and down.
func (w *brought) resizes(t *testing.T) {
	t.Helper()
	if j := w.plane.job(t, w.job); j.Blocked.Any() || j.Members[0].Desired != 4 || j.Members[0].Request.CPU != 8000 {
		t.Fatalf("blocked %q, member %+v", j.Blocked, j.Members[0])
	}
	for _, x := range [][2]int32{{4, 7}, {7, 2}} {
		w.must(t, w.scale(x[0], x[1]))
		if got := w.plane.job(t, w.job).Members[0].Desired; got != x[1] {
			t.Fatalf("size %d in the next snapshot, want %d", got, x[1])
		}
	}
	if now := w.get(t); sizeIn(t, now, w.size) != 2 || now.GetAnnotations()[v1alpha1.AnnotationLeaderEpoch] == "" {
		t.Errorf("size %d, annotations %v", sizeIn(t, now, w.size), now.GetAnnotations())
	}
}

// countsPods: a Job's own controller follows and its status is read again; of the others the pods are counted that bear the operator's
// labels.
func (w *brought) countsPods(t *testing.T) {
	t.Helper()
	want := int32(2)
	if w.writer != snapshot.BatchAdapter {
		want = 1
		w.pod(t, w.id+"-x", w.labels, ownerOf(w.object))
	}
	until(t, "the pods to be counted", func() bool { return w.plane.job(t, w.job).Members[0].Active == want })
	s := w.snapshot(t)
	n := int32(0)
	for i := range s.Pods {
		if q := &s.Pods[i]; q.Job == w.job && q.Role == "worker" && !q.Deleting {
			n++
		}
	}
	if n != want {
		t.Errorf("%d pods of the job, want %d", n, want)
	}
}

func (p *plane) pod(t *testing.T, name string, labels map[string]string, owners []metav1.OwnerReference) *corev1.Pod {
	t.Helper()
	pod, err := p.core.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels, OwnerReferences: owners},
		Spec:       corev1.PodSpec{NodeSelector: elsewhere, Containers: []corev1.Container{{Name: "main", Image: "none"}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// conflicts lets another client write the size: our decision from the size before is stale, and theirs stays. The API
// server itself refuses a patch whose ground has moved, whatever the caches say.
func (w *brought) conflicts(t *testing.T) {
	t.Helper()
	before := w.get(t)
	body := fmt.Appendf(nil, `[{"op":"replace","path":"/%s","value":5}]`, strings.Join(w.size, "/"))
	if _, err := w.carrier.Patch(t.Context(), w.name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: "someone"}); err != nil {
		t.Fatal(err)
	}
	if r := w.apply(t, w.scale(2, 6)); r.Count(loop.Stale) != 1 {
		t.Errorf("over somebody else's write: %+v", r.Results)
	}
	other := w.get(t)
	other.SetUID("another")
	for what, ground := range map[string]*unstructured.Unstructured{"the size before": before, "another object of that name": other} {
		read := w.writer.Read(ground)
		body, err := adapter.Resize(ground, read.Part(w.partOfCarrier()), 7, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.carrier.Patch(t.Context(), w.name, types.JSONPatchType, body,
			metav1.PatchOptions{}); !act.FailedTest(err) {
			t.Errorf("a patch from %s: %v", what, err)
		}
	}
	wrong := fmt.Appendf(nil, `[{"op":"replace","path":"/%s","value":{}}]`, strings.Join(w.size, "/"))
	if _, err := w.carrier.Patch(t.Context(), w.name, types.JSONPatchType, wrong,
		metav1.PatchOptions{}); err == nil || act.FailedTest(err) {
		t.Errorf("what validation refuses is no lost race: %v", err)
	}
	if got := sizeIn(t, w.get(t), w.size); got != 5 {
		t.Errorf("size %d, want theirs", got)
	}
}

func (w *brought) partOfCarrier() string {
	if w.writer != w.adapter {
		return ""
	}
	return w.part
}

// sizesItself: the executors that a driver asked for are read from the status, those that run are counted, and nothing is written.
func (w *brought) sizesItself(t *testing.T) {
	t.Helper()
	for _, x := range []struct {
		status string
		want   int32
	}{{`{"a":"RUNNING","b":"RUNNING","c":"PENDING","d":"FAILED"}`, 3}, {`{"b":"RUNNING","a":"COMPLETED","c":null}`, 1}} {
		w.say(t, `{"applicationState":{"state":"RUNNING"},"executorState":`+x.status+`}`)
		until(t, "the status to be read", func() bool {
			j := w.plane.job(t, w.job)
			return !j.Blocked.Any() && j.Members[0].SelfSized && j.Members[0].Desired == x.want
		})
	}
	driver := w.pod(t, w.id+"-driver", map[string]string{"spark-role": "driver"}, ownerOf(w.object))
	w.pod(t, w.id+"-exec-1", map[string]string{"spark-role": "executor"}, []metav1.OwnerReference{*metav1.NewControllerRef(driver, corev1.SchemeGroupVersion.WithKind("Pod"))})
	until(t, "the executor to be counted", func() bool { return w.plane.job(t, w.job).Members[0].Active == 1 })
	before := w.get(t).GetResourceVersion()
	if r := w.apply(t, w.scale(1, 7)); r.Count(loop.Stale) != 1 || w.get(t).GetResourceVersion() != before {
		t.Errorf("a resize of what sizes itself: %+v", r.Results)
	}
}

// say writes a status in the operator's place.
func (w *brought) say(t *testing.T, status string) {
	t.Helper()
	body := []byte(`{"status":` + status + `}`)
	if !json.Valid(body) {
		t.Fatalf("%s is no JSON", body)
	}
	if _, err := w.dyn.Resource(w.adapter.Resource()).Namespace("default").Patch(t.Context(), w.id, types.MergePatchType, body, metav1.PatchOptions{FieldValidation: "Strict"}, "status"); err != nil {
		t.Fatal(err)
	}
}

// ends: a workload that has ended wants nothing any more, and no setting of it is found fault with.
func (w *brought) ends(t *testing.T) {
	t.Helper()
	if w.ended == "" {
		return
	}
	w.say(t, w.ended)
	until(t, "its end to be read", func() bool {
		j := w.plane.job(t, w.job)
		return !j.Blocked.Any() && j.Members[0].Remaining == 0
	})
}

// TestPlaneVictims: a RayCluster's own definition takes the names of those whom a smaller size is about.
func TestPlaneVictims(t *testing.T) {
	p := newPlane(t)
	ad := adapterFor(t, "raycluster")
	p.define(t, ad)
	u := p.submit(t, ad, readWorkload(t, "raycluster", "s-"+rand.String(5)))
	part := adapterPart(t, ad, u, "workers")
	body, err := adapter.Resize(u, part, 2, []string{"w-a", "w-b"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.dyn.Resource(ad.Resource()).Namespace("default").Patch(t.Context(), u.GetName(), types.JSONPatchType, body, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	group, err := strconv.Atoi(part.Path[2])
	if err != nil {
		t.Fatal(err)
	}
	groups, _, _ := unstructured.NestedSlice(got.Object, "spec", "workerGroupSpecs")
	names, _, _ := unstructured.NestedStringSlice(groups[group].(map[string]any), "scaleStrategy", "workersToDelete")
	if size := adapterPart(t, ad, got, "workers").Size; size != 2 || strings.Join(names, " ") != "w-a w-b" {
		t.Errorf("size %d, and %v are to go", size, names)
	}
}

func adapterPart(t *testing.T, ad adapter.Adapter, u *unstructured.Unstructured, name string) *adapter.Part {
	t.Helper()
	w := ad.Read(u)
	p := w.Part(name)
	if p == nil {
		t.Fatalf("no part %s", name)
	}
	return p
}

// TestPlaneMovedPart: an index into a list says nothing by itself; where the parts of a workload change places, the API server refuses
// what was meant for another.
func TestPlaneMovedPart(t *testing.T) {
	p := newPlane(t)
	for file, list := range map[string]string{"volcanojob": "/spec/tasks", "raycluster": "/spec/workerGroupSpecs"} {
		ad := adapterFor(t, file)
		p.define(t, ad)
		id := "s-" + rand.String(5)
		u := readWorkload(t, file, id)
		changeField(t, u, strings.Split(list[1:]+"/0/replicas", "/"), int64(4)) // as many as the other, so that the size alone does not tell
		u = p.submit(t, ad, u)
		client := p.dyn.Resource(ad.Resource()).Namespace("default")
		move := fmt.Appendf(nil, `[{"op":"move","from":"%s/1","path":"%s/0"}]`, list, list)
		if _, err := client.Patch(t.Context(), id, types.JSONPatchType, move, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		u.SetAnnotations(map[string]string{"any": "thing"}) // so that the values are tested, not the version
		w := ad.Read(u)
		body, err := adapter.Resize(u, w.Part("workers"), 7, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Patch(t.Context(), id, types.JSONPatchType, body, metav1.PatchOptions{}); err == nil {
			t.Errorf("%s: the parts changed places, and the patch was taken", file)
		}
	}
}
