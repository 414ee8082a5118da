package doctor

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/deploy/base"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/examine"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/validate/offline"
)

// TestDoctorAsksForWhatIsGranted: a right that deploy/base grants and doctor does not ask for would be missed too late,
// and one that it asks for and no manifest grants would send operators looking for nothing. The tests of internal/kube
// check that granted rights are used.
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

// TestOfflineWork: which pod templates land on lent machines, and which Jobs survive a recall. The tests of package
// adapter check the settings of other operators.
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
		want   []string
	}{
		{"all is well", func(*batchv1.Job) {}, nil},
		{"a node selector asks as well", func(j *batchv1.Job) {
			j.Spec.Template.Spec.Affinity, j.Spec.Template.Spec.NodeSelector = nil, map[string]string{v1alpha1.LabelOffline: "true"}
		}, nil},
		{"tolerating everything", func(j *batchv1.Job) {
			j.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, nil},
		{"no toleration", func(j *batchv1.Job) { j.Spec.Template.Spec.Tolerations = nil }, []string{"do not tolerate"}},
		{"the toleration of another effect", func(j *batchv1.Job) { j.Spec.Template.Spec.Tolerations[0].Effect = corev1.TaintEffectNoExecute }, []string{"do not tolerate"}},
		{"the toleration of another value", func(j *batchv1.Job) { j.Spec.Template.Spec.Tolerations[0].Value = "online" }, []string{"do not tolerate"}},
		{"no affinity", func(j *batchv1.Job) { j.Spec.Template.Spec.Affinity = nil }, []string{"may land on online"}},
		{"one of two alternatives does not ask", func(j *batchv1.Job) { j.Spec.Template.Spec.Affinity = affinity(asks, zone) }, []string{"may land on online"}},
		{"a recall is a failure", func(j *batchv1.Job) { j.Spec.PodFailurePolicy = nil }, []string{"PodFailurePolicyMissing"}},
		{"the failure policy fails the job", func(j *batchv1.Job) {
			j.Spec.PodFailurePolicy.Rules[0].Action = batchv1.PodFailurePolicyActionFailJob
		}, []string{"PodFailurePolicyMissing"}},
		{"replaced too early", func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = nil }, []string{"PodReplacementPolicyMissing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, d := good(), &doctor{Examination: &examine.Examination{}}
			c.change(j)
			e := &v1alpha1.ElasticJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train"}}
			w := adapter.ReadBatchJob(j)
			if fine := d.lendable(e, &v1alpha1.JobMember{Role: "worker", Max: 8}, &w, false); fine != (len(c.want) == 0) || len(d.Found) != len(c.want) {
				t.Fatalf("lendable %v, findings %v; want %q", fine, d.Found, c.want)
			}
			for i, w := range c.want {
				if f := d.Found[i]; !strings.Contains(f.Message, w) || f.Fix == "" || f.Severity != examine.Problem {
					t.Errorf("finding %+v, want a problem about %q with its fix", f, w)
				}
			}
		})
	}
}

// TestStableMembersStayHome: which pod templates of stable members can land on lent machines.
func TestStableMembersStayHome(t *testing.T) {
	node := func(name string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	requires := func(terms ...corev1.NodeSelectorRequirement) *corev1.Affinity {
		s := &corev1.NodeSelector{}
		for _, r := range terms {
			s.NodeSelectorTerms = append(s.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}})
		}
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: s}}
	}
	in := func(key, value string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
	}
	home := in(v1alpha1.LabelHome, v1alpha1.HomeOffline)
	const byLabel, bySelector = `add the label springtide.dev/stable: "true" to its pod template, or the node selector springtide.dev/home: offline`,
		"add the node selector springtide.dev/home: offline to its pod template"
	for _, c := range []struct {
		name   string
		change func(*corev1.PodTemplateSpec)
		tenant bool
		fix    string
	}{
		{"it goes where work that is lent to goes", func(*corev1.PodTemplateSpec) {}, false, bySelector},
		{"the policy would send it there", func(p *corev1.PodTemplateSpec) { p.Spec = corev1.PodSpec{} }, true, byLabel},
		{"it asks for home", func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector[v1alpha1.LabelHome] = v1alpha1.HomeOffline }, false, ""},
		{"by affinity", func(p *corev1.PodTemplateSpec) { p.Spec.Affinity = requires(home) }, false, ""},
		{"in one of two alternatives", func(p *corev1.PodTemplateSpec) { p.Spec.Affinity = requires(home, in("zone", "a")) }, false, bySelector},
		{"for another home", func(p *corev1.PodTemplateSpec) { p.Spec.Affinity = requires(in(v1alpha1.LabelHome, "online")) }, false, ""},
		{"for home, open or not", func(p *corev1.PodTemplateSpec) {
			p.Spec.NodeSelector = map[string]string{v1alpha1.LabelHome: v1alpha1.HomeOffline}
		}, false, `add the node selector springtide.dev/offline: "true" to its pod template`},
		{"for home, and the policy says open", func(p *corev1.PodTemplateSpec) {
			p.Spec = corev1.PodSpec{NodeSelector: map[string]string{v1alpha1.LabelHome: v1alpha1.HomeOffline}}
		}, true, ""},
		{"it has the label, and the policy looks", func(p *corev1.PodTemplateSpec) { p.Labels = map[string]string{v1alpha1.LabelStable: "true"} }, true, ""},
		{"it has the label, and nobody looks", func(p *corev1.PodTemplateSpec) { p.Labels = map[string]string{v1alpha1.LabelStable: "true"} }, false, bySelector},
		{"it says that it is not stable", func(p *corev1.PodTemplateSpec) { p.Labels = map[string]string{v1alpha1.LabelStable: "false"} }, true, byLabel},
		{"the taint keeps it off", func(p *corev1.PodTemplateSpec) { p.Spec.Tolerations = nil }, false, ""},
		{"it is pinned to machines of offline", func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector["pool"] = "offline" }, true, ""},
		{"it is pinned to machines of online", func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector["pool"] = "online" }, true, byLabel},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "ps"}}
			j.Spec.Template.Spec = corev1.PodSpec{NodeSelector: map[string]string{v1alpha1.LabelOffline: "true"},
				Tolerations: []corev1.Toleration{{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpExists}}}
			failed := batchv1.Failed
			j.Spec.PodReplacementPolicy, j.Spec.Template.Spec.RestartPolicy = &failed, corev1.RestartPolicyNever
			j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}}}
			c.change(&j.Spec.Template)
			d := &doctor{Examination: &examine.Examination{}, away: []*corev1.Node{node("n1", map[string]string{"pool": "online", "zone": "a", v1alpha1.LabelOffline: "true"})}}
			w := adapter.ReadBatchJob(j)
			fine := d.lendable(&v1alpha1.ElasticJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ml"}}, &v1alpha1.JobMember{Role: "server", Min: 2, Max: 2, Stable: true}, &w, c.tenant)
			if fine != (c.fix == "") || len(d.Found) != min(len(c.fix), 1) {
				t.Fatalf("lendable %v, findings %+v; want the fix %q", fine, d.Found, c.fix)
			}
			if c.fix != "" && (d.Found[0].Fix != c.fix || d.Found[0].Severity != examine.Problem) {
				t.Errorf("finding %+v, want a problem with the fix %q", d.Found[0], c.fix)
			}
		})
	}
}

// TestStableLabels: doctor knows the labels that the policy knows, and what cannot but be stable has one of them from its operator.
func TestStableLabels(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/base/offline/placement.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var policy [][2]string
	for _, m := range regexp.MustCompile(`\["([^":]+)", "([^"]+)"\]`).FindAllStringSubmatch(string(text), -1) {
		policy = append(policy, [2]string{m[1], m[2]})
	}
	if d := cmp.Diff(policy, stableLabels); d != "" {
		t.Errorf("labels of stable members (-placement.yaml +doctor):\n%s", d)
	}
	seen := 0
	for _, file := range []string{"mpijob", "pytorchjob", "raycluster", "sparkapplication"} {
		text, err := os.ReadFile("../../../internal/kube/testdata/workloads/" + file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &u.Object); err != nil {
			t.Fatal(err)
		}
		ad, _ := adapter.For(u.GetAPIVersion(), u.GetKind())
		w := ad.Read(u)
		for i := range w.Parts {
			p := &w.Parts[i]
			if p.Fixed != "" {
				seen++
			}
			if holdsTogether(p.Labels) != (p.Fixed != "") {
				t.Errorf("%s of %s, which is fixed because %q, has the labels %v", p.Name, w.What, p.Fixed, p.Labels)
			}
			if p.Fixed != "" && ad.PartOf(p.Labels) != p.Name {
				t.Errorf("pods of %s of %s have the labels %v, by which they are of part %q", p.Name, w.What, p.Labels, ad.PartOf(p.Labels))
			}
		}
	}
	if seen != 4 {
		t.Errorf("%d fixed parts were seen, want the launcher, the master, the head and the driver", seen)
	}
}

// TestDoctorFindsTemplatesThatMustStay: where a service asks for Recreate and the optional right is not bound, doctor has the command that binds it.
func TestDoctorFindsTemplatesThatMustStay(t *testing.T) {
	const bind = "kubectl create rolebinding springtide-templates -n shop --clusterrole=springtide-templates --serviceaccount=springtide-system:springtide-controller"
	w := newWorld(t)
	if got := w.Run("doctor"); strings.Contains(got, bind) {
		t.Errorf("no service asks for it:\n%s", got)
	}
	asks := []byte(`{"spec":{"requestsMode":"Recreate"}}`)
	if _, err := w.Dyn.Resource(v1alpha1.GroupVersion.WithResource(cluster.Services)).Namespace("shop").Patch(t.Context(), "cart", types.MergePatchType, asks, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := w.Run("doctor"); strings.Count(got, bind) != 1 {
		t.Errorf("want once %q in\n%s", bind, got)
	}
}

// A namespace of offline work without the label could bring DaemonSets of its own past a recall.
func TestDoctorNamesUnlabelledTenants(t *testing.T) {
	const advised = "kubectl label namespace ml springtide.dev/offline-tenant=true"
	w := newWorld(t)
	if out := w.Run("doctor"); strings.Contains(out, advised) {
		t.Errorf("the namespace has the label:\n%s", out)
	}
	ns, err := w.Core.CoreV1().Namespaces().Get(t.Context(), "ml", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns.Labels = nil
	if err := w.Core.Tracker().Update(corev1.SchemeGroupVersion.WithResource("namespaces"), ns, ""); err != nil {
		t.Fatal(err)
	}
	if out := w.Run("doctor"); strings.Count(out, advised) != 1 {
		t.Errorf("the label is to be advised once:\n%s", out)
	}
}
