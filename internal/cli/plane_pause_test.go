//go:build plane

package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/validate/offline"
)

const pausedObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: NAME}
---
apiVersion: springtide.dev/v1alpha1
kind: ElasticService
metadata: {namespace: NAME, name: NAME}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}
  slo: {utilization: {cpu: 60%}}
  replicas: {min: 2, max: 9}
---
apiVersion: springtide.dev/v1alpha1
kind: ElasticJob
metadata: {namespace: NAME, name: NAME}
spec:
  members: [{role: worker, workloadRef: {apiVersion: batch/v1, kind: Job, name: NAME}, min: 1, max: 9}]
---
apiVersion: springtide.dev/v1alpha1
kind: CapacityPool
metadata: {name: NAME}
spec:
  class: Online
  nodeSelector: {matchLabels: {paused: NAME}}
`

// TestPlanePause pauses objects by the command line on a real API server: the controller's own view holds them, with
// the user's name, until the end that was given, and no longer.
func TestPlanePause(t *testing.T) {
	own, dyn := onTheServer(t)
	name := "paused-" + rand.String(5)
	for _, text := range offline.Documents([]byte(strings.ReplaceAll(pausedObjects, "NAME", name))) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &u.Object); err != nil {
			t.Fatal(err)
		}
		make1(t, dyn, u)
	}
	c, err := cluster.Connect(&cluster.Options{Kubeconfig: own})
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		t.Helper()
		if out, err := operate(append(args, "--kubeconfig", own)...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	type holds struct{ service, job, pool fleet.Hold }
	now := func() (h holds, ended holds) {
		t.Helper()
		s, err := c.Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		id := name + "/" + name
		svc, job, pool := s.Service(fleet.ServiceID(id)), s.Job(fleet.JobID(id)), s.Pool(fleet.PoolID(name))
		if svc == nil || job == nil || pool == nil {
			t.Fatal("the controller does not see the objects")
		}
		return holds{svc.Hold, job.Hold, pool.Hold}, holds{svc.Ended, job.Ended, pool.Ended}
	}
	run("pause", "service", name, "-n", name, "--reason", "INC-1", "--for", "1h", "--at", "4")
	run("pause", "job", name, "-n", name, "--reason", "INC-2")
	run("pause", "pool", name, "--reason", "INC-3", "--for", "5s")
	h, _ := now()
	if s := h.service; s.Reason != "INC-1" || s.By == "" || s.Replicas.Value != 4 || s.Until.IsZero() ||
		s.Unreadable != "" {
		t.Errorf("service: %+v", s)
	}
	if j := h.job; j.Reason != "INC-2" || !j.Until.IsZero() || j.Unreadable != "" {
		t.Errorf("job: %+v", j)
	}
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		h, ended := now()
		if !h.pool.Any() && ended.pool.Reason == "INC-3" {
			break // by itself: nothing was written
		}
		if time.Now().After(limit) {
			t.Fatalf("the pause of the pool does not end: %+v", h.pool)
		}
	}
	run("resume", "service", name, "-n", name)
	run("resume", "job", name, "-n", name)
	run("pause", "namespace", name, "--reason", "INC-4", "--for", "1h")
	h, _ = now()
	if want := v1alpha1.AnnotationPause + " of the namespace"; h.service.Source != want || h.job.Source != want ||
		h.service.Reason != "INC-4" {
		t.Errorf("a paused namespace: %+v", h)
	}
	run("resume", "namespace", name)
	run("resume", "pool", name)
	if h, ended := now(); h.service.Any() || h.job.Any() || h.pool.Any() || ended.pool.Any() {
		t.Errorf("after all are resumed: %+v %+v", h, ended)
	}
	ns, err := c.Core.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || ns.Annotations[v1alpha1.AnnotationPause] != "" {
		t.Errorf("the annotation stays: %v %v", ns.Annotations, err)
	}
}
