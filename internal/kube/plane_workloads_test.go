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

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/kube/hostlists"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
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
	// Discovery shows a new kind a moment after its objects can be listed; until then the controller would look again
	// in half a minute.
	until(t, gvr.Resource+" to be served", func() bool {
		have, err := p.Serves(gvr.GroupVersion().String())
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
		have, err := p.Serves(gvr.GroupVersion().String())
		return err == nil && !strings.Contains(strings.Join(have, " "), gvr.Resource)
	})
}

// submit makes a workload in the default namespace, under strict field validation: the API server knows every field of it.
func (p *plane) submit(t *testing.T, ad adapter.Adapter, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
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
	p.create(t, object.GVRJobs, e)
	var j *fleet.Job
	t.Cleanup(func() {
		if t.Failed() && j != nil {
			t.Logf("job %s was last blocked by %q", id, j.Blocked)
		}
	})
	until(t, "the job", func() bool {
		j = p.snapshot(t).Job(fleet.JobID("default/" + id))
		return j != nil && !strings.HasPrefix(j.Blocked.String(), "KindNot") && !strings.HasPrefix(j.Blocked.String(), "WorkloadNotFound")
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

// TestPlaneUnknownKind: a kind without an adapter is refused at the door.
func TestPlaneUnknownKind(t *testing.T) {
	p := newPlane(t)
	bad := jobOn(readWorkload(t, "raycluster", "x"), "workers", 0, 8)
	bad.Name, bad.Namespace, bad.UID, bad.ResourceVersion, bad.CreationTimestamp = "bad-"+rand.String(5), "default", "", "", metav1.Time{}
	bad.Spec.Members[0].WorkloadRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "x"}
	raw, err := object.Encode(object.GVRJobs, bad)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.dyn.Resource(object.GVRJobs).Namespace("default").Create(t.Context(), raw,
		metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "no adapter resizes this kind") {
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
	p.create(t, object.GVRJobs, e)
	blocked := func(reason string) func() bool {
		return func() bool {
			j := p.snapshot(t).Job(fleet.JobID("default/" + id))
			return j != nil && strings.HasPrefix(j.Blocked.String(), reason) && (reason != "" || !j.Blocked.Any())
		}
	}
	until(t, "the job to wait", blocked("KindNotInstalled"))
	p.define(t, ad)
	p.submit(t, ad, readWorkload(t, "raycluster", id))
	p.Kinds.Ask() // as the minute's look would
	until(t, "the job to be taken", blocked(""))
	p.undefine(t, ad)
	p.Kinds.Ask()
	until(t, "the job to wait again", blocked("KindNotInstalled"))
}

// TestPlaneHostList publishes the hosts of a ring: not before the tenant binds the right, and from then on without a restart.
func TestPlaneHostList(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
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
	p.create(t, object.GVRJobs, e)
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
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "springtide-controller", Namespace: kubetest.Namespace}}}
	if _, err := p.core.RbacV1().RoleBindings(id).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the list", func() bool {
		report()
		m, err := client.Get(t.Context(), id+"-hosts", metav1.GetOptions{})
		return err == nil && m.Data[hostlists.KeyScript] == "#!/bin/sh\n"
	})
	// A member comes: its status is the lab's to write, as a kubelet would.
	worker := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: id, Name: id + "-worker-0", Labels: map[string]string{"training.kubeflow.org/job-role": "worker"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: id,
			UID: p.uidOf(t, ad, id), Controller: kubetest.Ptr(true)}}},
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
		return err == nil && m.Data[hostlists.KeyHosts] == fmt.Sprintf("%s-worker-0.%s.%s.svc:2\n", id, id, id)
	})
	until(t, "the status", func() bool {
		o, ok := p.Jobs.Get(id, id)
		return ok && o.API.Status.Hosts != nil && o.API.Status.Hosts.Listed == 1
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
