package deploy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/validate/offline"
	"github.com/springtide/springtide/lab/plane"
)

const (
	serviceHead = "apiVersion: springtide.dev/v1alpha1\nkind: ElasticService\nmetadata: {name: NAME, namespace: " +
		"default}\nspec:\n  slo: {utilization: {cpu: \"60%\"}}\n  replicas: {min: 1, max: 20}\n"
	deployment = "  targetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}\n"
	poolHead   = "apiVersion: springtide.dev/v1alpha1\nkind: CapacityPool\nmetadata: {name: NAME}\n" +
		"spec:\n  class: Online\n"
	quotaHead = "apiVersion: springtide.dev/v1alpha1\nkind: CapacityQuota\nmetadata: {name: NAME}\n" +
		"spec:\n  guarantee: {cpu: \"1\", memory: 1Gi}\n"
	jobHead = "apiVersion: springtide.dev/v1alpha1\nkind: ElasticJob\nmetadata: {name: NAME, namespace: default}\n" +
		"spec:\n  members:\n"
)

// The API server refuses with the admission policies what `springtide validate` finds, and takes what is well.
func TestRefusals(t *testing.T) {
	_, _, dyn := startWith(t, plane.Options{}, slices.DeleteFunc(render(t), func(doc []byte) bool {
		return !bytes.Contains(doc, []byte("kind: CustomResourceDefinition")) && !bytes.Contains(doc, []byte("kind: ValidatingAdmissionPolicy"))
	}))
	create := func(text string, dry bool) error {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		o := metav1.CreateOptions{}
		if dry {
			o.DryRun = []string{metav1.DryRunAll}
		}
		plural := map[string]string{"ElasticService": "elasticservices", "CapacityPool": "capacitypools", "CapacityQuota": "capacityquotas", "ElasticJob": "elasticjobs"}[u.GetKind()]
		_, err := dyn.Resource(v1alpha1.GroupVersion.WithResource(plural)).Namespace(u.GetNamespace()).Create(t.Context(), u, o)
		return err
	}
	named := func(text, name string) string { return strings.ReplaceAll(text, "NAME", name) }
	good := []string{
		named(serviceHead, "rolled") + "  targetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: rolled}\n",
		named(serviceHead+deployment+"  windows: [{name: w, start: \"*/15 8-18 1,15 jan-dec MON-fri\", duration: 1h, timeZone: America/Argentina/Buenos_Aires, minReplicas: 2}, {name: v, start: \"0 0 * * 0\", duration: 1h, timeZone: UTC, minReplicas: 2}]\n  calendar: {timeZone: Etc/GMT+8, days: [{name: leap, date: 2028-02-29}, {name: sale, date: 11-11}]}\n", "cart"),
		named(poolHead+"  nodeSelector: {matchLabels: {pool: web, zone: a}}\n", "web-a"),
		named(quotaHead+"  namespaceSelector: {matchLabels: {team.example.com/name: shop_1}}\n  parent: b\n", "a"),
		named(jobHead+"    - {role: worker, min: 1, max: 8, workloadRef: {apiVersion: ray.io/v1, kind: RayCluster, name: r}}\n    - {role: head, stable: true, min: 1, max: 1, workloadRef: {apiVersion: ray.io/v1, kind: RayCluster, name: r}}\n", "train"),
	}
	bad := map[string]struct{ text, want string }{
		"a second owner": {named(serviceHead, "x") + "  targetRef: {apiVersion: apps/v1, kind: Deployment, name: cart}\n",
			"Deployment cart is the target of ElasticService default/cart already"},
		"cron text with six fields": {named(serviceHead+deployment+"  windows: [{name: w, start: \"0 30 18 * * *\", duration: 1h, timeZone: UTC, minReplicas: 2}]\n", "x"), "write five"},
		"an hour that is none":      {named(serviceHead+deployment+"  windows: [{name: w, start: \"30 25 * * *\", duration: 1h, timeZone: UTC, minReplicas: 2}]\n", "x"), "hour 0-23"},
		"the zone of the machine":   {named(serviceHead+deployment+"  windows: [{name: w, start: \"30 2 * * *\", duration: 1h, timeZone: Local, minReplicas: 2}]\n", "x"), `zone "Local" is not an IANA zone`},
		"a day that is none":        {named(serviceHead+deployment+"  calendar: {timeZone: UTC, days: [{name: d, date: 2027-02-29}]}\n", "x"), `date "2027-02-29" is no day of the calendar`},
		"a part of another pool":    {named(poolHead+"  nodeSelector: {matchLabels: {pool: web}}\n", "web"), "pool web-a picks the same machines"},
		"a value that no label has": {named(poolHead+"  nodeSelector: {matchLabels: {pool: a b}}\n", "x"), `"a b" is no label's value`},
		"two parents in a circle":   {named(quotaHead+"  namespaceSelector: {matchLabels: {team: b}}\n  parent: a\n", "b"), "the parents form a circle (b -> a -> b)"},
		"a head on lent room":       {named(jobHead+"    - {role: head, min: 1, max: 1, workloadRef: {apiVersion: ray.io/v1, kind: RayCluster, name: r}}\n", "x"), "the head holds the job together"},
		"a head that grows":         {named(jobHead+"    - {role: head, stable: true, min: 1, max: 2, workloadRef: {apiVersion: ray.io/v1, kind: RayCluster, name: r}}\n", "x"), "the head keeps its size"},
	}
	for _, first := range []string{"cron text with six fields", "a head on lent room", "a value that no label has"} {
		await(t, "the definitions and the policies to take effect", func() bool {
			err := create(bad[first].text, true)
			if !refused(err) {
				t.Logf("%s: %v", first, err)
				time.Sleep(time.Second)
			}
			return refused(err)
		})
	}
	for _, text := range good {
		if err := create(text, false); err != nil {
			t.Errorf("%v for\n%s", err, text)
		}
	}
	for name, c := range bad {
		// Rules that compare with other objects see them a moment after they were made.
		var err error
		await(t, "the refusal of "+name, func() bool { err = create(c.text, true); return err != nil })
		if !refused(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the API server says %v, want %q", name, err, c.want)
		}
		r, err := offline.Files([]offline.Input{{Name: "f", Text: []byte(strings.Join(append(good, c.text), "---\n"))}}, offline.Options{})
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, f := range r.Findings {
			found += f.String() + "\n"
		}
		if !strings.Contains(found, c.want) {
			t.Errorf("%s: springtide validate says %q, want %q", name, found, c.want)
		}
	}
	// An older object can be labelled, and its spec corrected field by field.
	patch := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	if _, err := dyn.Resource(v1alpha1.GroupVersion.WithResource("elasticservices")).Namespace("default").Patch(t.Context(), "cart", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Errorf("a label on a service: %v", err)
	}
}

// refused reports whether a policy refused a write; what policies answer is Invalid, or Forbidden where they fail.
func refused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// The cron text that the policy takes is never narrower than the parser's: a policy that refuses what is well could not be got past.
func TestCronOfThePolicy(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("base", "refusals.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var policy admissionv1.ValidatingAdmissionPolicy
	if err := yaml.Unmarshal(offline.Documents(text)[0], &policy); err != nil {
		t.Fatal(err)
	}
	joined := ""
	for _, v := range policy.Spec.Variables {
		if v.Name == "cron" {
			for part := range strings.SplitSeq(v.Expression, "' + r'") {
				joined += strings.Trim(strings.TrimPrefix(part, "r"), "'")
			}
		}
	}
	cron, err := regexp.Compile(joined)
	if err != nil || joined == "" {
		t.Fatalf("%q: %v", joined, err)
	}
	minutes := []string{"*", "?", "0", "59", "60", "*/5", "1-5", "5-1", "0,30", "05", "1-59/2", "x", "*/0"}
	hours := []string{"*", "0", "23", "24", "00-23", "8,20"}
	days := []string{"*", "?", "1", "31", "32", "0", "1-15/2", "01"}
	months := []string{"*", "1", "12", "13", "jan", "Jan-DEC", "foo", "0"}
	weekdays := []string{"*", "0", "6", "7", "sun", "MON-FRI", "1,3,5", "x"}
	taken, refused := 0, 0
	for _, a := range minutes {
		for _, b := range hours {
			for _, c := range days {
				for _, d := range months {
					for _, e := range weekdays {
						s := strings.Join([]string{a, b, c, d, e}, " ")
						_, err := hpa.ParseSchedule(s)
						switch matches := cron.MatchString(s); {
						case err == nil && !matches:
							t.Fatalf("the policy refuses %q, which is well", s)
						case err != nil && !matches:
							refused++
						default:
							taken++
						}
					}
				}
			}
		}
	}
	if taken == 0 || refused < taken/2 {
		t.Errorf("%d taken, %d refused: the policy judges next to nothing", taken, refused)
	}
	for _, s := range []string{"@daily", "0 0 * *", "TZ=UTC 0 0 * * *", "0 30 18 * * *"} {
		if cron.MatchString(s) {
			t.Errorf("%q is taken", s)
		}
	}
}
