//go:build plane

package kube

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

var gvrDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// definition reads one operator's CRD as its module carries it.
func definition(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	asJSON, err := yaml.YAMLToJSON(text)
	if err == nil {
		err = u.UnmarshalJSON(asJSON)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// define installs the CRD of an adapter's kind, and waits until it is served.
func (p *plane) define(t *testing.T, ad adapter.Adapter) {
	t.Helper()
	gvr := ad.Resource()
	files, err := filepath.Glob("testdata/crds/" + gvr.Group + "_" + gvr.Resource + ".yaml*")
	if err != nil || len(files) != 1 {
		t.Fatalf("the definition of %v: %v %v", gvr, files, err)
	}
	p.tolerate(t, func() error {
		_, err := p.dyn.Resource(gvrDefinitions).Create(t.Context(), definition(t, files[0]), metav1.CreateOptions{})
		return err
	})
	// Discovery tells of a new kind a moment after its objects can be listed; until then the controller would look again in half a minute.
	until(t, gvr.Resource+" to be served", func() bool {
		have, err := p.serves(gvr.GroupVersion().String())
		_, listed := p.dyn.Resource(gvr).Namespace("default").List(t.Context(), metav1.ListOptions{})
		return err == nil && listed == nil && slices.Contains(have, gvr.Resource)
	})
}

// undefine takes a CRD away, with all its objects.
func (p *plane) undefine(t *testing.T, ad adapter.Adapter) {
	t.Helper()
	gvr := ad.Resource()
	err := p.dyn.Resource(gvrDefinitions).Delete(t.Context(), gvr.Resource+"."+gvr.Group, metav1.DeleteOptions{})
	if err != nil && !strings.Contains(err.Error(), "not found") {
		t.Fatal(err)
	}
	until(t, gvr.Resource+" to be gone", func() bool {
		have, err := p.serves(gvr.GroupVersion().String())
		return err == nil && !strings.Contains(strings.Join(have, " "), gvr.Resource)
	})
}

// submit makes a workload of testdata/workloads in the default namespace, under strict field validation: the API server knows every field
// of it.
func (p *plane) submit(t *testing.T, ad adapter.Adapter, file, id string) *unstructured.Unstructured {
	t.Helper()
	u := readWorkload(t, file, id)
	u.SetNamespace("default")
	now, err := p.dyn.Resource(ad.Resource()).Namespace("default").Create(t.Context(), u, metav1.CreateOptions{FieldValidation: "Strict"})
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// elastic names one part of a workload in an ElasticJob and waits for the verdict.
func (p *plane) elastic(t *testing.T, u *unstructured.Unstructured, id, part string, low, high int32) *fleet.Job {
	t.Helper()
	e := jobOn(u, part, low, high)
	e.Name = id
	p.create(t, gvrJobs, e)
	var j *fleet.Job
	until(t, "the job", func() bool {
		j = p.snapshot(t).Job(fleet.JobID("default/" + id))
		return j != nil && !strings.HasPrefix(j.Blocked, "KindNot") && !strings.HasPrefix(j.Blocked, "WorkloadNotFound")
	})
	return j
}

func adapterFor(t *testing.T, file string) adapter.Adapter {
	t.Helper()
	u := readWorkload(t, file, "x")
	ad, ok := adapter.For(u.GetAPIVersion(), u.GetKind())
	if !ok {
		t.Fatalf("no adapter for %s", file)
	}
	return ad
}

// TestPlaneWorkloads resizes each operator's workload up and down on its real definition, with the controller's own rights.
func TestPlaneWorkloads(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	for _, f := range foreigners() {
		t.Run(f.file, func(t *testing.T) {
			ad := adapterFor(t, f.file)
			p.define(t, ad)
			id := "w-" + rand.String(5)
			u := p.submit(t, ad, f.file, id)
			if j := p.elastic(t, u, id, f.part, 1, 8); j.Blocked != "" || j.Members[0].Desired != 4 {
				t.Fatalf("blocked %q, member %+v", j.Blocked, j.Members[0])
			}
			for _, x := range [][2]int32{{4, 7}, {7, 2}} {
				p.must(t, planner.Plan{Jobs: []planner.JobScale{resizeOf(u, id, x[0], x[1])}})
				if got := p.snapshot(t).Job(fleet.JobID("default/" + id)).Members[0].Desired; got != x[1] {
					t.Fatalf("size %d in the next snapshot, want %d", got, x[1])
				}
			}
			now, err := p.dyn.Resource(ad.Resource()).Namespace("default").Get(t.Context(), id, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if sizeIn(t, now, f.size) != 2 || now.GetAnnotations()[v1alpha1.AnnotationLeaderEpoch] == "" {
				t.Errorf("size %d, annotations %v", sizeIn(t, now, f.size), now.GetAnnotations())
			}
			p.takeOver(t, ad, f, id, u)
		})
	}
}

// takeOver has somebody else write the size: our decision from the size before is stale, and theirs stays.
func (p *plane) takeOver(t *testing.T, ad adapter.Adapter, f foreign, id string, u *unstructured.Unstructured) {
	t.Helper()
	body := []byte(`[{"op":"replace","path":"/` + strings.Join(f.size, "/") + `","value":5}]`)
	if _, err := p.dyn.Resource(ad.Resource()).Namespace("default").Patch(t.Context(), id, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: "someone"}); err != nil {
		t.Fatal(err)
	}
	if r := p.apply(t, planner.Plan{Jobs: []planner.JobScale{resizeOf(u, id, 2, 6)}}); r.Count(loop.Stale) != 1 {
		t.Errorf("over somebody else's write: %+v", r.Results)
	}
	now, err := p.dyn.Resource(ad.Resource()).Namespace("default").Get(t.Context(), id, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := sizeIn(t, now, f.size); got != 5 {
		t.Errorf("size %d, want theirs", got)
	}
}

// TestPlaneStalePatch: the API server itself refuses a patch whose ground has moved, whatever the caches say.
func TestPlaneStalePatch(t *testing.T) {
	p := newPlane(t)
	ad := adapterFor(t, "volcanojob")
	p.define(t, ad)
	id := "s-" + rand.String(5)
	u := p.submit(t, ad, "volcanojob", id)
	w := ad.Read(u)
	client := p.dyn.Resource(ad.Resource()).Namespace("default")
	for name, change := range map[string]string{
		"the size":  `[{"op":"replace","path":"/spec/tasks/1/replicas","value":5}]`,
		"the order": `[{"op":"move","from":"/spec/tasks/1","path":"/spec/tasks/0"}]`,
	} {
		if _, err := client.Patch(t.Context(), id, types.JSONPatchType, []byte(change), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		u.SetAnnotations(map[string]string{"any": "thing"}) // so that the values are tested, not the version
		body, err := adapter.Resize(u, w.Part("workers"), 7, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Patch(t.Context(), id, types.JSONPatchType, body, metav1.PatchOptions{}); err == nil {
			t.Errorf("%s changed, and the patch was taken", name)
		}
	}
}

// TestPlaneJobSet writes the Job that a JobSet made, as its controller would have.
func TestPlaneJobSet(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	ad := adapterFor(t, "jobset")
	p.define(t, ad)
	id := "j-" + rand.String(5)
	u := p.submit(t, ad, "jobset", id)
	groups, _, _ := unstructured.NestedSlice(u.Object, "spec", "replicatedJobs")
	template, _, _ := unstructured.NestedMap(groups[1].(map[string]any), "template", "spec")
	spec := batchv1.JobSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &spec); err != nil {
		t.Fatal(err)
	}
	yes := true
	child := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: id + "-workers-0", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: id, UID: u.GetUID(), Controller: &yes}}}, Spec: spec}
	if _, err := p.core.BatchV1().Jobs("default").Create(t.Context(), child, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if j := p.elastic(t, u, id, "workers", 1, 8); j.Blocked != "" || j.Members[0].Desired != 4 {
		t.Fatalf("blocked %q, member %+v", j.Blocked, j.Members[0])
	}
	for _, x := range [][2]int32{{4, 6}, {6, 1}} {
		p.must(t, planner.Plan{Jobs: []planner.JobScale{resizeOf(u, id, x[0], x[1])}})
	}
	until(t, "the pods", func() bool {
		s := p.snapshot(t)
		n := 0
		for i := range s.Pods {
			if s.Pods[i].Job == fleet.JobID("default/"+id) && s.Pods[i].Role == "worker" && !s.Pods[i].Deleting {
				n++
			}
		}
		return n == 1
	})
}

// TestPlaneRefused: the definition keeps the setting, and the job is told.
func TestPlaneRefused(t *testing.T) {
	p := newPlane(t)
	for file, want := range map[string]string{"trainjob": "FixedMembership", "sparkapplication": "BoundsDiffer"} {
		ad := adapterFor(t, file)
		p.define(t, ad)
		id := "r-" + rand.String(5)
		u := p.submit(t, ad, file, id)
		part := map[string]string{"sparkapplication": "executor"}[file]
		if j := p.elastic(t, u, id, part, 1, 8); !strings.HasPrefix(j.Blocked, want+": ") {
			t.Errorf("%s: blocked %q, want %s", file, j.Blocked, want)
		}
	}
	// A kind that nobody adapts is refused at the door.
	bad := jobOn(readWorkload(t, "raycluster", "x"), "workers", 0, 8)
	bad.Name, bad.Namespace, bad.UID, bad.ResourceVersion, bad.CreationTimestamp = "bad-"+rand.String(5), "default", "", "", metav1.Time{}
	bad.Spec.Members[0].WorkloadRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "x"}
	raw, err := encode(gvrJobs, bad)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.dyn.Resource(gvrJobs).Namespace("default").Create(t.Context(), raw, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "no adapter resizes this kind") {
		t.Errorf("a Deployment as a workload: %v", err)
	}
}

// TestPlaneInstalledLater: a job whose operator is not there yet waits, and is taken up without a restart when it is installed; it waits
// again when it is removed.
func TestPlaneInstalledLater(t *testing.T) {
	p := newPlane(t)
	ad := adapterFor(t, "raycluster")
	p.undefine(t, ad)
	id := "l-" + rand.String(5)
	e := jobOn(readWorkload(t, "raycluster", id), "workers", 0, 8)
	e.Name, e.Namespace = id, "default"
	p.create(t, gvrJobs, e)
	blocked := func(reason string) func() bool {
		return func() bool {
			j := p.snapshot(t).Job(fleet.JobID("default/" + id))
			return j != nil && strings.HasPrefix(j.Blocked, reason) && (reason != "" || j.Blocked == "")
		}
	}
	until(t, "the job to wait", blocked("KindNotInstalled"))
	p.define(t, ad)
	p.submit(t, ad, "raycluster", id)
	p.kinds.ask() // as the minute's look would
	until(t, "the job to be taken", blocked(""))
	p.undefine(t, ad)
	p.kinds.ask()
	until(t, "the job to wait again", blocked("KindNotInstalled"))
}

// TestPlaneHostList publishes the hosts of a ring: not before the tenant binds the right, and from then on without a restart.
func TestPlaneHostList(t *testing.T) {
	p := newPlane(t)
	ad := adapterFor(t, "mpijob")
	p.define(t, ad)
	text, err := os.ReadFile("../../deploy/base/offline/hosts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p.applyAll(t, text)
	id := "h-" + rand.String(5)
	p.tolerate(t, func() error {
		_, err := p.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: id}}, metav1.CreateOptions{})
		return err
	})
	u := readWorkload(t, "mpijob", id)
	u.SetNamespace(id)
	if _, err := p.dyn.Resource(ad.Resource()).Namespace(id).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e := jobOn(u, "worker", 1, 8)
	e.Name, e.Spec.Hosts = id, &v1alpha1.HostList{Role: "worker", Slots: 2}
	p.create(t, gvrJobs, e)
	until(t, "the job", func() bool { return p.snapshot(t).Job(fleet.JobID(id+"/"+id)) != nil })
	report := func() {
		if err := p.Report(t.Context(), &loop.Report{Snapshot: p.snapshot(t), Plan: &planner.Plan{}, Receipt: &loop.Receipt{}}); err != nil {
			t.Fatal(err)
		}
	}
	report()
	client := p.core.CoreV1().ConfigMaps(id)
	if _, err := client.Get(t.Context(), id+"-hosts", metav1.GetOptions{}); err == nil {
		t.Fatal("written without the right")
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "springtide-host-lists", Namespace: id},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "springtide-host-lists"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "springtide-controller", Namespace: ourNamespace}}}
	if _, err := p.core.RbacV1().RoleBindings(id).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the list", func() bool {
		report()
		m, err := client.Get(t.Context(), id+"-hosts", metav1.GetOptions{})
		return err == nil && m.Data[keyScript] == "#!/bin/sh\n"
	})
	// A member comes: its status is the lab's to write, as a kubelet would.
	worker := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: id, Name: id + "-worker-0", Labels: map[string]string{"training.kubeflow.org/job-role": "worker"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: id, UID: p.uidOf(t, ad, id), Controller: ptr(true)}}},
		Spec: corev1.PodSpec{Hostname: id + "-worker-0", Subdomain: id, Containers: []corev1.Container{{Name: "worker", Image: "none"}}}}
	if worker, err = p.core.CoreV1().Pods(id).Create(t.Context(), worker, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	if _, err := p.core.CoreV1().Pods(id).Patch(t.Context(), worker.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	until(t, "the member to be listed", func() bool {
		report()
		m, err := client.Get(t.Context(), id+"-hosts", metav1.GetOptions{})
		return err == nil && m.Data[keyHosts] == fmt.Sprintf("%s-worker-0.%s.%s.svc:2\n", id, id, id)
	})
	until(t, "the status", func() bool {
		o, ok := p.jobs.get(id, id)
		return ok && o.api.Status.Hosts != nil && o.api.Status.Hosts.Listed == 1
	})
}

func (p *plane) uidOf(t *testing.T, ad adapter.Adapter, name string) types.UID {
	t.Helper()
	u, err := p.dyn.Resource(ad.Resource()).Namespace(name).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u.GetUID()
}
