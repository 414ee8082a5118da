package convert

import (
	"slices"
	"strconv"
	"time"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/target"
	"github.com/springtide/springtide/internal/validate"
)

// ServiceFacts is an ElasticService without anything observed.
type ServiceFacts struct {
	Service fleet.Service
	Key     TargetKey
	// Target is spec.targetRef.
	Target v1alpha1.TargetRef
	// Problem says what the API server could not judge (cron, zones, numbers in text); empty when all is well.
	Problem fleet.Problem
	// Holds are the pauses of the object itself.
	Holds []fleet.Hold
	// Scaled is when we last wrote replicas of the target; zero when never.
	Scaled time.Time
}

// NewServiceFacts reads an ElasticService; namespaceLabel names the namespace in the metrics source.
func NewServiceFacts(a *v1alpha1.ElasticService, namespaceLabel string) ServiceFacts {
	name := fleet.Name{Namespace: a.Namespace, Name: a.Name}
	s := &a.Spec
	f := ServiceFacts{
		Key:    KeyOf(a.Namespace, s.TargetRef.APIVersion, s.TargetRef.Kind, s.TargetRef.Name),
		Target: s.TargetRef,
		Scaled: TimeOf(a.Status.LastScaleTime),
		Holds:  serviceHolds(a),
		Service: fleet.Service{
			ID:           fleet.ServiceID(name.String()),
			UID:          fleet.UID(a.UID),
			Target:       fleet.Name{Namespace: a.Namespace, Name: s.TargetRef.Name},
			TargetKind:   s.TargetRef.Kind,
			Mode:         modeOf(s.Mode),
			Pause:        fleet.PauseNone,
			Actuation:    orText(s.Actuation, fleet.Actuation(v1alpha1.DefaultActuation)),
			RequestsMode: orText(s.RequestsMode, fleet.RequestsMode(v1alpha1.DefaultRequestsMode)),
			Min:          s.Replicas.Min,
			Max:          s.Replicas.Max,
			LinkGroup:    s.LinkGroup,
			Behavior:     validate.Behavior(s.Behavior),
		},
	}
	if t := a.Status.Takeovers; t != nil {
		f.Service.Takeovers = fleet.Takeovers{By: t.Manager, Count: t.Count, Last: TimeOf(&t.LastTime)}
	}
	if r := a.Status.Recommendation; r != nil && r.AppliedTime != nil {
		f.Service.Resized = fleet.KnownAt(TimeOf(r.AppliedTime), TimeOf(r.AppliedTime))
	}
	// Texts that are not of their form are among the problems, as are those of the fields below.
	f.Service.SLO, _ = validate.SLO(&s.SLO)
	if ps := validate.ElasticService(a, namespaceLabel); len(ps) > 0 {
		f.Problem = invalid(ps)
		return f
	}
	var err error
	if s.Forecast != nil && s.Forecast.Quantile != "" {
		f.Service.Quantile = judged(s.Forecast.Quantile.Number)
	}
	if s.Startup != "" {
		f.Service.StartUp = judged(s.Startup.Parse)
	}
	if s.ScaleIn != nil {
		f.Service.Standby = judged(s.ScaleIn.Standby.Parse)
	}
	f.Service.Metrics = metricsOf(s, f.Service.SLO.CPULimit())
	for i := range s.Windows {
		w := windowOf(s.Windows[i].Start, s.Windows[i].TimeZone, s.Windows[i].Duration)
		w.Name, w.Min, w.Max = s.Windows[i].Name, Or(s.Windows[i].MinReplicas, 0), Or(s.Windows[i].MaxReplicas, 0)
		f.Service.Windows = append(f.Service.Windows, w)
	}
	if s.LinkRatio != "" {
		if f.Service.LinkRatio, err = strconv.ParseFloat(s.LinkRatio, 64); err != nil || !(f.Service.LinkRatio > 0) {
			f.Problem = catalog.InvalidLinkRatio.Of(s.LinkRatio)
		}
	}
	f.Service.Calendar = calendarOf(s.Calendar)
	return f
}

// calendarOf reads a calendar that was judged before. Its zone is resolved here, as a window's is.
func calendarOf(c *v1alpha1.Calendar) fleet.Calendar {
	if c == nil {
		return fleet.Calendar{}
	}
	zone, err := validate.Zone(c.TimeZone)
	if err != nil {
		panic("a calendar that was not judged: " + err.Error())
	}
	out := fleet.Calendar{Zone: zone, Regions: slices.Sorted(slices.Values(c.Regions))}
	for i := range c.Days {
		d := fleet.NamedDay{Name: c.Days[i].Name, Length: int(Or(c.Days[i].Days, 1))}
		if d.Year, d.Month, d.Day, err = validate.Date(c.Days[i].Date); err != nil {
			panic("a calendar that was not judged: " + err.Error())
		}
		out.Days = append(out.Days, d)
	}
	return out
}

// invalid is the note of a spec that the API server let pass and that makes no sense all the same.
func invalid(ps []validate.Problem) fleet.Problem {
	return catalog.InvalidSpec.Of(validate.Sentence(ps))
}

// judged is the value of a text that was judged before.
func judged[T any](parse func() (T, error)) T {
	v, err := parse()
	if err != nil {
		panic("a text that was not judged: " + err.Error())
	}
	return v
}

// metricsOf reads the reactive metrics; without any, CPU is held at the limit of the SLO, if it has one.
func metricsOf(s *v1alpha1.ElasticServiceSpec, limit float64) []fleet.Metric {
	if limit <= 0 {
		limit = defaultCPU
	}
	if len(s.Metrics) == 0 {
		return []fleet.Metric{{Name: "cpu", Type: fleet.MetricCPU, Target: limit}}
	}
	out := make([]fleet.Metric, len(s.Metrics))
	for i := range s.Metrics {
		m := &s.Metrics[i]
		out[i] = fleet.Metric{Name: m.Name, Type: fleet.MetricType(m.Type), Query: m.Query}
		switch {
		case m.TargetPerReplica != nil:
			out[i].Target = m.TargetPerReplica.AsApproximateFloat64()
		case m.TargetUtilization != "":
			out[i].Target = judged(m.TargetUtilization.Share)
		case out[i].Type == fleet.MetricCPU:
			out[i].Target = limit
		}
	}
	return out
}

// windowOf reads a window that was judged before. The zone is resolved here, at the edge, so that no zone data is read
// by decisions.
func windowOf(start, zone string, length v1alpha1.Duration) fleet.Window {
	loc, err := validate.Zone(zone)
	if err != nil {
		panic("a window that was not judged: " + err.Error())
	}
	return fleet.Window{Schedule: start, Zone: loc, Duration: judged(length.Parse)}
}

// TargetKey names what a scaler scales.
type TargetKey struct{ Namespace, Group, Kind, Name string }

// KeyOf is the key of a reference. The version of the API is no part of it: two references that name the same object by
// two versions name one object.
func KeyOf(namespace, apiVersion, kind, name string) TargetKey {
	return TargetKey{namespace, target.GroupOf(apiVersion, kind), kind, name}
}
