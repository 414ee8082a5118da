package report

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/recorder"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
)

// serviceGist is what of a service's status is worth a write of its own.
type serviceGist struct {
	Generation, Desired int64
	// Replicas is what runs, Ready whether any of them is ready: that some start is a matter of a minute, and what lasts longer goes with the numbers.
	Replicas int32
	Ready    bool
	// Missing are the signals that lack, by the condition that names them.
	Missing        string
	LastScale      time.Time
	Model, Verdict string
	Learned        bool
	Class          string
	Periods        int
	Requests       string
	Resized        time.Time
	Link           string
	Takeovers      int32
	Pause          string
	Windows        string
	SLO            sloGist
	Conditions     []verdict
}

func gistOfService(s *v1alpha1.ElasticServiceStatus) serviceGist {
	g := serviceGist{Generation: s.ObservedGeneration, Desired: int64(s.DesiredReplicas),
		LastScale: convert.TimeOf(s.LastScaleTime), Conditions: verdicts(s.Conditions),
		Replicas: s.Replicas, Ready: s.ReadyReplicas > 0}
	for i := range g.Conditions {
		if c := &g.Conditions[i]; c.Type == catalog.ConditionScalingLimit && c.Reason == string(hpa.LimitedRate) {
			// over within a minute; what lasts goes with the numbers
			c.Status, c.Reason = metav1.ConditionFalse, catalog.ServiceLimitedWithinBounds.Reason()
		}
	}
	if c := meta.FindStatusCondition(s.Conditions, catalog.ConditionScalingActive); c != nil &&
		c.Reason == catalog.ServiceActiveSignalsMissing.Reason() {
		g.Missing = c.Message
	}
	if s.Tide != nil {
		g.Model = s.Tide.Model
	}
	if s.Portrait != nil {
		g.Class = s.Portrait.Class
		g.Learned, g.Periods = s.Portrait.Points >= s.Portrait.PointsNeeded, len(s.Portrait.Periods)
	}
	if r := s.Recommendation; r != nil {
		g.Requests, g.Resized = r.Note, convert.TimeOf(r.AppliedTime)
	}
	if s.Link != nil {
		g.Link = s.Link.Source
	}
	if s.Takeovers != nil {
		g.Takeovers = s.Takeovers.Count
	}
	g.SLO = gistOfSLO(s.SLO)
	g.Pause, g.Windows = pauseGist(s.Pause), windowGist(s.Windows)
	if s.Summary != nil {
		g.Verdict = s.Summary.Verdict
	}
	return g
}

func (w *statusWriter) services(r *loop.Report) {
	targets := make(map[fleet.ServiceID]*hpa.Target, len(r.Plan.Targets))
	for i := range r.Plan.Targets {
		targets[r.Plan.Targets[i].Service] = &r.Plan.Targets[i]
	}
	done := recorder.Outcomes(r.Receipt)
	held, unresized := withheldBy(r.Plan, planner.SubjectService), withheldResizes(r.Plan)
	for i := range r.Snapshot.Services {
		svc := &r.Snapshot.Services[i]
		n := fleet.ParseName(string(svc.ID))
		o, ok := w.c.Services.Get(n.Namespace, n.Name)
		if !ok || fleet.UID(o.UID) != svc.UID {
			continue
		}
		v := serviceView{w: w, r: r, svc: svc, target: targets[svc.ID], scaled: done[planner.Key{Kind: planner.ActionScale, Subject: string(svc.ID)}], held: held[svc.ID],
			resized: done[planner.Key{Kind: planner.ActionResize, Subject: string(svc.ID)}], unresized: unresized[svc.ID]}
		if errors.Is(r.HistoryErr, loop.ErrNotRead) && o.API.Status.ObservedGeneration == o.API.Generation &&
			v.scaled.Outcome != loop.Done {
			continue // a process that just started knows less than what stands there
		}
		next := *o.API
		next.Status = v.status(o.API)
		was, is := gistOfService(&o.API.Status), gistOfService(&next.Status)
		if w.settling(svc.ID, &was, &is, &next.Status) {
			continue
		}
		if w.due(statusKey(object.GVRServices, &next), was, is, &o.API.Status, &next.Status) {
			w.put(object.GVRServices, &next, func(version string) object.Sight {
				return w.c.Services.Sees(n.Namespace,
					n.Name, o.UID, version)
			})
		}
	}
}

// settlesFor is how long the status waits for the pods of a scale to start or to leave. It is the step in which tides
// are computed, so that scales that follow each other from step to step show together.
const settlesFor = 5 * time.Minute

// settling reports whether the only news of a service are scales that can wait: one whose pods still start or leave, since one write then shows it and what
// became of it, and a scale so small that no reader would see it among the numbers, for as long as other slight changes. The first scale of all is shown at once.
// The wait counts from the first one that the status lacks, so that a long climb shows too.
func (w *statusWriter) settling(id fleet.ServiceID, was, is *serviceGist, next *v1alpha1.ElasticServiceStatus) bool {
	u, unseen := w.c.Memory.scaled[id]
	if !unseen || was.LastScale.IsZero() {
		return false
	}
	wait := time.Duration(0)
	if next.ReadyReplicas != next.Replicas {
		wait = settlesFor
	}
	if differs(was.Desired, is.Desired) == unchanged && differs(int64(was.Replicas), int64(is.Replicas)) == unchanged {
		wait = max(wait, slightEvery*w.c.Options.StatusEvery)
	}
	same := *was
	same.Desired, same.Replicas, same.LastScale = is.Desired, is.Replicas, is.LastScale
	return w.now.Sub(u.first) < wait && reflect.DeepEqual(&same, is)
}

// scaledAt notes when a service was scaled and returns the last time that is known, in the API or here alone.
func (w *statusWriter) scaledAt(id fleet.ServiceID, now bool, shown *metav1.Time) *metav1.Time {
	u := w.c.Memory.scaled[id]
	if !u.last.After(convert.TimeOf(shown)) {
		u = unshown{}
	}
	if now {
		u.last = w.now.Truncate(time.Second) // as the API keeps it
		if u.first.IsZero() {
			u.first = u.last
		}
	}
	if u == (unshown{}) {
		delete(w.c.Memory.scaled, id)
		return shown
	}
	w.c.Memory.scaled[id] = u
	return convert.Stamp(u.last)
}

// withheldBy says by what the actions on services, or on what their pods request, were held back.
func withheldBy(p *planner.Plan, of planner.SubjectKind) map[fleet.ServiceID]string {
	out := map[fleet.ServiceID]string{}
	for i := range p.Withheld {
		if w := &p.Withheld[i]; w.Subject.Kind == of {
			out[fleet.ServiceID(w.Subject.Name)] = w.By.Text()
		}
	}
	return out
}

// serviceView is one service in the light of one cycle.
type serviceView struct {
	w      *statusWriter
	r      *loop.Report
	svc    *fleet.Service
	target *hpa.Target // nil when nothing was sized
	scaled loop.Result
	held   string
	// resized and unresized are the same of the requests.
	resized   loop.Result
	unresized string
}

func (v *serviceView) status(o *v1alpha1.ElasticService) v1alpha1.ElasticServiceStatus {
	s := o.Status
	s.ObservedGeneration, s.LeaderEpoch, s.ObservedTime = o.Generation, v.w.epoch, convert.Stamp(v.w.now)
	s.Replicas, s.ReadyReplicas = v.svc.Desired.Value, v.svc.Ready()
	if v.svc.Blocked.Any() {
		// Not zeros that look like an answer: nothing is wanted of a service that is refused.
		s.DesiredReplicas, s.FloorReplicas = 0, 0
		s.Reason = v1alpha1.Clip("refused: "+v.svc.Blocked.Message, v1alpha1.MaxReasonLength)
	} else if t := v.target; t != nil {
		s.DesiredReplicas, s.FloorReplicas = t.Replicas, t.Floor
		s.Reason = v1alpha1.Clip(t.Why().Text(), v1alpha1.MaxReasonLength)
	}
	s.LastScaleTime = v.w.scaledAt(v.svc.ID, v.scaled.Outcome == loop.Done, o.Status.LastScaleTime)
	s.Standby = v.standby()
	s.Pause = convert.PauseStatus(&v.svc.Hold, v.svc.Pause)
	s.Windows = serviceWindows(v.svc, o, v.w.now)
	if v.scaled.Outcome == loop.Done {
		if v.target != nil && v.svc.Actuation == fleet.ByScale {
			s.Replicas = v.scaledTo() // what was just written: the next cycle, which reads it, has nothing to add
		}
	}
	if p, ok := v.r.Portraits[v.svc.ID]; ok {
		s.Portrait = v.portraitStatus(&p, o.Status.Portrait)
	}
	s.Recommendation = v.recommendation(o.Status.Recommendation)
	if t, ok := v.r.Tides[v.svc.ID]; ok {
		s.Tide = v.tideStatus(&t)
	}
	if x, ok := v.r.Summaries[v.svc.ID]; ok && !x.From.IsZero() {
		s.Summary = summaryStatus(&x)
	}
	s.SLO = v.sloStatus()
	s.Link = v.linkStatus()
	if t := v.svc.Takeovers; t.Count > 0 {
		s.Takeovers = &v1alpha1.TakeoverStatus{Manager: t.By, Count: t.Count, LastTime: metav1.NewTime(t.Last)}
	}
	s.Conditions = v.conditions(o)
	return s
}

// tideStatus shows the highest and the lowest demand of the coming day in replicas; nothing while it is unknown what a
// replica carries.
func (v *serviceView) tideStatus(t *forecast.Tide) *v1alpha1.TideStatus {
	s := &v1alpha1.TideStatus{Model: t.Model}
	for _, d := range t.Days[:min(len(t.Days), v1alpha1.MaxLiftedDays)] {
		s.Days = append(s.Days, v1alpha1.LiftedDay{Name: v1alpha1.Clip(d.Name, v1alpha1.MaxDayName),
			From:    *convert.Stamp(d.From),
			Percent: int32(math.Round(100 * min(d.Factor, math.MaxInt32/100))), Kin: d.Kin})
	}
	if v.target == nil || !(v.target.CapacityPerReplica > 0) || t.Step <= 0 {
		return s
	}
	high, low := math.Inf(-1), math.Inf(1)
	for d := time.Duration(0); d <= 24*time.Hour; d += t.Step {
		at := v.w.now.Add(d)
		load := t.At(at, v.svc.Quantile)
		if load > high {
			high, s.PeakTime = load, convert.Stamp(at)
		}
		if load < low {
			low, s.LowTime = load, convert.Stamp(at)
		}
	}
	if s.PeakTime != nil && s.LowTime != nil {
		s.PeakReplicas, s.LowReplicas = v.replicas(high), v.replicas(low)
	}
	return s
}

func (v *serviceView) replicas(load float64) int32 {
	n := math.Ceil(load / v.target.CapacityPerReplica)
	return max(v.svc.Min, min(v.svc.Max, int32(min(n, math.MaxInt32))))
}

func summaryStatus(x *loop.Summary) *v1alpha1.SummaryStatus {
	return &v1alpha1.SummaryStatus{From: *convert.Stamp(x.From), To: *convert.Stamp(x.To),
		Today:     v1alpha1.Clip(x.Today, 320),
		CoreHours: int64(math.Round(x.CoreHours)), CoreHoursToday: int64(math.Round(x.CoreHoursToday)),
		ViolationMinutes: int32(x.ViolationMinutes), ViolationMinutesToday: int32(x.ViolationMinutesToday),
		Verdict: v1alpha1.Clip(x.Verdict, v1alpha1.MaxNoteLength)}
}

func (v *serviceView) conditions(o *v1alpha1.ElasticService) []metav1.Condition {
	c := newConditions(o.Status.Conditions, v.w.now, o.Generation)
	c.accept(v.svc.Blocked, catalog.ServiceAccepted)
	v.able(c)
	v.active(c)
	v.limited(c)
	v.forecast(c)
	v.skill(c)
	v.fall(c)
	v.rise(c)
	v.staged(c)
	c.pause(servicePause, v.svc.Pause, &v.svc.Hold, &v.svc.Ended)
	v.fresh(c)
	v.measured(c)
	v.capacity(c)
	v.bottleneck(c)
	v.known(c)
	v.zero(c)
	return c.list
}

// able says whether the target is scaled, and what keeps it from being.
func (v *serviceView) able(c *conditions) {
	switch {
	case v.svc.Blocked.Any():
		c.refuse(catalog.ServiceAbleRefused, v.svc.Blocked)
	case v.r.Snapshot.Frozen != "":
		c.set(catalog.ServiceAbleFrozen, v.r.Snapshot.Frozen)
	case v.scaled.Outcome == loop.Failed:
		c.set(catalog.ServiceAbleScaleFailed, v.scaled.Message)
	case !v.svc.Mode.Acts():
		c.set(catalog.ServiceAbleMode(v.svc.Mode), v.svc.Mode)
	case v.svc.Pause == fleet.PauseAll:
		c.set(catalog.ServiceAblePaused, planner.PausedBy(v.svc.Pause, &v.svc.Hold).Text())
	case v.svc.SetToZero != "":
		c.set(catalog.ServiceAbleSetToZero, v.svc.SetToZero)
	case v.svc.Contested(v.r.Snapshot.At):
		c.set(catalog.ServiceAbleContested, contested(v.svc)...)
	case v.svc.PodsRefused != "":
		c.set(catalog.ServiceAblePodsRefused, v.svc.PodsRefused)
	case v.svc.ForeignWriter != "":
		field, of := v.svc.Sets()
		c.set(catalog.ServiceAbleForeignWriter, v.svc.ForeignWriter, field, of, field)
	case v.held != "":
		c.set(catalog.ServiceAbleHeld, v.held)
	default:
		c.set(catalog.ServiceAbleReadyForNewScale)
	}
}

// known says what is known of the pods of a target that is found by its Scale.
func (v *serviceView) known(c *conditions) {
	switch {
	case !v.svc.Selected || v.svc.Blocked.Any():
		c.drop(catalog.ConditionTarget)
	case v.svc.Untemplated:
		c.set(catalog.ServiceTargetRequestsUnknown, v.svc.TargetKind)
	case v.svc.AnyRevision:
		c.set(catalog.ServiceTargetRevisionUnknown, v.svc.TargetKind)
	default:
		c.set(catalog.ServiceTargetKnown)
	}
}

// zero says whether a service whose minimum is 0 scales to zero, and what keeps it from that.
func (v *serviceView) zero(c *conditions) {
	names := strings.Join(hpa.ReadAtZero(v.svc), ", ")
	if names == "" && v.svc.HPA != nil {
		names = "the metric of HorizontalPodAutoscaler " + v.svc.HPA.Name
	}
	switch zero := hpa.ZeroOf(v.svc); {
	case zero == hpa.ZeroNotAsked || v.svc.Blocked.Any():
		c.drop(catalog.ConditionZero)
	case zero == hpa.ZeroUnread:
		c.set(catalog.ServiceZeroUnread)
	case zero == hpa.ZeroNotServed:
		c.set(catalog.ServiceZeroNotServed, v.svc.HPA.Name, v.svc.HPA.Own)
	case v.target == nil || !v.target.SeenAtZero:
		c.set(catalog.ServiceZeroMissing, names)
	default:
		c.set(catalog.ServiceZeroAllowed, names)
	}
}

// contested is what the words take that say that another writer takes spec.replicas back.
func contested(s *fleet.Service) []any {
	field, of := s.Sets()
	return []any{field, of, s.Takeovers.Count, s.ForeignWriter, field}
}

// active says whether the signals that sizing needs are there.
func (v *serviceView) active(c *conditions) {
	switch {
	case v.svc.Blocked.Any() || v.target == nil:
		c.set(catalog.ServiceActiveNotSized)
	case v.target.DataFresh:
		c.set(catalog.ServiceActiveSignalsFresh)
	case v.target.LiveAlone:
		c.set(catalog.ServiceActiveLiveSignals)
	default:
		c.set(catalog.ServiceActiveSignalsMissing, missing(v.target.Missing))
	}
}

// missing names signals that are missing or too old.
func missing(list []hpa.Missing) string {
	names := make([]string, len(list))
	for i, m := range list {
		names[i] = m.String()
	}
	return phrase(names)
}

func (v *serviceView) limited(c *conditions) {
	switch {
	case v.target == nil || v.svc.Blocked.Any():
		c.set(catalog.ServiceLimitedNotSized)
	case v.target.Limited != "":
		by := ""
		if h := v.svc.HPA; v.svc.Actuation == fleet.ByHPAFloor && h != nil && h.Max < v.svc.Max && v.target.Limited == hpa.LimitedMax {
			by = fmt.Sprintf("; the HorizontalPodAutoscaler %s has maxReplicas %d, below the %d of the service: to fix, raise "+
				"it", h.Name, h.Max, v.svc.Max)
		}
		c.set(catalog.ServiceLimitedBy(v.target.Limited), v.target.Wanted, v.target.Limited.Text(), v.target.Replicas, by)
	default:
		c.set(catalog.ServiceLimitedWithinBounds)
	}
}

// forecast says whether the tide can be trusted.
func (v *serviceView) forecast(c *conditions) {
	t, ok := v.r.Tides[v.svc.ID]
	switch {
	case !ok:
		c.set(catalog.ServiceForecastNoTide)
	case t.Trusted:
		c.set(catalog.ServiceForecastTrusted, t.Model)
	case t.SkillLost:
		c.set(catalog.ServiceForecastSkillLost, t.Note)
	case v.sampleless():
		c.set(catalog.ServiceForecastNoSamples)
	case v.young() != "":
		c.set(catalog.ServiceForecastPortraitYoung, t.Model, v.young())
	default:
		c.set(catalog.ServiceForecastFallBack, t.Model, t.Note)
	}
}

// fall says that the load fell in a way that nothing confirms, and what follows. Once it was judged, the condition goes.
func (v *serviceView) fall(c *conditions) {
	h := v.r.Portraits[v.svc.ID].Doubt
	since := h.Since.UTC().Format("2006-01-02 15:04 UTC")
	switch {
	case h.Held():
		c.set(catalog.ServiceFallHeld, since)
	case h.Eased:
		c.set(catalog.ServiceFallEased, since)
	default:
		c.drop(catalog.ConditionFall)
	}
}

// rise says that what is measured is not believed, or not learned yet. The figures change in each cycle and stand in the reason of the size.
func (v *serviceView) rise(c *conditions) {
	h := v.r.Portraits[v.svc.ID].Doubt
	switch {
	case v.target != nil && len(v.target.Unconfirmed) > 0:
		c.set(catalog.ServiceRiseNotBelieved)
	case h.Rise && h.Quarantined():
		c.set(catalog.ServiceRiseNotLearned, h.Since.UTC().Format("2006-01-02 15:04 UTC"))
	default:
		c.drop(catalog.ConditionRise)
	}
}

// fresh says whether the history source answers, and whether what it has of this service is new enough. A forecast that is not trusted has a condition
// of its own.
func (v *serviceView) fresh(c *conditions) {
	switch {
	case v.svc.Blocked.Any():
		c.set(catalog.ServiceDataNotSized)
	case v.r.HistoryErr != nil:
		c.set(catalog.ServiceDataSourceDown) // addresses and errors of the source are the operators', in the log
	case v.target == nil:
		c.set(catalog.ServiceDataNotSized)
	case len(v.target.LiveMissing()) > 0:
		lacks := missing(v.target.LiveMissing())
		if problem := v.r.QueryProblems[v.svc.ID]; problem.Cause != "" {
			c.set(catalog.ServiceDataCause(string(problem.Cause)), lacks, problem.Message)
			return
		}
		c.set(catalog.ServiceDataSignalsMissing, lacks)
	default:
		c.set(catalog.ServiceDataFresh)
	}
}

// capacity says whether it is learned what a replica carries, and what load is not the cause of.
func (v *serviceView) capacity(c *conditions) {
	if v.target == nil || v.svc.Blocked.Any() {
		return
	}
	switch b := &v.target.Basis; {
	case b.Level != "":
		c.set(catalog.ServiceCapacityLearned, v.perReplica(), b.Level)
	case len(b.Unknown) > 0:
		c.set(catalog.ServiceCapacityUnknown(b.Unknown[0].Code), b.Unknown[0].Text())
	default:
		c.drop(catalog.ConditionCapacity)
	}
	if names := v.target.Basis.NotByLoad; len(names) > 0 {
		c.set(catalog.ServiceNotByLoad, phrase(names))
	} else {
		c.drop(catalog.ConditionNotByLoad)
	}
}

// perReplica is the load that a replica is sized for.
func (v *serviceView) perReplica() string { return v.loadText(v.target.CapacityPerReplica) }

// loadText is the load of a replica with two digits, so that a capacity that moves by a percent rewrites no status.
func (v *serviceView) loadText(load float64) string {
	unit := " requests/s"
	if v.r.Portraits[v.svc.ID].Signal == portrait.CPU {
		unit = " cores"
	}
	if !(load > 0) {
		return "0" + unit
	}
	digits := math.Pow(10, math.Floor(math.Log10(load))-1)
	return strconv.FormatFloat(math.Round(load/digits)*digits, 'g', 4, 64) + unit
}

// measured says whether the levels of the service are measured at all. CPU always is, so that a service without another
// level has no such condition.
func (v *serviceView) measured(c *conditions) {
	problems := v.r.LevelProblems[v.svc.ID]
	fits := slices.ContainsFunc(problems, func(p loop.LevelProblem) bool { return p.Preset != "" })
	other := slices.ContainsFunc(v.svc.SLO.Levels, func(l fleet.Level) bool { return l.Name != fleet.LevelNameCPU })
	switch {
	case v.target == nil || v.svc.Blocked.Any() || !other:
	case fits:
		c.set(catalog.ServiceSLOPresetFits, levelProblems(problems))
	case len(problems) > 0:
		c.set(catalog.ServiceSLONoSource, levelProblems(problems))
	case v.target.Unmeasured:
		c.set(catalog.ServiceSLONoLatencySource)
	default:
		c.set(catalog.ServiceSLOMeasured)
	}
}

// levelProblems names the levels with the same problem together: four latencies of one source lack the same series.
func levelProblems(ps []loop.LevelProblem) string {
	var messages []string
	levels := map[string][]string{}
	for _, p := range ps {
		if levels[p.Message] == nil {
			messages = append(messages, p.Message)
		}
		levels[p.Message] = append(levels[p.Message], p.Level)
	}
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = strings.Join(levels[m], ", ") + ": " + m
	}
	return strings.Join(out, "; ")
}
