//go:build plane

package cli

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/validate/offline"
)

// definitions of the foreign kinds, which keep each field as it is written.
const foreignDefinitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: scaledobjects.keda.sh}
spec:
  group: keda.sh
  scope: Namespaced
  names: {kind: ScaledObject, plural: scaledobjects, singular: scaledobject}
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cronhorizontalpodautoscalers.autoscaling.alibabacloud.com, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: autoscaling.alibabacloud.com
  scope: Namespaced
  names: {kind: CronHorizontalPodAutoscaler, plural: cronhorizontalpodautoscalers, singular: cronhorizontalpodautoscaler}
  versions: [{name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// adoptions are foreign objects; NAME is that of the object and of its target.
var adoptions = map[string]string{
	"hpa/cpu":            "{minReplicas: 2, maxReplicas: 9, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]}",
	"hpa/behaviour":      "{maxReplicas: 9, behavior: {scaleDown: {stabilizationWindowSeconds: 600}}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 75}}}]}",
	"hpa/memory":         "{maxReplicas: 9, metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 70}}}]}",
	"hpa/container":      "{maxReplicas: 9, metrics: [{type: ContainerResource, containerResource: {name: cpu, container: main, target: {type: Utilization, averageUtilization: 50}}}]}",
	"scaledobject/night": "{maxReplicaCount: 20, triggers: [{type: cron, metadata: {timezone: America/New_York, start: 0 22 * * *, end: 0 6 * * *, desiredReplicas: '12'}}]}",
	"scaledobject/total": "{maxReplicaCount: 20, triggers: [{type: prometheus, metricType: Value, metadata: {query: sum(queue), threshold: '10'}}]}",
	"scaledobject/each":  "{minReplicaCount: 1, maxReplicaCount: 20, triggers: [{type: prometheus, metadata: {query: 'sum(rate(orders_total[2m]))', threshold: '2.5'}}]}",
	"scaledobject/both":  "{minReplicaCount: 1, maxReplicaCount: 20, triggers: [{type: cron, metadata: {timezone: Europe/Berlin, start: 30 7 * * 1-5, end: 0 19 * * 1-5, desiredReplicas: '8'}}, {type: prometheus, metadata: {query: sum(queue), threshold: '5'}}]}",
	"cronhpa/day":        "{jobs: [{name: up, schedule: 0 0 8 * * *, targetSize: 9}, {name: down, schedule: 0 0 20 * * *, targetSize: 2}]}",
	"cronhpa/workdays":   "{jobs: [{name: up, schedule: 0 30 8 * * 1-5, targetSize: 6}, {name: down, schedule: 0 0 18 * * 1-5, targetSize: 3}]}",
}

var foreignKinds = map[string]struct{ apiVersion, kind, ref string }{
	"hpa":          {"autoscaling/v2", "HorizontalPodAutoscaler", "{apiVersion: apps/v1, kind: Deployment, name: NAME}"},
	"scaledobject": {"keda.sh/v1alpha1", "ScaledObject", "{name: NAME}"},
	"cronhpa":      {"autoscaling.alibabacloud.com/v1beta1", "CronHorizontalPodAutoscaler", "{apiVersion: apps/v1, kind: Deployment, name: NAME}"},
}

// TestPlaneAdopt: what adopt prints of foreign objects passes the offline judge and the API server's dry run, which leaves nothing behind; a takeover in a dry run
// pauses nothing, and a takeover does.
func TestPlaneAdopt(t *testing.T) {
	own, dyn := onTheServer(t)
	cfg, err := clientcmd.BuildConfigFromFlags("", own)
	if err != nil {
		t.Fatal(err)
	}
	decode := func(text string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		return u
	}
	for _, text := range offline.Documents([]byte(foreignDefinitions)) {
		make1(t, dyn, decode(string(text)))
	}
	serves(t, cfg, "keda.sh/v1alpha1", 1)
	serves(t, cfg, "autoscaling.alibabacloud.com/v1beta1", 1)
	scaled := dyn.Resource(schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}).Namespace("default")
	kept := dyn.Resource(v1alpha1.GroupVersion.WithResource(cluster.Services)).Namespace("default")
	for what, spec := range adoptions {
		t.Run(what, func(t *testing.T) {
			kind, _, _ := strings.Cut(what, "/")
			k, name := foreignKinds[kind], "adopt-"+rand.String(5)
			make1(t, dyn, decode("apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: default, name: "+name+"}\nspec: {replicas: 2, selector: {matchLabels: {app: "+name+
				"}}, template: {metadata: {labels: {app: "+name+"}}, spec: {containers: [{name: main, image: none, resources: {requests: {cpu: 100m, memory: 64Mi}}}]}}}"))
			u := decode("apiVersion: " + k.apiVersion + "\nkind: " + k.kind + "\nmetadata: {namespace: default, name: " + name + "}\nspec: " + spec)
			if err := unstructured.SetNestedField(u.Object, decode(strings.ReplaceAll(k.ref, "NAME", name)).Object, "spec", "scaleTargetRef"); err != nil {
				t.Fatal(err)
			}
			make1(t, dyn, u)
			run := func(args ...string) string {
				t.Helper()
				args = append([]string{"adopt", "default/" + name, "--kubeconfig", own, "--kind", kind}, args...)
				if !strings.Contains(spec, "name: cpu") { // it has no target that the SLO could take
					args = append(args, "--utilisation", "60")
				}
				out, err := operate(args...)
				if err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
				return out
			}
			none := func() {
				t.Helper()
				if _, err := kept.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					t.Fatalf("a dry run made the service: %v", err)
				}
			}
			printed := run("--dry-run=client")
			if i := strings.Index(printed, "apiVersion:"); i >= 0 {
				printed = printed[i:] // notes come before it
			}
			if judged, err := offline.Files([]offline.Input{{Name: what, Text: []byte(printed)}}, offline.Options{}); err != nil || judged.Objects != 1 || len(judged.Findings) > 0 {
				t.Errorf("the offline judge: %v %+v\n%s", err, judged, printed)
			}
			run("--dry-run=server")
			none()
			if kind != "scaledobject" {
				run()
				if _, err := kept.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
					t.Error(err)
				}
				return
			}
			paused := func() bool {
				now, err := scaled.Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return now.GetAnnotations()["autoscaling.keda.sh/paused"] == "true"
			}
			run("--take-over", "--dry-run=server")
			if none(); paused() {
				t.Error("a dry run paused it")
			}
			run("--take-over")
			if s, err := kept.Get(t.Context(), name, metav1.GetOptions{}); err != nil || !paused() {
				t.Errorf("taken over: paused %v, service %v (%v)", paused(), s, err)
			}
		})
	}
}

// TestPlaneReleaseOfWhatIsLeaving: autoscalers that were deleted and wait for the finalizers of their own controllers are given back by our marks, though their services
// are gone: what their controllers do last, they do unpaused and with their own floor.
func TestPlaneReleaseOfWhatIsLeaving(t *testing.T) {
	own, dyn := onTheServer(t)
	cfg, err := clientcmd.BuildConfigFromFlags("", own)
	if err != nil {
		t.Fatal(err)
	}
	object := func(text string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	for _, text := range offline.Documents([]byte(foreignDefinitions)) {
		make1(t, dyn, object(string(text)))
	}
	serves(t, cfg, "keda.sh/v1alpha1", 1)
	for kind, c := range map[string]struct {
		resource  schema.GroupVersionResource
		finalizer string
		spec      string
		ours      string // what Springtide wrote
		given     func(u *unstructured.Unstructured) bool
	}{
		"scaledobject": {schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}, "finalizer.keda.sh", "{}",
			`{"metadata":{"annotations":{"autoscaling.keda.sh/paused":"true","springtide.dev/taken-over":"true"}}}`,
			func(u *unstructured.Unstructured) bool { return len(u.GetAnnotations()) == 0 }},
		"hpa": {schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}, "example.com/last", "{minReplicas: 2, maxReplicas: 9}",
			`{"metadata":{"annotations":{"springtide.dev/adopted-min-replicas":"2"}},"spec":{"minReplicas":6}}`,
			func(u *unstructured.Unstructured) bool {
				n, _, _ := unstructured.NestedInt64(u.Object, "spec", "minReplicas")
				return n == 2 && len(u.GetAnnotations()) == 0
			}},
	} {
		t.Run(kind, func(t *testing.T) {
			k, name := foreignKinds[kind], "leaving-"+rand.String(5)
			u := object("apiVersion: " + k.apiVersion + "\nkind: " + k.kind + "\nmetadata: {namespace: default, name: " + name + ", finalizers: [" + c.finalizer + "]}\nspec: " + c.spec)
			if err := unstructured.SetNestedField(u.Object, object(strings.ReplaceAll(k.ref, "NAME", name)).Object, "spec", "scaleTargetRef"); err != nil {
				t.Fatal(err)
			}
			make1(t, dyn, u)
			r := dyn.Resource(c.resource).Namespace("default")
			if _, err := r.Patch(t.Context(), name, types.MergePatchType, []byte(c.ours), metav1.PatchOptions{FieldManager: v1alpha1.FieldManager}); err != nil {
				t.Fatal(err)
			}
			if err := r.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if out, err := operate("release", "default/"+name, "--kubeconfig", own); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			now, err := r.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || !c.given(now) {
				t.Fatalf("%v: annotations %v, spec %v", err, now.GetAnnotations(), now.Object["spec"])
			}
			if _, err := r.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("it stays: %v", err)
			}
		})
	}
}
