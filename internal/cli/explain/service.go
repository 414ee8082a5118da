package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/validate"
)

func explainService(ctx context.Context, o *cluster.Options, c *cluster.Clients, arg string) (*explanation, error) {
	name, err := o.NameOf(c, arg)
	if err != nil {
		return nil, err
	}
	s, err := cluster.Get[v1alpha1.ElasticService](ctx, c, cluster.Services, name)
	if err != nil {
		return nil, err
	}
	p := &screen.Page{Title: fmt.Sprintf("Service %s (%s %s)", name, s.Spec.TargetRef.Kind, s.Spec.TargetRef.Name)}
	st := &s.Status
	p.Add("Mode", "%s by %s", modeText(s), cell.OrNone(s.Spec.Actuation))
	p.Add("Replicas", "%s, within %d to %d", cell.Written(st.ObservedGeneration, fmt.Sprintf("%s; wanted %s", cell.ReadyPods(st), cell.Desired(s))), s.Spec.Replicas.Min, s.Spec.Replicas.Max)
	if b := st.Standby; b != nil {
		p.Add("Standby", "%d pods are out of traffic; the standby of the first ends at %s, unless the tide returns",
			b.Replicas, cell.Stamp(b.EndTime))
	}
	if st.Pause != nil {
		p.Add("Paused", "%s", cell.PauseText(st.Pause))
	}
	if st.ObservedTime != nil {
		p.Add("As of", "%s", ageText(st.ObservedTime, c.Now()))
	}
	p.Add("Why", "%s", cell.OrNone(st.Reason))
	p.Add("SLO", "%s", sloText(&s.Spec.SLO))
	if text := promiseText(st.SLO); text != "" {
		p.Add("Promise", "%s", text)
	}
	if o := st.SLO; o != nil && o.QuantileMessage != "" {
		p.Add("Quantile", "%s", o.QuantileMessage)
	}
	p.Add("Forecast", "%s", tideText(st, quantileOf(s)))
	if s.Spec.Calendar != nil {
		p.Add("Calendar", "%s", calendarText(s.Spec.Calendar, st.Tide))
	}
	p.Add("Portrait", "%s", portraitText(st.Portrait))
	if st.Portrait != nil && len(st.Portrait.Accuracy) > 0 {
		p.Add("Accuracy", "%s", accuracyText(st.Portrait.Accuracy))
	}
	if c := meta.FindStatusCondition(st.Conditions, catalog.ConditionSkillLost); c != nil &&
		c.Status == metav1.ConditionTrue {
		p.Add("Skill lost", "since %s: %s", cell.Stamp(&c.LastTransitionTime), c.Message)
	}
	if l := st.Link; l != nil {
		p.Add("Link", "group %s, ratio %s: %s", l.Group, strings.ToLower(l.Source), cell.OrNone(l.Note))
	}
	if text := firstScaleIn(s.Spec.Mode, st.Portrait, c.Now()); text != "" {
		p.Add("First scale-in", "%s", text)
	}
	p.Add("Requests", "%s", requestsText(s.Spec.RequestsMode, st.Recommendation))
	p.Add("Last two weeks", "%s", summaryText(st.Summary))
	p.Add("Last change", "%s", cell.Stamp(st.LastScaleTime))
	windows(p, s.Spec.Windows, c.Now())
	levels(p, st.SLO)
	p.Conditions(st.Conditions)
	e := &explanation{page: p, Object: s}
	return e, e.ground(ctx, o, c, "ElasticService", name)
}

// ageText says when a status was seen, and how long ago that is where it is more than one cycle.
func ageText(at *metav1.Time, now time.Time) string {
	switch age := now.Sub(at.Time).Round(time.Second); {
	case age >= 24*time.Hour:
		return fmt.Sprintf("%s, more than a day ago: no controller writes here; springtide doctor says why", cell.Stamp(at))
	case age > 30*time.Second:
		return fmt.Sprintf("%s, %s ago; what an operator acts on is written at once, plain changes within ten minutes, small scales within two hours", cell.Stamp(at), age)
	}
	return cell.Stamp(at)
}

// sloText lists the levels and the objective, which is marked where it is the default.
func sloText(s *v1alpha1.SLO) string {
	var parts []string
	for _, l := range s.Latency {
		parts = append(parts, fmt.Sprintf("p%s of latency under %s", l.Percentile, l.Under))
	}
	if s.Errors != nil {
		parts = append(parts, fmt.Sprintf("at most %s of requests fail", s.Errors.AtMost))
	}
	if s.Throughput != nil {
		parts = append(parts, "work is done as it arrives")
	}
	if s.Backlog != nil {
		parts = append(parts, "a backlog is done within "+string(s.Backlog.DrainWithin))
	}
	if u := s.Utilization; u != nil {
		for _, x := range [...]struct {
			what  string
			limit v1alpha1.Percent
		}{{"CPU", u.CPU}, {"memory", u.Memory}, {"GPU", u.GPU}} {
			if x.limit != "" {
				parts = append(parts, fmt.Sprintf("%s under %s of the requests", x.what, x.limit))
			}
		}
	}
	if len(parts) == 0 {
		return cell.None
	}
	return strings.Join(parts, ", ") + ", in " + objectiveText(s.Objective)
}

func objectiveText(o *v1alpha1.Objective) string {
	if o == nil {
		return fmt.Sprintf("%s of the minutes of %s (the default objective)", v1alpha1.DefaultGoodMinutes,
			v1alpha1.DefaultOver)
	}
	return fmt.Sprintf("%s of the minutes of %s", cmp.Or(o.GoodMinutes, v1alpha1.DefaultGoodMinutes),
		cmp.Or(o.Over, v1alpha1.DefaultOver))
}

// quantileOf is the quantile of the tide that sizing covers: the stated one, else the one that the record chose.
func quantileOf(s *v1alpha1.ElasticService) v1alpha1.Quantile {
	if f := s.Spec.Forecast; f != nil && f.Quantile != "" {
		return f.Quantile
	}
	if p := s.Status.SLO; p != nil && p.Quantile != "" {
		return v1alpha1.Quantile(p.Quantile)
	}
	return v1alpha1.DefaultQuantile
}

func tideText(st *v1alpha1.ElasticServiceStatus, q v1alpha1.Quantile) string {
	t := st.Tide
	switch {
	case t == nil:
		return "none yet"
	case t.Model == "" || t.Model == forecast.ModelNone:
		return "none yet: no model has seen enough of this service"
	}
	return fmt.Sprintf("%d replicas cover the quantile %s now with the lead included; peak %d at %s, ebb %d at %s "+
		"(model %s)",
		st.FloorReplicas, q, t.PeakReplicas, cell.Stamp(t.PeakTime), t.LowReplicas, cell.Stamp(t.LowTime), t.Model)
}

// calendarText says whose days count, and which of them lift the forecast.
func calendarText(c *v1alpha1.Calendar, t *v1alpha1.TideStatus) string {
	whose := slices.Clone(c.Regions)
	if n := len(c.Days); n > 0 {
		whose = append(whose, fmt.Sprintf("own days (%d)", n))
	}
	text := fmt.Sprintf("%s, days begin in %s; ", strings.Join(whose, ", "), c.TimeZone)
	if t == nil || len(t.Days) == 0 {
		return text + "no day of it is known to lift the forecast"
	}
	var lifts []string
	for _, d := range t.Days {
		lift := fmt.Sprintf("%s from %s up to %d %% of an ordinary day", d.Name, cell.Stamp(&d.From), d.Percent)
		if d.Percent < 100 {
			lift = fmt.Sprintf("%s from %s down to %d %% of an ordinary day", d.Name, cell.Stamp(&d.From), d.Percent)
		}
		if d.Kin {
			lift += " as its kin saw"
		}
		lifts = append(lifts, lift)
	}
	return text + strings.Join(lifts, "; ")
}

func portraitText(p *v1alpha1.PortraitStatus) string {
	if p == nil || p.PointsNeeded == 0 {
		text := "none yet: no sample of its history was read"
		if p != nil && p.LastError != "" {
			text += "; the last read that failed: " + p.LastError
		}
		return text
	}
	var parts []string
	if p.Class != "" {
		parts = append(parts, "class "+p.Class)
	}
	parts = append(parts, fmt.Sprintf("of %s, quality %d %%, %d points where a forecast needs %d", cell.OrNone(p.Signal), p.QualityPercent, p.Points, p.PointsNeeded))
	if len(p.Periods) > 0 {
		parts = append(parts, "periods "+strings.Join(p.Periods, ", "))
	}
	if p.Gaps > 0 {
		parts = append(parts, fmt.Sprintf("%d gaps", p.Gaps))
	}
	if p.StartupSeconds > 0 {
		parts = append(parts, fmt.Sprintf("a pod is ready after %d s", p.StartupSeconds)+startupByImage(p))
	}
	if p.NoisePercent > 0 {
		parts = append(parts, fmt.Sprintf("noise %d %%", p.NoisePercent))
	}
	if p.Cost != "" {
		parts = append(parts, p.Cost)
	}
	if p.Points < p.PointsNeeded && p.ReadyTime != nil {
		parts = append(parts, "forecasts from "+cell.Stamp(p.ReadyTime))
	}
	if p.Note != "" {
		parts = append(parts, p.Note)
	}
	if p.LastError != "" {
		parts = append(parts, "the last read that failed: "+p.LastError)
	}
	return strings.Join(parts, "; ")
}

// firstScaleIn counts down to the first scale-in of a service whose portrait is too young for a forecast; empty once it is not.
func firstScaleIn(mode string, p *v1alpha1.PortraitStatus, now time.Time) string {
	switch {
	case p == nil || p.PointsNeeded == 0:
		return "once its history was read for the first time and holds two days"
	case p.Points >= p.PointsNeeded:
		return ""
	}
	text := fmt.Sprintf("once a forecast can be trusted: %d of %d points are there", p.Points, p.PointsNeeded)
	if p.ReadyTime != nil {
		if left := p.ReadyTime.Sub(now); left > 0 {
			text += fmt.Sprintf(", the rest in about %s, on %s", strings.TrimSuffix(left.Round(time.Minute).String(), "0s"), cell.Stamp(p.ReadyTime))
		} else {
			text += fmt.Sprintf(", the rest was due on %s: see gaps of the portrait", cell.Stamp(p.ReadyTime))
		}
	}
	if mode != "Auto" {
		text += fmt.Sprintf("; and in mode Auto alone (now %s)", cell.OrNone(mode))
	}
	return text
}

// accuracyText sets what the forecasts promised next to what came.
func accuracyText(list []v1alpha1.ForecastAccuracy) string {
	var parts []string
	for i := range list {
		a := &list[i]
		ahead := fmt.Sprintf("%d min", a.HorizonSeconds/60)
		if a.HorizonSeconds >= 3600 {
			ahead = fmt.Sprintf("%d h", a.HorizonSeconds/3600)
		}
		parts = append(parts, fmt.Sprintf("%s ahead misses by %d %%, p%d held %d %% (%d judged)", ahead, a.MissPercent,
			a.Coverage.NominalPercent, a.Coverage.AchievedPercent, a.Judged))
	}
	return strings.Join(parts, "; ")
}

func startupByImage(p *v1alpha1.PortraitStatus) string {
	var parts []string
	if p.StartupImagePresentSeconds > 0 {
		parts = append(parts, fmt.Sprintf("%d s where the image is there", p.StartupImagePresentSeconds))
	}
	if p.StartupImageAbsentSeconds > 0 {
		parts = append(parts, fmt.Sprintf("%d s where it is pulled", p.StartupImageAbsentSeconds))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// requestsText says what one replica requests and should.
func requestsText(mode string, r *v1alpha1.RecommendationStatus) string {
	switch {
	case r == nil && mode == "Off":
		return "mode Off: nothing is recommended"
	case r == nil:
		return "mode " + cell.OrNone(mode) + "; nothing to recommend yet"
	}
	parts := []string{"mode " + cell.OrNone(mode)}
	if c := r.CPUMillicores; c != nil {
		parts = append(parts, fmt.Sprintf("CPU %dm, usage asks for %dm (%dm to %dm will do)", c.Current, c.Target, c.Lower, c.Upper))
	}
	if m := r.MemoryBytes; m != nil {
		const mib = 1 << 20
		parts = append(parts, fmt.Sprintf("memory %dMi, usage asks for %dMi (%dMi to %dMi will do)", m.Current/mib, m.Target/mib, m.Lower/mib, m.Upper/mib))
	}
	parts = append(parts, fmt.Sprintf("by %d h of usage", r.HistoryHours))
	if r.AppliedTime != nil {
		parts = append(parts, "changed "+cell.Stamp(r.AppliedTime))
	}
	if r.Note != "" {
		parts = append(parts, r.Note)
	}
	return strings.Join(parts, "; ")
}

func summaryText(s *v1alpha1.SummaryStatus) string {
	if s == nil {
		return "not computed yet"
	}
	return fmt.Sprintf("under Auto %d core-hours and %d min of violation; %s: %d and %d: %s",
		s.CoreHours, s.ViolationMinutes, cell.OrNone(s.Today), s.CoreHoursToday, s.ViolationMinutesToday, s.Verdict)
}

// windows says of each window whether it is open, and when it opens next, by the clock that the controller uses.
func windows(p *screen.Page, ws []v1alpha1.Window, now time.Time) {
	var rows [][]string
	for i := range ws {
		w := &ws[i]
		state, next := "not readable: see springtide validate", cell.None
		schedule, err := hpa.ParseSchedule(w.Start)
		zone, zoneErr := validate.Zone(w.TimeZone)
		if err == nil && zoneErr == nil {
			state = "closed"
			length, _ := w.Duration.Parse()
			if until, open := hpa.OpenUntil(&fleet.Window{Schedule: w.Start, Duration: length, Zone: zone}, now); open {
				state = "open until " + cell.Stamp(&metav1.Time{Time: until})
			}
			next = cell.Stamp(&metav1.Time{Time: schedule.Next(now, zone)})
		}
		rows = append(rows, []string{w.Name, state, next, cell.Bound(w.MinReplicas), cell.Bound(w.MaxReplicas)})
	}
	p.Table("Windows", "", []string{"NAME", "STATE", "NEXT START", "MIN", "MAX"}, rows)
}

func modeText(s *v1alpha1.ElasticService) string {
	if p := cell.Paused(s); p != "" {
		return fmt.Sprintf("%s (paused: %s)", s.Spec.Mode, strings.ToLower(p))
	}
	return cell.OrNone(s.Spec.Mode)
}
