package foreign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/validate"
)

// scaledObject is what of KEDA's kind is read.
type scaledObject struct {
	Spec struct {
		ScaleTargetRef v1alpha1.TargetRef `json:"scaleTargetRef"`
		Min            *int32             `json:"minReplicaCount"`
		Max            *int32             `json:"maxReplicaCount"`
		Advanced       struct {
			HPA struct {
				// Behavior has the fields of ours.
				Behavior *v1alpha1.Behavior `json:"behavior"`
			} `json:"horizontalPodAutoscalerConfig"`
			Modifiers map[string]any `json:"scalingModifiers"`
		} `json:"advanced"`
		Triggers []trigger `json:"triggers"`
	} `json:"spec"`
}

type trigger struct {
	Type       string            `json:"type"`
	MetricType string            `json:"metricType"`
	Metadata   map[string]string `json:"metadata"`
}

// The annotations by which KEDA is paused in part, or whose value pins its target.
const (
	annotationPausedReplicas = "autoscaling.keda.sh/paused-replicas"
	annotationPausedIn       = "autoscaling.keda.sh/paused-scale-in"
	annotationPausedOut      = "autoscaling.keda.sh/paused-scale-out"
	annotationForce          = "autoscaling.keda.sh/force-activation"
)

// KEDA's defaults.
const (
	kedaMax       = 100
	typeValue     = "Value"
	utilisation   = "Utilization"
	triggerCPU    = "cpu"
	triggerCron   = "cron"
	triggerPromQL = "prometheus"
)

// FromScaledObject reads a ScaledObject, which is to be paused: Springtide scales its target.
func FromScaledObject(u *unstructured.Unstructured, opts Options) (*Adoption, error) {
	var o scaledObject
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return nil, fmt.Errorf("read ScaledObject %s: %w", u.GetName(), err)
	}
	ref := o.Spec.ScaleTargetRef
	a := newAdoption(u.GetNamespace(), v1alpha1.TargetRef{APIVersion: cmp.Or(ref.APIVersion, "apps/v1"), Kind: cmp.Or(ref.Kind, "Deployment"), Name: ref.Name})
	a.Lost = lost(ScaledObjectFields, u.Object)
	s := &a.Service.Spec
	s.Actuation = string(fleet.ByScale)
	s.Replicas = v1alpha1.ReplicaBounds{Min: 0, Max: kedaMax}
	if o.Spec.Min != nil {
		s.Replicas.Min = *o.Spec.Min
	}
	if o.Spec.Max != nil {
		s.Replicas.Max = *o.Spec.Max
	}
	a.pauses(u.GetAnnotations(), &o)
	cpu := int32(0)
	names := map[string]bool{triggerCPU: true}
	for i, t := range o.Spec.Triggers {
		path, name := fmt.Sprintf("spec.triggers[%d]", i), plainName(fmt.Sprintf("%s-%d", t.Type, i), names)
		table, known := TriggerFields[t.Type]
		switch {
		case !known:
			a.lose(path, "Springtide sizes by CPU, requests and PromQL, not by %s: write a metric of type Query for it", t.Type)
			continue
		case t.Type != triggerCPU && len(o.Spec.Advanced.Modifiers) > 0:
			a.lose(path, "it is an operand of the formula")
			continue
		}
		a.metadata(path+".metadata", table, t.Metadata, u.Object)
		var err error
		switch t.Type {
		case triggerCPU:
			err = a.cpu(path, &t, &cpu)
		case triggerCron:
			err = a.cron(path, name, &t, names)
		case triggerPromQL:
			err = a.query(name, &t)
		}
		if err != nil {
			a.lose(path, "%s", err)
		}
	}
	if len(s.Metrics) > 0 && cpu > 0 {
		s.Metrics = append(s.Metrics, v1alpha1.Metric{Name: triggerCPU, Type: "CPU",
			TargetUtilization: v1alpha1.PercentOf(float64(cpu) / 100)})
	}
	return a.finish("ScaledObject "+u.GetName(), cmp.Or(opts.Utilisation, cpu))
}

// pausedByKEDA is the pause that stands in the place of KEDA's annotations.
func pausedByKEDA(scope, annotations string) *v1alpha1.Pause {
	return &v1alpha1.Pause{Scope: scope, Reason: "the ScaledObject had " + annotations}
}

// pauses takes what stops a ScaledObject in part, and its behavior.
func (a *Adoption) pauses(annotations map[string]string, o *scaledObject) {
	on := func(name string) bool {
		text, there := annotations[name]
		off, err := strconv.ParseBool(text)
		return there && (err != nil || off) // KEDA takes what is no boolean for true
	}
	in, out := on(annotationPausedIn), on(annotationPausedOut)
	s := &a.Service.Spec
	switch {
	case in && out:
		s.Pause = pausedByKEDA("All", annotationPausedIn+" and "+annotationPausedOut)
	case in:
		s.Pause = pausedByKEDA("In", annotationPausedIn)
	case out:
		s.Pause = pausedByKEDA("Out", annotationPausedOut)
	}
	if annotations[v1alpha1.AnnotationTakenOver] == "" && on(v1alpha1.AnnotationKEDAPaused) {
		a.lose("metadata.annotations", "%s: its owner has paused it, and Springtide would scale its target", v1alpha1.AnnotationKEDAPaused)
	}
	if n, ok := annotations[annotationPausedReplicas]; ok {
		a.lose("metadata.annotations", "%s: its owner holds it at %s replicas, and Springtide would scale its target", annotationPausedReplicas, n)
	}
	if on(annotationForce) {
		a.lose("metadata.annotations", "%s: set replicas.min to 1 or more", annotationForce)
	}
	s.Behavior = o.Spec.Advanced.HPA.Behavior
}

// metadata judges the metadata of one trigger by its table.
func (a *Adoption) metadata(path string, table []Field, metadata map[string]string, object map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(metadata)) {
		f := rowOf(table, k)
		switch {
		case f == nil:
			a.lose(path+"."+k, "this release does not know the field")
		case f.Fate == Lost && (f.same == nil || !f.same(object, metadata[k])):
			a.lose(path+"."+k, "%s", f.Why)
		}
	}
}

func (a *Adoption) cpu(path string, t *trigger, percent *int32) error {
	if how := cmp.Or(t.MetricType, t.Metadata["type"], utilisation); how != utilisation {
		return fmt.Errorf("CPU is held at a share of the requests, not at an %s: write metricType Utilization", how)
	}
	n, err := strconv.ParseInt(t.Metadata["value"], 10, 32)
	if err != nil || n < 1 {
		return fmt.Errorf("its value %q is no percentage", t.Metadata["value"])
	}
	if n > 100 {
		a.lose(path+".metadata.value", "a target of %d %% is above the requests: 100 %% is held", n)
	}
	if *percent == 0 || int32(n) < *percent {
		*percent = min(int32(n), 100) // of two targets the lower one asks for more
	}
	return nil
}

// query takes a prometheus trigger. A target of type Value holds the value itself, however many replicas there are: an HPA multiplies the
// ready replicas by value and target's ratio, which is a total of value times ready replicas, at the target for each.
func (a *Adoption) query(name string, t *trigger) error {
	target, err := strconv.ParseFloat(t.Metadata["threshold"], 64)
	if err != nil || !(target > 0) || number(target) == "0" {
		return fmt.Errorf("its threshold %q: %w", t.Metadata["threshold"], errNotPositive)
	}
	query := t.Metadata["query"]
	switch t.MetricType {
	case "", "AverageValue":
	case typeValue:
		ref := a.Service.Spec.TargetRef
		ready := map[string]string{"Deployment": "kube_deployment_status_replicas_ready{deployment=%q}", "StatefulSet": "kube_statefulset_status_replicas_ready{statefulset=%q}"}[ref.Kind]
		if ready == "" {
			return fmt.Errorf("metricType Value needs the ready replicas, which are not known of a %s", ref.Kind)
		}
		query = fmt.Sprintf("(%s) * scalar(clamp_min(max("+ready+"), 1))", query, ref.Name)
		a.note("metric %s: metricType Value is kept by multiplying with the ready replicas, of which kube-state-metrics must tell the metrics source", name)
	default:
		return fmt.Errorf("metricType %s is none that KEDA takes here", t.MetricType)
	}
	each, err := resource.ParseQuantity(number(target))
	if err != nil {
		return fmt.Errorf("its threshold %q: %w", t.Metadata["threshold"], errNotPositive)
	}
	a.Service.Spec.Metrics = append(a.Service.Spec.Metrics, v1alpha1.Metric{Name: name, Type: "Query", Query: query,
		TargetPerReplica: &each})
	return nil
}

// cron takes KEDA's cron trigger as windows: a level from each start until the next end.
func (a *Adoption) cron(path, name string, t *trigger, names map[string]bool) error {
	m := t.Metadata
	if t.MetricType == typeValue {
		return fmt.Errorf("metricType Value multiplies the replicas with each look: write AverageValue")
	}
	zone, err := validate.Zone(m["timezone"])
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(m["desiredReplicas"], 10, 32)
	if err != nil || n < 1 {
		return fmt.Errorf("desiredReplicas %q: %w", m["desiredReplicas"], errNotPositive)
	}
	start, err := hpa.ParseSchedule(m["start"])
	if err != nil {
		return err
	}
	end, err := hpa.ParseSchedule(m["end"])
	if err != nil {
		return err
	}
	least := min(int32(n), a.Service.Spec.Replicas.Max)
	a.window(path, name, names, fit(m["start"], start, weekly(m["start"]) && weekly(m["end"]), between(start, end), zone), m["timezone"], least)
	return nil
}
