package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/deploy/base"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/validate/offline"
)

// TestDoctorAsksPrometheus: a required metric that is missing is a problem, an optional one is advice.
func TestDoctorAsksPrometheus(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		data := any(map[string]any{"groups": []any{}})
		if strings.HasSuffix(r.URL.Path, "/query") {
			result := []any{map[string]any{"metric": map[string]any{}, "value": []any{1.0, "7"}}}
			if q := r.Form.Get("query"); q == "count(kube_pod_owner)" || q == "count(kube_pod_status_ready_time)" {
				result = []any{}
			}
			data = map[string]any{"resultType": "vector", "result": result}
		}
		_ = json.NewEncoder(out).Encode(map[string]any{"status": "success", "data": data})
	}))
	defer server.Close()
	_, dsn := evening(t)
	d := &doctor{c: nil, prometheus: server.URL, store: dsn}
	if err := checkMetrics(context.Background(), d); err != nil {
		t.Fatal(err)
	}
	if err := checkStore(context.Background(), d); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	_ = d.print(&out, "table")
	golden(t, filepath.Join("testdata", "cluster", "metrics.txt"), out.String())
}

// TestDoctorAsksForWhatIsGranted: a right that deploy/base grants and doctor does not ask for would be missed too late, and one that it asks
// for and nobody grants would send operators looking for nothing. That what is granted is what is used, internal/kube's tests say.
func TestDoctorAsksForWhatIsGranted(t *testing.T) {
	asked := map[string]bool{}
	for _, r := range controllerRights {
		for verb := range strings.FieldsSeq(r.verbs) {
			line := fmt.Sprintf("%s %s, own namespace alone: %t", verb, r, r.own)
			if asked[line] {
				t.Errorf("%s: asked for twice", line)
			}
			asked[line] = true
		}
	}
	text, err := base.Files.ReadFile("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	granted := map[string]bool{}
	for _, doc := range offline.Documents(text) {
		var role rbacv1.ClusterRole // a Role has the same rules, and the other kinds of the file have none
		if err := yaml.Unmarshal(doc, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						name, sub, _ := strings.Cut(resource, "/")
						granted[fmt.Sprintf("%s %s, own namespace alone: %t", verb, right{group: group, resource: name, subresource: sub}, role.Kind == "Role")] = true
					}
				}
			}
		}
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(granted)), slices.Sorted(maps.Keys(asked))); d != "" {
		t.Errorf("rights (-granted in deploy/base +asked for by doctor):\n%s", d)
	}
}

// TestOfflineWork: which pod templates land on lent machines, and which Jobs survive a recall. What the settings of other operators mean,
// package adapter's tests say.
func TestOfflineWork(t *testing.T) {
	tolerant := corev1.Toleration{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpEqual, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}
	asks := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.LabelOffline, Operator: corev1.NodeSelectorOpIn, Values: []string{"true"}}}}
	zone := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}
	affinity := func(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	good := func() *batchv1.Job {
		failed := batchv1.Failed
		return &batchv1.Job{Spec: batchv1.JobSpec{PodReplacementPolicy: &failed,
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}}},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{tolerant}, Affinity: affinity(asks)}}}}
	}
	for _, c := range []struct {
		name   string
		change func(*batchv1.Job)
		stable bool
		want   []string
	}{
		{"all is well", func(*batchv1.Job) {}, false, nil},
		{"a node selector asks as well", func(j *batchv1.Job) {
			j.Spec.Template.Spec.Affinity, j.Spec.Template.Spec.NodeSelector = nil, map[string]string{v1alpha1.LabelOffline: "true"}
		}, false, nil},
		{"tolerating everything", func(j *batchv1.Job) {
			j.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, false, nil},
		{"no toleration", func(j *batchv1.Job) { j.Spec.Template.Spec.Tolerations = nil }, false, []string{"do not tolerate"}},
		{"the toleration of another effect", func(j *batchv1.Job) { j.Spec.Template.Spec.Tolerations[0].Effect = corev1.TaintEffectNoExecute }, false, []string{"do not tolerate"}},
		{"the toleration of another value", func(j *batchv1.Job) { j.Spec.Template.Spec.Tolerations[0].Value = "online" }, false, []string{"do not tolerate"}},
		{"no affinity", func(j *batchv1.Job) { j.Spec.Template.Spec.Affinity = nil }, false, []string{"may land on online"}},
		{"one of two alternatives does not ask", func(j *batchv1.Job) { j.Spec.Template.Spec.Affinity = affinity(asks, zone) }, false, []string{"may land on online"}},
		{"stable members land at home", func(j *batchv1.Job) { j.Spec.Template.Spec = corev1.PodSpec{} }, true, nil},
		{"a recall is a failure", func(j *batchv1.Job) { j.Spec.PodFailurePolicy = nil }, false, []string{"PodFailurePolicyMissing"}},
		{"the failure policy fails the job", func(j *batchv1.Job) {
			j.Spec.PodFailurePolicy.Rules[0].Action = batchv1.PodFailurePolicyActionFailJob
		}, false, []string{"PodFailurePolicyMissing"}},
		{"replaced too early", func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = nil }, false, []string{"PodReplacementPolicyMissing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, d := good(), &doctor{}
			c.change(j)
			e := &v1alpha1.ElasticJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train"}}
			w := adapter.ReadBatchJob(j)
			if fine := d.lendable(e, &v1alpha1.JobMember{Role: "worker", Max: 8, Stable: c.stable}, &w); fine != (len(c.want) == 0) || len(d.found) != len(c.want) {
				t.Fatalf("lendable %v, findings %v; want %q", fine, d.found, c.want)
			}
			for i, w := range c.want {
				if f := d.found[i]; !strings.Contains(f.Message, w) || f.Mend == "" || f.Severity != problem {
					t.Errorf("finding %+v, want a problem about %q with its mend", f, w)
				}
			}
		})
	}
}
