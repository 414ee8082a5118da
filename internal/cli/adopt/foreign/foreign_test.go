package foreign

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
)

// read adopts an object that is given as YAML.
func read(t *testing.T, text string) (*Adoption, error) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return adopt(u)
}

func adopt(u *unstructured.Unstructured) (*Adoption, error) {
	switch u.GetKind() {
	case "ScaledObject":
		return FromScaledObject(u, Options{Utilisation: 60})
	case "CronHorizontalPodAutoscaler":
		return FromCronHPA(u, Options{Zone: "Europe/Berlin"})
	}
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, h); err != nil {
		return nil, err
	}
	return FromHPA(h, Options{})
}

const (
	hpaText = `{kind: HorizontalPodAutoscaler, metadata: {name: mail, namespace: shop}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: mail},
  minReplicas: 2, maxReplicas: 9, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 55}}}]}}`
	kedaText = `{kind: ScaledObject, metadata: {name: mail, namespace: shop}, spec: {scaleTargetRef: {name: mail}, minReplicaCount: 0, maxReplicaCount: 30, triggers: [
  {type: cpu, metricType: Utilization, metadata: {value: "55"}},
  {type: prometheus, metadata: {query: 'sum(rate(mails_total[2m]))', threshold: "40"}},
  {type: cron, metadata: {timezone: Asia/Shanghai, start: "30 8 * * *", end: "0 20 * * *", desiredReplicas: "10"}}]}}`
	cronText = `{kind: CronHorizontalPodAutoscaler, metadata: {name: mail, namespace: shop}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: mail}, jobs: [
  {name: up, schedule: 0 0 19 * * *, targetSize: 20}, {name: down, schedule: 0 0 23 * * *, targetSize: 4}]}}`
)

// samples are values for fields that differ from what the texts above have, and are not defaults.
var samples = map[string]any{
	"spec.scaleTargetRef.apiVersion": "apps/v1beta1", "spec.scaleTargetRef.kind": "StatefulSet", "spec.scaleTargetRef.name": "other",
	"spec.minReplicas": int64(3), "spec.maxReplicas": int64(8), "spec.minReplicaCount": int64(3), "spec.maxReplicaCount": int64(8),
	"spec.metrics[].resource.name": "memory", "spec.metrics[].resource.target.averageUtilization": int64(70),
	"spec.metrics[].containerResource.name": "", "spec.metrics[].containerResource.target.averageUtilization": "",
	"spec.triggers[].type": "kafka", "spec.triggers[].metricType": "Value", "spec.triggers[].useCachedMetrics": true,
	"spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.stabilizationWindowSeconds": int64(60),
	"spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.selectPolicy":               "Disabled",
	"spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleUp.selectPolicy":                 "Disabled",
	"spec.cronMode": "Disable", "spec.jobs[].name": "evening", "spec.jobs[].schedule": "0 0 18 * * *", "spec.jobs[].targetSize": int64(7), "spec.jobs[].runOnce": true,
	"spec.behavior.scaleUp.policies[].type": "Pods", "spec.behavior.scaleUp.selectPolicy": "Min",
	"value": "70", "type": "AverageValue", "start": "0 9 * * *", "end": "0 19 * * *", "timezone": "UTC", "desiredReplicas": "7", "query": "sum(up)", "threshold": "20",
}

// set writes a value at a path with [], into each of the items there are, or into a first one.
func set(at map[string]any, path string, v any) {
	head, rest, more := strings.Cut(path, ".")
	name, isList := strings.CutSuffix(head, "[]")
	if !isList {
		if !more {
			at[name] = v
			return
		}
		inner, _ := at[name].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
		}
		at[name] = inner
		set(inner, rest, v)
		return
	}
	items, _ := at[name].([]any)
	if !more {
		at[name] = []any{v}
		return
	}
	if len(items) == 0 {
		items = []any{map[string]any{}}
	}
	at[name] = items
	set(items[len(items)-1].(map[string]any), rest, v)
}

// TestFatesAreTrue sets each field of a schema alone: a taken one changes the service or is reported, a harmless one changes nothing, and
// a lost one is reported by its path.
func TestFatesAreTrue(t *testing.T) {
	keda := recorded(t, "scaledobject-2.21.0.txt")
	for name, c := range map[string]struct {
		text, below string
		table       []Field
		fields      []string
	}{
		"HorizontalPodAutoscaler":     {hpaText, "", HPAFields, schemaFields(reflect.TypeFor[autoscalingv2.HorizontalPodAutoscalerSpec](), "spec")},
		"ScaledObject":                {kedaText, "", ScaledObjectFields, keda[""]},
		"CronHorizontalPodAutoscaler": {cronText, "", CronHPAFields, recorded(t, "cronhpa-v1beta1.txt")[""]},
		"cpu":                         {kedaText, "0", TriggerFields["cpu"], keda["cpu"]},
		"prometheus":                  {kedaText, "1", TriggerFields["prometheus"], keda["prometheus"]},
		"cron":                        {kedaText, "2", TriggerFields["cron"], keda["cron"]},
	} {
		before, err := read(t, c.text)
		if err != nil || len(before.Lost) > 0 {
			t.Fatalf("%s: %v, lost %q", name, err, before.Lost)
		}
		for _, field := range c.fields {
			v, known := samples[field]
			f := rowOf(c.table, field)
			if strings.HasSuffix(field, ".*") || v == "" {
				continue
			}
			if !known {
				v = any(int64(7))
				switch {
				case strings.HasSuffix(field, ".selector"):
					v = map[string]any{"matchLabels": map[string]any{"seven": "7"}}
				case strings.Contains(field, "target.") && !strings.HasSuffix(field, ".type"):
				case strings.Contains(field, "[].") || strings.Contains(field, "ame") || c.below != "":
					v = "seven"
				}
			}
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(c.text), &u.Object); err != nil {
				t.Fatal(err)
			}
			if c.below != "" {
				triggers, _, _ := unstructured.NestedSlice(u.Object, "spec", "triggers")
				tr := triggers[int(c.below[0]-'0')].(map[string]any)
				if field == "type" {
					delete(tr, "metricType")
				}
				tr["metadata"].(map[string]any)[field] = fmt.Sprint(v)
				_ = unstructured.SetNestedSlice(u.Object, triggers, "spec", "triggers")
			} else {
				set(u.Object, field, v)
			}
			after, err := adoptRaw(u, c.table)
			if after == nil {
				after = &Adoption{Service: &v1alpha1.ElasticService{}}
			}
			changed := err != nil || !reflect.DeepEqual(before.Service.Spec, after.Service.Spec) || !slices.Equal(before.Lost, after.Lost)
			switch {
			case f.Fate == Taken && !changed:
				t.Errorf("%s: %s is said to be taken, and %v makes no difference", name, field, v)
			case f.Fate == Harmless && changed:
				t.Errorf("%s: %s is said to be harmless, and %v makes a difference: %v %q", name, field, v, err, after.Lost)
			case f.Fate == Lost && (err != nil || !strings.Contains(strings.Join(after.Lost, "\n"), f.Why)):
				t.Errorf("%s: %s is said to be lost, and %v is reported as %q (%v)", name, field, v, after.Lost, err)
			}
		}
	}
}

// adoptRaw adopts, and reads the fields of an HPA from the object as it is: the Go type would refuse values of another type.
func adoptRaw(u *unstructured.Unstructured, table []Field) (*Adoption, error) {
	if u.GetKind() != "HorizontalPodAutoscaler" {
		return adopt(u)
	}
	found := lost(table, u.Object)
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, h)
	a, err := FromHPA(h, Options{})
	if a != nil {
		a.Lost = found
	}
	return a, err
}

// TestLost names what operators have in their objects, and the way in which it is reported.
func TestLost(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"formula":        {strings.Replace(kedaText, "triggers:", "advanced: {scalingModifiers: {formula: (a + b) / 2, target: '5'}}, triggers:", 1), "spec.advanced.scalingModifiers.formula"},
		"its operands":   {strings.Replace(kedaText, "triggers:", "advanced: {scalingModifiers: {formula: (a + b) / 2, target: '5'}}, triggers:", 1), "spec.triggers[1]: it is an operand"},
		"fallback":       {strings.Replace(kedaText, "triggers:", "fallback: {failureThreshold: 3, replicas: 6}, triggers:", 1), "spec.fallback.replicas"},
		"idle":           {strings.Replace(kedaText, "minReplicaCount: 0", "minReplicaCount: 2, idleReplicaCount: 0", 1), "spec.idleReplicaCount"},
		"cooldown":       {strings.Replace(kedaText, "triggers:", "cooldownPeriod: 900, triggers:", 1), "spec.cooldownPeriod"},
		"authentication": {strings.Replace(kedaText, `threshold: "40"}`, `threshold: "40"}, authenticationRef: {name: mimir}`, 1), "spec.triggers[1].authenticationRef.name"},
		"container":      {strings.Replace(kedaText, `value: "55"`, `value: "55", containerName: app`, 1), "spec.triggers[0].metadata.containerName"},
		"tenant header":  {strings.Replace(kedaText, `threshold: "40"`, `threshold: "40", customHeaders: X-Scope-OrgID=a`, 1), "spec.triggers[1].metadata.customHeaders"},
		"newer release":  {strings.Replace(kedaText, "triggers:", "surge: {percent: 5}, triggers:", 1), "spec.surge.percent: this release does not know"},
		"foreign query":  {strings.Replace(kedaText, "mails_total", `mails_total{namespace="bank"}`, 1), "metric prometheus-1"},
		"no threshold":   {strings.Replace(kedaText, `"40"`, `"0"`, 1), "spec.triggers[1]: its threshold"},
		"memory":         {strings.Replace(kedaText, "type: cpu", "type: memory", 1), "spec.triggers[0]: Springtide sizes by"},
		"paused":         {strings.Replace(kedaText, "{name: mail, namespace: shop}", `{name: mail, namespace: shop, annotations: {autoscaling.keda.sh/paused-replicas: "4"}}`, 1), "holds it at 4"},
		"excluded days":  {strings.Replace(cronText, "jobs:", `excludeDates: ["* * * 1 1 *"], jobs:`, 1), "spec.excludeDates"},
		"runs once":      {strings.Replace(cronText, "targetSize: 4", "targetSize: 4, runOnce: true", 1), "spec.jobs[1]: job down runs once"},
		"scale-up":       {strings.Replace(hpaText, "metrics:", "behavior: {scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 60}]}}, metrics:", 1), "spec.behavior.scaleUp.policies"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := read(t, c.text)
			if err != nil || !strings.Contains(strings.Join(a.Lost, "\n"), c.want) {
				t.Errorf("%v: lost %q, want %q in it", err, a.Lost, c.want)
			}
		})
	}
}

// TestNothingLost holds objects that lose nothing: defaults that are written out, and what has no effect.
func TestNothingLost(t *testing.T) {
	always := strings.Replace(kedaText, "minReplicaCount: 0", "minReplicaCount: 1", 1)
	for name, text := range map[string]string{
		"cooldown of what is never at zero": strings.Replace(always, "triggers:", "cooldownPeriod: 900, initialCooldownPeriod: 60, triggers:", 1),
		"the API server's defaults": strings.Replace(hpaText, "metrics:", "behavior: {scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]}, "+
			"scaleDown: {policies: [{type: Pods, value: 1, periodSeconds: 60}]}}, metrics:", 1),
		"activation of what is never at zero": strings.Replace(always, `threshold: "40"`, `threshold: "40", activationThreshold: "5"`, 1),
	} {
		if a, err := read(t, text); err != nil || len(a.Lost) > 0 {
			t.Errorf("%s: %v, lost %q", name, err, a.Lost)
		}
	}
}

// TestZeroIsTaken: a minimum of 0 stays 0, and where nothing that is taken over wakes the service, a note says so.
func TestZeroIsTaken(t *testing.T) {
	noQuery := strings.Replace(kedaText,
		`  {type: prometheus, metadata: {query: 'sum(rate(mails_total[2m]))', threshold: "40"}},`+"\n", "", 1)
	for name, c := range map[string]struct {
		text  string
		noted bool
	}{
		"HorizontalPodAutoscaler":         {strings.Replace(hpaText, "minReplicas: 2", "minReplicas: 0", 1), false},
		"ScaledObject with a query":       {kedaText, false},
		"ScaledObject by CPU and a clock": {noQuery, true},
	} {
		a, err := read(t, c.text)
		if err != nil {
			t.Fatal(err)
		}
		noted := strings.Contains(strings.Join(a.Notes, "\n"), "one replica stays")
		if a.Service.Spec.Replicas.Min != 0 || noted != c.noted || slices.Contains(a.Lost, "spec.minReplicas") {
			t.Errorf("%s: minimum %d, notes %q, lost %q", name, a.Service.Spec.Replicas.Min, a.Notes, a.Lost)
		}
	}
}

func TestTaken(t *testing.T) {
	windows := func(a *Adoption) []string {
		var out []string
		for _, w := range a.Service.Spec.Windows {
			out = append(out, fmt.Sprintf("%s: %s +%s >=%d", w.Name, w.Start, w.Duration, *w.MinReplicas))
		}
		return out
	}
	cron := func(zone, start, end string) string {
		return fmt.Sprintf(`{kind: ScaledObject, metadata: {name: mail, namespace: shop}, spec: {scaleTargetRef: {name: mail}, triggers: [
  {type: cron, metadata: {timezone: %s, start: %q, end: %q, desiredReplicas: "10"}}]}}`, zone, start, end)
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a day in Shanghai": {cron("Asia/Shanghai", "30 8 * * *", "0 20 * * *"),
			[]string{"cron-0: 30 8 * * * +11h30m >=10"}},
		"a night in New York": {cron("America/New_York", "0 22 * * *", "0 6 * * *"),
			[]string{"cron-0: 0 22 * * 6 +7h >=10", "cron-0-2: 0 22 * * 0,1,2,3,4,5 +8h >=10", "cron-0-3: 0 4 * * * +2h >=10"}},
		"a weekend in Berlin": {cron("Europe/Berlin", "0 20 * * 5", "0 6 * * 1"),
			[]string{"cron-0: 0 20 * * 5 +57h >=10", "cron-0-2: 0 4 * * 1 +2h >=10"}},
		"working days": {cron("America/New_York", "0 9 * * 1-5", "0 18 * * 1-5"),
			[]string{"cron-0: 0 9 * * 1-5 +9h >=10"}},
		"the last start counts": {cron("UTC", "0 9-17 * * *", "0 18 * * *"), []string{"cron-0: 0 17 * * * +1h >=10"}},
		"longer on Fridays":     {cron("UTC", "0 9 * * 1-5", "0 18 * * 1-4"), []string{"cron-0: 0 9 * * 1,2,3,4 +9h >=10"}},
		"jobs of a day": {cronText, []string{"up: 0 19 * * * +4h >=20", "down: 0 23 * * 6 +19h >=4",
			"down-2: 0 23 * * 0,1,2,3,4,5 +20h >=4", "down-3: 0 17 * * * +2h >=4"}},
		"one job alone": {strings.Replace(cronText, ", {name: down, schedule: 0 0 23 * * *, targetSize: 4}", "",
			1), []string{"up: 0 0 * * * +25h >=20"}},
		"to nothing": {strings.Replace(cronText, "targetSize: 4", "targetSize: 0", 1),
			[]string{"up: 0 19 * * * +4h >=20"}},
		"names that are no names": {strings.ReplaceAll(strings.ReplaceAll(cronText, "name: up", "name: Auf 上"),
			"name: down", "name: auf--"), []string{"auf: 0 19 * * * +4h >=20", "auf-2: 0 23 * * 6 +19h >=4",
			"auf-2-2: 0 23 * * 0,1,2,3,4,5 +20h >=4", "auf-2-3: 0 17 * * * +2h >=4"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := read(t, c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := windows(a); !slices.Equal(got, c.want) {
				t.Errorf("windows:\n%s\nwant:\n%s\n(%q %q)", strings.Join(got, "\n"), strings.Join(c.want, "\n"), a.Lost, a.Notes)
			}
		})
	}
}

// TestPauses holds what stops KEDA in part.
func TestPauses(t *testing.T) {
	for want, annotations := range map[string]string{"": "a: b", "In": `autoscaling.keda.sh/paused-scale-in: "true"`, "Out": `autoscaling.keda.sh/paused-scale-out: ""`,
		"All": `autoscaling.keda.sh/paused-scale-in: "1", autoscaling.keda.sh/paused-scale-out: "true"`} {
		a, err := read(t, strings.Replace(kedaText, "{name: mail, namespace: shop}", "{name: mail, namespace: shop, annotations: {"+annotations+"}}", 1))
		if err != nil {
			t.Fatalf("%s: %v", annotations, err)
		}
		if got := a.Service.Spec.Pause; want == "" && got != nil || want != "" && (got == nil || got.Scope != want ||
			got.Reason == "") {
			t.Errorf("%s: pause %+v, want %q", annotations, got, want)
		}
	}
}

// TestTriggersOfAllTypes draws the conclusion for types of which no table speaks.
func TestTriggersOfAllTypes(t *testing.T) {
	known := slices.Sorted(maps.Keys(TriggerFields))
	if !slices.Equal(known, []string{"cpu", "cron", "prometheus"}) {
		t.Errorf("tables for %v: give each type its fields in testdata", known)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{1.003: "1.003", 1.0034: "1.003", 1.0036: "1.004", 0.29: "0.29", 2.5: "2.5", 100: "100", 1e6: "1000000", 0.0004: "0", 4.35: "4.35"} {
		if got := number(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

// TestBehaviorIsTaken: the rules of a ScaledObject's HPA become those of the service, field by field.
func TestBehaviorIsTaken(t *testing.T) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(kedaText), &u.Object); err != nil {
		t.Fatal(err)
	}
	want := autoscalingv2.HorizontalPodAutoscalerBehavior{
		ScaleUp: &autoscalingv2.HPAScalingRules{SelectPolicy: ptr.To(autoscalingv2.DisabledPolicySelect),
			Tolerance: ptr.To(resource.MustParse("200m"))},
		ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](60),
			SelectPolicy: ptr.To(autoscalingv2.MinChangePolicySelect),
			Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 60},
				{Type: autoscalingv2.PercentScalingPolicy, Value: 10, PeriodSeconds: 30}}},
	}
	theirs, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want)
	if err != nil {
		t.Fatal(err)
	}
	set(u.Object, "spec.advanced.horizontalPodAutoscalerConfig.behavior", theirs)
	a, err := FromScaledObject(u, Options{Utilisation: 60})
	if err != nil || len(a.Lost) > 0 {
		t.Fatalf("%v, lost %q", err, a.Lost)
	}
	ours, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.Service.Spec.Behavior)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(theirs, ours); d != "" {
		t.Error(d)
	}
}
