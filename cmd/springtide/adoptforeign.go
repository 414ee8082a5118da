package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/validate"
)

// scalerResources are the kinds of other operators.
var scalerResources = map[string]schema.GroupVersionResource{
	scalerScaledObject: {Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"},
	scalerCronHPA:      {Group: "autoscaling.alibabacloud.com", Version: "v1beta1", Resource: "cronhorizontalpodautoscalers"},
}

func (c *clients) scaler(ctx context.Context, kind string, name fleet.Name) (*unstructured.Unstructured, error) {
	u, err := c.dyn.Resource(scalerResources[kind]).Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errFound("there is no %s %s", kind, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	return u, nil
}

// scaledObject is what of KEDA's kind is taken over.
type scaledObject struct {
	Spec struct {
		ScaleTargetRef v1alpha1.TargetRef `json:"scaleTargetRef"`
		Min            *int32             `json:"minReplicaCount"`
		Max            *int32             `json:"maxReplicaCount"`
		Triggers       []struct {
			Type       string            `json:"type"`
			MetricType string            `json:"metricType"`
			Metadata   map[string]string `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

// serviceOfScaledObject takes over bounds and triggers. The second value names what could not be taken.
func serviceOfScaledObject(u *unstructured.Unstructured, utilisation int32) (*v1alpha1.ElasticService, []string, error) {
	var o scaledObject
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return nil, nil, fmt.Errorf("read ScaledObject %s: %w", u.GetName(), err)
	}
	ref := o.Spec.ScaleTargetRef
	s := newService(u.GetNamespace(), v1alpha1.TargetRef{APIVersion: cmp.Or(ref.APIVersion, "apps/v1"), Kind: cmp.Or(ref.Kind, "Deployment"), Name: ref.Name})
	s.Spec.Actuation = string(fleet.ByScale)
	s.Spec.Replicas = v1alpha1.ReplicaBounds{Min: 0, Max: 100} // KEDA's defaults
	if o.Spec.Min != nil {
		s.Spec.Replicas.Min = *o.Spec.Min
	}
	if o.Spec.Max != nil {
		s.Spec.Replicas.Max = *o.Spec.Max
	}
	var notes []string
	cpu := int32(0)
	for i, t := range o.Spec.Triggers {
		name := fmt.Sprintf("%s-%d", t.Type, i)
		switch {
		case t.Type == "cpu" && cmp.Or(t.MetricType, t.Metadata["type"], "Utilization") == "Utilization":
			n, err := strconv.ParseInt(t.Metadata["value"], 10, 32)
			if err == nil {
				cpu = int32(n)
				continue
			}
			notes = append(notes, fmt.Sprintf("trigger %s is left out: its value %q is no percentage", name, t.Metadata["value"]))
		case t.Type == "prometheus":
			s.Spec.Metrics = append(s.Spec.Metrics, v1alpha1.Metric{Name: name, Type: "Query", Query: t.Metadata["query"], TargetPerReplica: t.Metadata["threshold"]})
		case t.Type == "cron":
			w, err := windowOfTrigger(name, t.Metadata)
			if err != nil {
				notes = append(notes, fmt.Sprintf("trigger %s is left out: %s", name, err))
				continue
			}
			s.Spec.Windows = append(s.Spec.Windows, *w)
		default:
			notes = append(notes, fmt.Sprintf("trigger %s is left out: Springtide sizes by CPU, requests and PromQL; write a metric of type Query for it", name))
		}
	}
	if len(s.Spec.Metrics) > 0 && cpu > 0 {
		s.Spec.Metrics = append(s.Spec.Metrics, v1alpha1.Metric{Name: "cpu", Type: "CPU", TargetPercent: &cpu})
	}
	done, err := finish(s, "ScaledObject "+u.GetName(), cmp.Or(utilisation, cpu))
	return done, notes, err
}

// windowOfTrigger is KEDA's cron trigger as a window: a level from its start until its end.
func windowOfTrigger(name string, m map[string]string) (*v1alpha1.Window, error) {
	zone, err := validate.Zone(m["timezone"])
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseInt(m["desiredReplicas"], 10, 32)
	if err != nil {
		return nil, fmt.Errorf("desiredReplicas %q is no number", m["desiredReplicas"])
	}
	start, err := hpa.ParseSchedule(m["start"])
	if err != nil {
		return nil, err
	}
	end, err := hpa.ParseSchedule(m["end"])
	if err != nil {
		return nil, err
	}
	open, even := lasts(start, end, zone)
	if !even {
		return nil, fmt.Errorf("it does not last equally long each time: write a window for each length")
	}
	least := int32(n)
	return &v1alpha1.Window{Name: name, Start: m["start"], Duration: metav1.Duration{Duration: open}, TimeZone: m["timezone"], MinReplicas: &least}, nil
}

// lasts is how long it is from each start of one schedule to the next start of another, and whether that is the same for a fortnight.
func lasts(from, to hpa.Schedule, zone *time.Location) (time.Duration, bool) {
	at := time.Date(2026, 3, 2, 0, 0, 0, 0, zone).Add(-time.Second) // a Monday, away from changes of the clock in most zones
	end := at.AddDate(0, 0, 14)
	length := time.Duration(0)
	for at = from.Next(at, zone); !at.IsZero() && at.Before(end); at = from.Next(at, zone) {
		d := to.Next(at, zone).Sub(at)
		if d <= 0 || d > 168*time.Hour || length != 0 && d != length {
			return 0, false
		}
		length = d
	}
	return length, length > 0
}

// cronHPA is what of Alibaba's kind is taken over.
type cronHPA struct {
	Spec struct {
		ScaleTargetRef v1alpha1.TargetRef `json:"scaleTargetRef"`
		ExcludeDates   []string           `json:"excludeDates"`
		Jobs           []struct {
			Name       string `json:"name"`
			Schedule   string `json:"schedule"`
			TargetSize int32  `json:"targetSize"`
			RunOnce    bool   `json:"runOnce"`
		} `json:"jobs"`
	} `json:"spec"`
}

// serviceOfCronHPA makes a window of each job: its size holds until another job sets the next one.
func serviceOfCronHPA(u *unstructured.Unstructured, utilisation int32, zoneName string) (*v1alpha1.ElasticService, []string, error) {
	var o cronHPA
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return nil, nil, fmt.Errorf("read CronHorizontalPodAutoscaler %s: %w", u.GetName(), err)
	}
	zone, err := validate.Zone(zoneName)
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("--time-zone: %w", err)}
	}
	of := "CronHorizontalPodAutoscaler " + u.GetName()
	ref := o.Spec.ScaleTargetRef
	if ref.Kind == "HorizontalPodAutoscaler" {
		return nil, nil, usageError{fmt.Errorf("%s moves the bounds of HorizontalPodAutoscaler %s: adopt that, and write the jobs as windows", of, ref.Name)}
	}
	s := newService(u.GetNamespace(), ref)
	s.Spec.Actuation = string(fleet.ByScale)
	s.Spec.Replicas.Min = 1
	var notes []string
	if len(o.Spec.ExcludeDates) > 0 {
		notes = append(notes, "excludeDates are left out: write spec.calendar for days that differ")
	}
	schedules := make([]hpa.Schedule, len(o.Spec.Jobs))
	texts := make([]string, len(o.Spec.Jobs))
	for i, j := range o.Spec.Jobs {
		texts[i] = fiveFields(j.Schedule)
		if schedules[i], err = hpa.ParseSchedule(texts[i]); err != nil || j.RunOnce {
			texts[i] = ""
			why := "it runs once"
			if err != nil {
				why = err.Error()
			}
			notes = append(notes, fmt.Sprintf("job %s is left out: %s", j.Name, why))
		}
		s.Spec.Replicas.Max = max(s.Spec.Replicas.Max, j.TargetSize)
	}
	for i := range o.Spec.Jobs {
		if texts[i] == "" {
			continue
		}
		j := &o.Spec.Jobs[i]
		length := 168 * time.Hour
		for k := range schedules {
			if k == i || texts[k] == "" {
				continue
			}
			if d, even := lasts(schedules[i], schedules[k], zone); even {
				length = min(length, d)
			}
		}
		s.Spec.Windows = append(s.Spec.Windows, v1alpha1.Window{Name: strings.ToLower(j.Name), Start: texts[i], Duration: metav1.Duration{Duration: length}, TimeZone: zoneName, MinReplicas: &j.TargetSize})
	}
	done, err := finish(s, of, cmp.Or(utilisation, 60))
	return done, notes, err
}

// fiveFields drops the seconds of a cron expression of six fields where they are 0.
func fiveFields(schedule string) string {
	fields := strings.Fields(schedule)
	if len(fields) == 6 && strings.Trim(fields[0], "0") == "" {
		return strings.Join(fields[1:], " ")
	}
	return schedule
}
