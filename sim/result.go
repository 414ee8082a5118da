package sim

import (
	"time"
)

// Result is what one row came to. The names of the JSON are a contract.
type Result struct {
	Policy string `json:"policy"`
	Lender string `json:"lender"`
	// Target is in percent; Knob says of what, and Default that the policy comes with it.
	Target  float64 `json:"target"`
	Knob    string  `json:"knob,omitempty"`
	Default bool    `json:"default"`
	// Classes distinguish services by how predictable their history is.
	Classes map[string]Class `json:"classes"`
	// SLOViolationMinutes are service-minutes in which the latency or utilisation computed from the true load and the
	// ready replicas broke the SLO; HarmMinutes those that would not have, had no replica waited for lent room or been
	// killed for a loan.
	SLOViolationMinutes int `json:"sloViolationMinutes"`
	HarmMinutes         int `json:"harmMinutes"`
	// OnlineCoreHours are the requested cores of all online pods over time, starting and leaving ones too; OfflineCoreHours useful work,
	// without restoring, saving, draining and what was lost since the last checkpoint, which is WorkLostCoreHours.
	OnlineCoreHours   float64 `json:"onlineCoreHours"`
	OfflineCoreHours  float64 `json:"offlineCoreHours"`
	WorkLostCoreHours float64 `json:"workLostCoreHours"`
	// MeanUtilisation is used over allocatable CPU of the whole fleet, PeakUtilisation that of its fullest hour.
	MeanUtilisation float64 `json:"meanUtilisation"`
	PeakUtilisation float64 `json:"peakUtilisation"`
	// RecallsLate are parcels that were clean after the due time fixed at the first notice, Moves parcels that began to
	// go to offline. TermsBroken are recalls before the time until which the borrower could last expect to stay; only
	// Springtide says one. Scales are changes of the replicas that services ask for: each is a write.
	RecallsLate int `json:"recallsLate"`
	TermsBroken int `json:"termsBroken"`
	Moves       int `json:"moves"`
	Scales      int `json:"scales"`
	// Returns are parcels that came home while online pods waited that fit them. The percentiles are of the time from Returned to the first online pod that was
	// bound on the machine, in steps of 15 s; null where there were no such returns.
	Returns                 int             `json:"returns"`
	ReturnToBoundP50Seconds *float64        `json:"returnToBoundP50Seconds"`
	ReturnToBoundP99Seconds *float64        `json:"returnToBoundP99Seconds"`
	Services                []ServiceResult `json:"services"`
	Timeline                []Moment        `json:"-"`
	// Took is the wall time of the row.
	Took time.Duration `json:"-"`
}

// The classes.
const (
	Calm   = "calm"
	Bursty = "bursty"
)

// Class sums up services of one class.
type Class struct {
	ServiceWeeks        float64 `json:"serviceWeeks"`
	SLOViolationMinutes int     `json:"sloViolationMinutes"`
	OnlineCoreHours     float64 `json:"onlineCoreHours"`
}

// ServiceResult is one service's part.
type ServiceResult struct {
	Service             string  `json:"service"`
	Class               string  `json:"class"`
	Young               bool    `json:"young,omitempty"`
	Disaggregated       bool    `json:"disaggregated,omitempty"`
	SLOViolationMinutes int     `json:"sloViolationMinutes"`
	HarmMinutes         int     `json:"harmMinutes,omitempty"`
	OnlineCoreHours     float64 `json:"onlineCoreHours"`
	// Timeline is there for the rows that are Charted.
	Timeline []ServiceMoment `json:"-"`
	// Broken are the minutes that broke the SLO, counted from the start of the scored time. An oracle does not name them.
	Broken []int32 `json:"-"`
}

// result is an empty result of the row.
func (r Row) result() Result {
	return Result{Policy: r.Policy, Lender: r.Lender, Target: r.Target, Knob: r.Knob, Default: r.Default,
		Classes: map[string]Class{Calm: {}, Bursty: {}}}
}

// result sums a run up.
func (w *World) result(r Row) Result {
	out, a := r.result(), &w.acc
	seconds := float64(w.end-w.scored) * tick.Seconds()
	for i := range w.services {
		v := &a.services[i]
		out.add(w, i, v.violations, v.harms, v.cores/3600)
		out.Services[i].Broken = v.broken
		if r.Charted() {
			out.Services[i].Timeline = v.moments
		}
	}
	useful, lost := w.offlineWork()
	out.OfflineCoreHours, out.WorkLostCoreHours = (useful-a.usefulBefore)/3600, (lost-a.lostBefore)/3600
	cores := float64(len(w.machines) * w.b.Fleet.CoresPerNode)
	out.MeanUtilisation = (a.onlineUsed + a.offlineUsed) / (cores * seconds)
	out.PeakUtilisation = a.peakHour(w.end-w.scored) / cores
	out.Returns, out.ReturnToBoundP50Seconds, out.ReturnToBoundP99Seconds = w.returnsTaken()
	out.RecallsLate, out.TermsBroken, out.Moves, out.Scales, out.Timeline = a.late, a.short, a.moves, a.scales, a.moments
	return out
}

// add counts one service.
func (out *Result) add(w *World, i, violations, harms int, coreHours float64) {
	o := &w.b.Services[i]
	class := Bursty
	if o.Calm {
		class = Calm
	}
	c := out.Classes[class]
	c.ServiceWeeks += w.b.Duration().Hours() / (7 * 24)
	c.SLOViolationMinutes += violations
	c.OnlineCoreHours += coreHours
	out.Classes[class] = c
	out.SLOViolationMinutes += violations
	out.HarmMinutes += harms
	out.OnlineCoreHours += coreHours
	out.Services = append(out.Services, ServiceResult{Service: string(o.ID()), Class: class, Young: o.Young, Disaggregated: o.Disaggregated,
		SLOViolationMinutes: violations, HarmMinutes: harms, OnlineCoreHours: coreHours})
}
