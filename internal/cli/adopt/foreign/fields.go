package foreign

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fate is what becomes of a field of a foreign autoscaler.
type Fate string

// The fates of a field.
const (
	// Taken fields are read into the ElasticService. A value of them that it cannot express is reported as lost.
	Taken Fate = "taken"
	// Harmless fields change no number of replicas, or the autoscaler that stays in charge goes on to follow them.
	Harmless Fate = "harmless"
	// Lost fields change replicas, and an ElasticService cannot express them.
	Lost Fate = "lost"
)

// Field is one row of a table: a field by its path, with all fields below it. The row with the longest path counts.
type Field struct {
	// Path has [] for the items of a list and * for the values of a map.
	Path string
	Fate Fate
	// Why is the reason of a fate other than Taken: of a lost field the difference, and how to keep its effect where that can be.
	Why string
	// same reports values of a lost field at which nothing is lost, mostly its default.
	same func(object map[string]any, value any) bool
}

// covers reports whether the row speaks of a field.
func (f *Field) covers(path string) bool {
	rest, ok := strings.CutPrefix(path, f.Path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// rowOf is the row that speaks of a field, nil if there is none.
func rowOf(table []Field, path string) *Field {
	var best *Field
	for i := range table {
		if f := &table[i]; f.covers(path) && (best == nil || len(f.Path) > len(best.Path)) {
			best = f
		}
	}
	return best
}

// leaf is a field that an object sets.
type leaf struct {
	pattern, path string
	value         any
}

// leaves lists what is set below a value, in the order of their paths. Empty maps and lists set nothing.
func leaves(value any, pattern, path string, out []leaf) []leaf {
	switch v := value.(type) {
	case nil:
		return out
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = leaves(v[k], pattern+"."+k, path+"."+k, out)
		}
		return out
	case []any:
		for i, item := range v {
			out = leaves(item, pattern+"[]", fmt.Sprintf("%s[%d]", path, i), out)
		}
		return out
	}
	return append(out, leaf{pattern, path, value})
}

// lost lists the fields of an object that its ElasticService does without, each row of the table once for an item of a list. A field that
// the table does not know belongs to a newer release of the other system: it is lost too.
func lost(table []Field, object map[string]any) []string {
	var out []string
	for _, l := range leaves(object["spec"], "spec", "spec", nil) {
		f := rowOf(table, l.pattern)
		switch {
		case f == nil:
			out = append(out, l.path+": this release does not know the field")
		case f.Fate == Lost && (f.same == nil || !f.same(object, l.value)):
			out = append(out, upTo(l.path, f.Path)+": "+f.Why)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// upTo cuts a path with indices at the depth of a row's path.
func upTo(path, row string) string {
	parts := strings.Split(path, ".")
	n := strings.Count(row, ".") + 1
	path = strings.Join(parts[:min(n, len(parts))], ".")
	if !strings.HasSuffix(row, "[]") && strings.HasSuffix(path, "]") {
		path = path[:strings.LastIndexByte(path, '[')]
	}
	return path
}

// equal reports values that read like one of some texts.
func equal(texts ...string) func(map[string]any, any) bool {
	return func(_ map[string]any, v any) bool { return slices.Contains(texts, fmt.Sprint(v)) }
}

// alwaysUp reports a ScaledObject that never goes to zero or to an idle count, so that what rules its way there and back is of no effect.
func alwaysUp(object map[string]any, _ any) bool {
	spec, _ := object["spec"].(map[string]any)
	_, idle := spec["idleReplicaCount"]
	least, ok := spec["minReplicaCount"]
	return !idle && ok && fmt.Sprint(least) != "0"
}

const (
	hpaStays = "the HorizontalPodAutoscaler stays, and acts by it"
	hpaFloor = "a floor that is raised is followed at once, past the limits of scaleUp"
)

// HPAFields are the fields of a HorizontalPodAutoscaler's spec (autoscaling/v2) under actuation HPAFloor.
var HPAFields = []Field{
	{Path: "spec.scaleTargetRef.apiVersion", Fate: Taken},
	{Path: "spec.scaleTargetRef.kind", Fate: Taken},
	{Path: "spec.scaleTargetRef.name", Fate: Taken},
	{Path: "spec.minReplicas", Fate: Taken},
	{Path: "spec.maxReplicas", Fate: Taken},
	{Path: "spec.metrics[].type", Fate: Harmless, Why: hpaStays},
	{Path: "spec.metrics[].resource.name", Fate: Taken},
	{Path: "spec.metrics[].resource.target.averageUtilization", Fate: Taken},
	{Path: "spec.metrics[].resource.target.type", Fate: Harmless, Why: hpaStays},
	{Path: "spec.metrics[].resource.target.value", Fate: Harmless, Why: hpaStays},
	{Path: "spec.metrics[].resource.target.averageValue", Fate: Harmless, Why: hpaStays},
	{Path: "spec.metrics[].containerResource.name", Fate: Taken},
	{Path: "spec.metrics[].containerResource.container", Fate: Lost, Why: "the forecast counts the CPU of the whole pod, and takes the container's target for it"},
	{Path: "spec.metrics[].containerResource.target.averageUtilization", Fate: Taken},
	{Path: "spec.metrics[].containerResource.target.type", Fate: Harmless, Why: hpaStays},
	{Path: "spec.metrics[].containerResource.target.value", Fate: Harmless, Why: hpaStays},
	{Path: "spec.metrics[].containerResource.target.averageValue", Fate: Harmless, Why: hpaStays},
	{Path: "spec.metrics[].pods", Fate: Harmless, Why: hpaStays},
	{Path: "spec.metrics[].object", Fate: Harmless, Why: hpaStays},
	{Path: "spec.metrics[].external", Fate: Harmless, Why: hpaStays},
	{Path: "spec.behavior.scaleDown", Fate: Harmless, Why: hpaStays},
	{Path: "spec.behavior.scaleUp.stabilizationWindowSeconds", Fate: Lost, Why: hpaFloor, same: equal("0")},
	{Path: "spec.behavior.scaleUp.selectPolicy", Fate: Lost, Why: hpaFloor, same: equal("Max")},
	{Path: "spec.behavior.scaleUp.policies", Fate: Lost, Why: hpaFloor, same: defaultScaleUp},
	{Path: "spec.behavior.scaleUp.tolerance", Fate: Harmless, Why: hpaStays},
}

// defaultScaleUp reports the policies that the API server itself puts into an HPA with a behavior.
func defaultScaleUp(object map[string]any, _ any) bool {
	spec, _ := object["spec"].(map[string]any)
	behavior, _ := spec["behavior"].(map[string]any)
	up, _ := behavior["scaleUp"].(map[string]any)
	policies, _ := up["policies"].([]any)
	for _, p := range policies {
		m, _ := p.(map[string]any)
		switch text := fmt.Sprint(m["type"], m["value"], m["periodSeconds"]); text {
		case fmt.Sprint("Pods", 4, 15), fmt.Sprint("Percent", 100, 15):
		default:
			return false
		}
	}
	return true
}

const (
	noFormula = "triggers are not combined by a formula: write one query that computes it"
	ownSource = "the query goes to Springtide's own metrics source"
)

// ScaledObjectFields are the fields of a ScaledObject's spec.
var ScaledObjectFields = []Field{
	{Path: "spec.scaleTargetRef.apiVersion", Fate: Taken},
	{Path: "spec.scaleTargetRef.kind", Fate: Taken},
	{Path: "spec.scaleTargetRef.name", Fate: Taken},
	{Path: "spec.scaleTargetRef.envSourceContainerName", Fate: Harmless, Why: "no trigger that is taken reads the environment of a container"},
	{Path: "spec.minReplicaCount", Fate: Taken},
	{Path: "spec.maxReplicaCount", Fate: Taken},
	{Path: "spec.idleReplicaCount", Fate: Lost, Why: "an idle service keeps replicas.min: lower that, or write a window for the busy hours"},
	{Path: "spec.pollingInterval", Fate: Harmless, Why: "Springtide reads its metrics in each cycle"},
	{Path: "spec.cooldownPeriod", Fate: Lost,
		Why: "the way to zero takes behavior.scaleDown.stabilizationWindowSeconds", same: func(o map[string]any,
			v any) bool {
			return alwaysUp(o, v) || fmt.Sprint(v) == "300"
		}},
	{Path: "spec.initialCooldownPeriod", Fate: Lost, Why: "a new target is not kept up for a time of its own", same: func(o map[string]any, v any) bool { return alwaysUp(o, v) || fmt.Sprint(v) == "0" }},
	{Path: "spec.advanced.restoreToOriginalReplicaCount", Fate: Harmless, Why: "it counts only when the ScaledObject is deleted"},
	{Path: "spec.advanced.scalingModifiers.formula", Fate: Lost, Why: noFormula},
	{Path: "spec.advanced.scalingModifiers.target", Fate: Lost, Why: noFormula},
	{Path: "spec.advanced.scalingModifiers.activationTarget", Fate: Lost, Why: noFormula},
	{Path: "spec.advanced.scalingModifiers.metricType", Fate: Lost, Why: noFormula},
	{Path: "spec.advanced.horizontalPodAutoscalerConfig.name", Fate: Harmless, Why: "it names an object"},
	{Path: "spec.advanced.horizontalPodAutoscalerConfig.behavior", Fate: Taken},
	{Path: "spec.fallback.behavior", Fate: Lost, Why: "a metric that cannot be read holds the replicas and asks for none"},
	{Path: "spec.fallback.failureThreshold", Fate: Lost, Why: "a metric that cannot be read holds the replicas and asks for none"},
	{Path: "spec.fallback.replicas", Fate: Lost, Why: "a metric that cannot be read holds the replicas and asks for none"},
	{Path: "spec.triggers[].type", Fate: Taken},
	{Path: "spec.triggers[].name", Fate: Harmless, Why: "it names a trigger for the formula"},
	{Path: "spec.triggers[].metricType", Fate: Taken},
	{Path: "spec.triggers[].metadata", Fate: Taken}, // by the tables below
	{Path: "spec.triggers[].useCachedMetrics", Fate: Harmless, Why: "Springtide reads its metrics in each cycle"},
	{Path: "spec.triggers[].authenticationRef.name", Fate: Lost, Why: ownSource + ", with its credentials"},
	{Path: "spec.triggers[].authenticationRef.kind", Fate: Lost, Why: ownSource + ", with its credentials"},
}

// TriggerFields are the metadata of the triggers that are taken, by the trigger's type. Of any other type the whole trigger is lost.
var TriggerFields = map[string][]Field{
	"cpu": {
		{Path: "value", Fate: Taken},
		{Path: "type", Fate: Taken},
		{Path: "containerName", Fate: Lost, Why: "the CPU of the whole pod is held at the container's target"},
	},
	"cron": {
		{Path: "start", Fate: Taken},
		{Path: "end", Fate: Taken},
		{Path: "timezone", Fate: Taken},
		{Path: "desiredReplicas", Fate: Taken},
	},
	"prometheus": {
		{Path: "query", Fate: Taken},
		{Path: "threshold", Fate: Taken},
		{Path: "serverAddress", Fate: Harmless, Why: ownSource},
		{Path: "timeout", Fate: Harmless, Why: ownSource},
		{Path: "unsafeSsl", Fate: Harmless, Why: ownSource},
		{Path: "metricName", Fate: Harmless, Why: "KEDA no longer reads it"},
		{Path: "ignoreNullValues", Fate: Harmless, Why: "a query without a value holds the replicas"},
		{Path: "activationThreshold", Fate: Lost, Why: "any load above zero keeps a replica", same: func(o map[string]any, v any) bool { return alwaysUp(o, v) || fmt.Sprint(v) == "0" }},
		{Path: "namespace", Fate: Lost, Why: "a query sees the namespace of its service alone"},
		{Path: "queryParameters", Fate: Lost, Why: ownSource + ", without parameters"},
		{Path: "customHeaders", Fate: Lost, Why: ownSource + ", without these headers"},
		{Path: "awsRegion", Fate: Lost, Why: ownSource + ", with its credentials"},
		{Path: "identityOwner", Fate: Lost, Why: ownSource + ", with its credentials"},
		{Path: "authModes", Fate: Lost, Why: ownSource + ", with its credentials"},
		{Path: "authMode", Fate: Lost, Why: ownSource + ", with its credentials"},
		{Path: "apiKey", Fate: Lost, Why: ownSource + ", with its credentials"},
		{Path: "method", Fate: Lost, Why: ownSource + ", with its credentials"},
		{Path: "keyParamName", Fate: Lost, Why: ownSource + ", with its credentials"},
	},
}

// CronHPAFields are the fields of a CronHorizontalPodAutoscaler's spec.
var CronHPAFields = []Field{
	{Path: "spec.scaleTargetRef.apiVersion", Fate: Taken},
	{Path: "spec.scaleTargetRef.kind", Fate: Taken},
	{Path: "spec.scaleTargetRef.name", Fate: Taken},
	{Path: "spec.cronMode", Fate: Taken},
	{Path: "spec.excludeDates", Fate: Lost, Why: "a window opens on these days too: write spec.calendar for days that differ"},
	{Path: "spec.jobs[].name", Fate: Taken},
	{Path: "spec.jobs[].schedule", Fate: Taken},
	{Path: "spec.jobs[].targetSize", Fate: Taken},
	{Path: "spec.jobs[].runOnce", Fate: Taken},
}
