package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/judge"
)

// Report is what a run came to. The JSON names are the demo's contract; what is unknown is null, never zero.
type Report struct {
	// SLOViolationMinutes are service-minutes in which the latency (or utilisation) computed from the true load and the ready replicas
	// broke the SLO, over all services; HarmMinutes those in which a replica waited for lent room as well.
	SLOViolationMinutes       int `json:"sloViolationMinutes"`
	SLOViolationMinutesStatic int `json:"sloViolationMinutesStatic"`
	HarmMinutes               int `json:"harmMinutes"`
	// MeanUtilisation is used over allocatable CPU of the whole fleet, fillers excluded.
	MeanUtilisation       float64 `json:"meanUtilisation"`
	MeanUtilisationStatic float64 `json:"meanUtilisationStatic"`
	// OnlineCoreHours are the requested cores of all online pods over time, starting and leaving ones too.
	OnlineCoreHours       float64 `json:"onlineCoreHours"`
	OnlineCoreHoursStatic float64 `json:"onlineCoreHoursStatic"`
	// OfflineCoreHours is useful work: without restoring, saving, draining and what was lost.
	OfflineCoreHours       float64 `json:"offlineCoreHours"`
	OfflineCoreHoursStatic float64 `json:"offlineCoreHoursStatic"`
	OfflineCoreHoursLost   float64 `json:"offlineCoreHoursLost"`
	OfflineDemandCoreHours float64 `json:"offlineDemandCoreHours"`
	// CoreHoursLent counts parcels in phase Lent: neither while they empty nor after their notice.
	CoreHoursLent float64        `json:"coreHoursLent"`
	Loans         LoanReport     `json:"loans"`
	Recalls       RecallReport   `json:"recalls"`
	Demands       DemandReport   `json:"demands"`
	Returns       ReturnReport   `json:"returns"`
	Forecast      ForecastReport `json:"forecast"`
	// APIWrites are what the controllers wrote, without Leases and Events.
	APIWrites APIWriteReport `json:"apiWrites"`
	// DroppedRequests gave up waiting.
	DroppedRequests          float64         `json:"droppedRequests"`
	WallSecondsPerVirtualDay float64         `json:"wallSecondsPerVirtualDay"`
	VirtualHours             float64         `json:"virtualHours"`
	Nodes                    int             `json:"nodes"`
	Services                 int             `json:"services"`
	Groups                   []GroupReport   `json:"groups"`
	ByService                []ServiceReport `json:"byService"`
	Pinned                   []PinReport     `json:"pinned"`
	Timeline                 []MomentReport  `json:"timeline"`
	// Judge is what the judge of the run found; absent where it did not run.
	Judge *judge.Report `json:"judge,omitempty"`
}

// LoanReport counts the loans that reached their borrower.
type LoanReport struct {
	Node   int `json:"node"`
	Socket int `json:"socket"`
}

// RecallReport is how recalls went, from the notice to Clean. A recall that was not clean at the end of the run counts as late when it
// was overdue by then, with the time that it had taken so far; one that was not yet due does not count.
type RecallReport struct {
	Count int `json:"count"`
	// Late recalls were Clean after the due time that was fixed at the first notice.
	Late       int      `json:"late"`
	P50Seconds *float64 `json:"p50Seconds"`
	P99Seconds *float64 `json:"p99Seconds"`
	// LateLoans says of each late recall when it entered which phase, was due, and was Clean.
	LateLoans []string `json:"lateLoans,omitempty"`
}

// ForecastReport is the error of the forecasts that were made in the run.
type ForecastReport struct {
	WQL        *float64 `json:"wql"`
	Coverage90 *float64 `json:"coverage90"`
	Count      int      `json:"count"`
}

// GroupReport distinguishes services by how their load was measured.
type GroupReport struct {
	// Name is "minute", "disaggregated" or "young".
	Name                      string `json:"name"`
	Services                  int    `json:"services"`
	SLOViolationMinutes       int    `json:"sloViolationMinutes"`
	SLOViolationMinutesStatic int    `json:"sloViolationMinutesStatic"`
}

// ServiceReport is one service's part.
type ServiceReport struct {
	Service                   fleet.ServiceID `json:"service"`
	Size                      Size            `json:"size"`
	Disaggregated             bool            `json:"disaggregated"`
	Young                     bool            `json:"young"`
	SLOViolationMinutes       int             `json:"sloViolationMinutes"`
	SLOViolationMinutesStatic int             `json:"sloViolationMinutesStatic"`
	HarmMinutes               int             `json:"harmMinutes"`
	CoreHours                 float64         `json:"coreHours"`
	CoreHoursStatic           float64         `json:"coreHoursStatic"`
}

// PinReport is a node that could not be emptied, by what, and for how long.
type PinReport struct {
	Node    string  `json:"node"`
	By      string  `json:"by"`
	Minutes float64 `json:"minutes"`
}

// MomentReport is one point of the timeline, in cores.
type MomentReport struct {
	At     time.Time `json:"at"`
	Demand float64   `json:"demandCores"`
	Ready  float64   `json:"readyCores"`
	Lent   float64   `json:"lentCores"`
	Used   float64   `json:"usedCores"`
}

// Report sums the run up. wall is the wall time that it took.
func (t *Truth) Report(wall time.Duration) Report {
	span := t.to.Sub(t.opt.Start)
	out := Report{
		OnlineCoreHours:        t.online / 3600,
		OnlineCoreHoursStatic:  t.opt.Fleet.StaticCores() * span.Hours(),
		OfflineCoreHours:       t.useful,
		OfflineCoreHoursStatic: t.offlineHome / 3600,
		OfflineCoreHoursLost:   t.lost,
		OfflineDemandCoreHours: t.opt.OfflineDemand,
		CoreHoursLent:          t.lent / 3600,
		DroppedRequests:        t.dropped,
		Forecast:               t.scores(),
		VirtualHours:           span.Hours(),
		Nodes:                  t.opt.Nodes,
		Services:               len(t.actual),
	}
	if sec := span.Seconds(); sec > 0 {
		out.MeanUtilisation = t.used / (t.opt.AllocatableCores * sec)
		out.MeanUtilisationStatic = t.usedStatic / (t.opt.AllocatableCores * sec)
		out.WallSecondsPerVirtualDay = wall.Seconds() / span.Hours() * 24
	}
	out.APIWrites = t.reportWrites(span)
	out.Demands = t.reportDemands()
	out.Returns = t.reportReturns()
	t.reportServices(&out, span)
	t.reportLoans(&out)
	for p, d := range t.pins {
		out.Pinned = append(out.Pinned, PinReport{p.Node, p.By, d.Minutes()})
	}
	slices.SortFunc(out.Pinned, func(a, b PinReport) int {
		return cmp.Or(cmp.Compare(b.Minutes, a.Minutes), cmp.Compare(a.Node, b.Node), cmp.Compare(a.By, b.By))
	})
	for _, m := range t.timeline {
		out.Timeline = append(out.Timeline, MomentReport{m.At, m.Demand, m.Ready, m.Lent, m.Used})
	}
	return out
}

func (t *Truth) reportServices(out *Report, span time.Duration) {
	groups := []GroupReport{{Name: "minute"}, {Name: "disaggregated"}, {Name: "young"}}
	for i, s := range t.opt.Fleet.Services {
		a, st := &t.actual[i], &t.static[i]
		out.SLOViolationMinutes += a.violations
		out.SLOViolationMinutesStatic += st.violations
		out.HarmMinutes += a.harms
		out.ByService = append(out.ByService, ServiceReport{
			Service: s.ID(), Size: s.Size, Disaggregated: s.Source.Disaggregated, Young: s.Source.Young,
			SLOViolationMinutes: a.violations, SLOViolationMinutesStatic: st.violations, HarmMinutes: a.harms,
			CoreHours: a.coreHours, CoreHoursStatic: float64(s.Static*s.Cores) * span.Hours(),
		})
		g := &groups[0]
		switch {
		case s.Source.Young:
			g = &groups[2]
		case s.Source.Disaggregated:
			g = &groups[1]
		}
		g.Services++
		g.SLOViolationMinutes += a.violations
		g.SLOViolationMinutesStatic += st.violations
	}
	out.Groups = groups
}

func (t *Truth) reportLoans(out *Report) {
	var took []float64
	for _, uid := range t.order {
		l := t.loans[uid]
		if l.wasLent && l.facts.Kind == fleet.KindNode {
			out.Loans.Node++
		} else if l.wasLent {
			out.Loans.Socket++
		}
		if !l.recalled {
			continue
		}
		clean := l.facts.CleanAt
		if clean.IsZero() {
			if !t.to.After(l.facts.Due) {
				continue
			}
			clean = t.to
		}
		out.Recalls.Count++
		if clean.After(l.facts.Due) {
			out.Recalls.Late++
			out.Recalls.LateLoans = append(out.Recalls.LateLoans, l.facts.went())
		}
		took = append(took, clean.Sub(l.facts.FirstNotice).Seconds())
	}
	slices.Sort(took)
	out.Recalls.P50Seconds, out.Recalls.P99Seconds = nearestRank(took, 0.5), nearestRank(took, 0.99)
}

// went is the way of a recall in one line.
func (l *LoanFacts) went() string {
	const clock = "15:04:05"
	out := l.Name + ":"
	for _, p := range l.History {
		if !p.At.Before(l.FirstNotice) {
			out += fmt.Sprintf(" %s %s,", p.Phase, p.At.UTC().Format(clock))
		}
	}
	out += " due " + l.Due.UTC().Format(clock)
	if l.CleanAt.IsZero() {
		return out + ", not clean yet"
	}
	return out + ", clean " + l.CleanAt.UTC().Format(clock)
}

// nearestRank is the smallest value that a share q of the sorted values does not exceed; nil when there is none.
func nearestRank(sorted []float64, q float64) *float64 {
	if len(sorted) == 0 {
		return nil
	}
	v := sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
	return &v
}
