package scenario

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/validate"
)

var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$`)

// Bounds beyond which a scenario is a slip rather than a wish.
const (
	mostNodes = 100_000
	mostDays  = 366
)

// checker collects what is wrong.
type checker struct{ problems []validate.Problem }

func (c *checker) wrong(field, format string, args ...any) {
	c.problems = append(c.problems, validate.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

// within refuses a number that lies outside of its bounds, or is none.
func (c *checker) within(field string, v, from, to float64) {
	if !(v >= from && v <= to) {
		c.wrong(field, "%v is out of bounds: write %v to %v", v, from, to)
	}
}

func (c *checker) window(at string, w *Window) {
	if _, err := hpa.ParseSchedule(w.Start); err != nil {
		c.wrong(at+".start", "%s", err)
	}
	if _, err := time.LoadLocation(w.TimeZone); err != nil {
		c.wrong(at+".timeZone", "%q is no time zone: write an IANA zone, as in Asia/Shanghai", w.TimeZone)
	}
	c.lasts(at+".for", time.Duration(w.For), time.Minute, 7*24*time.Hour)
}

// memory bounds what a pod asks for to what a machine has.
func (c *checker) memory(at string, cores int, perCoreGiB float64, f *Fleet) {
	has := float64(f.CoresPerNode) * float64(MemoryPerCore/fleet.GiB)
	c.within(at+".memoryPerCoreGiB", perCoreGiB, 0, has/float64(max(cores, 1)))
}

func (c *checker) lasts(field string, v, from, to time.Duration) {
	if v < from || v > to {
		c.wrong(field, "%s is out of bounds: write %s to %s", v, from, to)
	}
}

func (c *checker) named(field, name string) {
	if !objectName.MatchString(name) {
		c.wrong(field, "%q is no name: write lower-case letters, digits and dashes", name)
	}
}

// check says everything that is wrong, each with its field and fix.
func (s *Scenario) check() []validate.Problem {
	c := &checker{}
	c.named("name", s.Name)
	if s.Start.IsZero() {
		c.wrong("start", "missing: write when the scored time begins, as in 2026-06-01T00:00:00Z")
	} else if !s.Start.Truncate(time.Minute).Equal(s.Start) {
		c.wrong("start", "%s is no whole minute: drop the seconds", s.Start.Format(time.RFC3339))
	}
	c.within("days", s.Days, 0.02, mostDays)
	c.lasts("history", time.Duration(s.History), 24*time.Hour, mostDays*24*time.Hour)
	c.lasts("tick", time.Duration(s.Tick), 15*time.Second, 5*time.Minute)
	c.within("jitter", s.Jitter, 0, 0.5)
	c.within("demandShare", s.DemandShare, 0, 100)
	s.Fleet.check(c)
	if len(s.Services) == 0 {
		c.wrong("services", "none: write at least one service with its trace")
	}
	seen := map[string]int{}
	for i := range s.Services {
		at := fmt.Sprintf("services[%d]", i)
		v := &s.Services[i]
		if j, twice := seen[v.Namespace+"/"+v.Name]; twice {
			c.wrong(at+".name", "%s/%s is the name of services[%d] already: name it otherwise", v.Namespace, v.Name, j)
		}
		seen[v.Namespace+"/"+v.Name] = i
		s.checkService(c, at, v)
	}
	s.checkJobs(c)
	s.checkTenants(c)
	s.checkFestivals(c)
	s.checkFaults(c)
	return c.problems
}

func (f *Fleet) check(c *checker) {
	c.within("fleet.nodes", float64(f.Nodes), 0, mostNodes)
	c.within("fleet.offlineNodes", float64(f.OfflineNodes), 0, mostNodes)
	c.within("fleet.coresPerNode", float64(f.CoresPerNode), 1, 1024)
	c.within("fleet.sockets", float64(f.Sockets), 1, 8)
	c.within("fleet.zones", float64(f.Zones), 1, 100)
	if f.Sockets > 0 && f.CoresPerNode%f.Sockets != 0 {
		c.wrong("fleet.sockets", "%d cores do not divide by %d sockets: write another number", f.CoresPerNode, f.Sockets)
	}
	c.within("fleet.staticShare", f.StaticShare, 0.01, 1)
	l := &f.Lending
	if f.Scheduler != "" && f.Scheduler != v1alpha1.SchedulerName {
		c.wrong("fleet.scheduler", "%q is unknown: write %s, or nothing", f.Scheduler, v1alpha1.SchedulerName)
	}
	if l.Unit != string(fleet.UnitNode) && l.Unit != string(fleet.UnitSocket) {
		c.wrong("fleet.lending.unit", "%q is unknown: write Node or Socket", l.Unit)
	}
	c.within("fleet.lending.lowWatermarkPercent", l.LowPercent, 0, 100)
	c.within("fleet.lending.highWatermarkPercent", l.HighPercent, l.LowPercent, 100)
	c.lasts("fleet.lending.notice", time.Duration(l.Notice), 15*time.Second, time.Hour)
	c.lasts("fleet.lending.noticeMax", time.Duration(l.NoticeMax), time.Duration(l.Notice), 24*time.Hour)
	c.lasts("fleet.lending.minimumTerm", time.Duration(l.MinimumTerm), time.Minute, 24*time.Hour)
	c.within("fleet.lending.movesAtOnce", float64(l.MovesAtOnce), 1, mostNodes)
	c.within("fleet.lending.movesPerHour", float64(l.MovesPerHour), 1, 60*mostNodes)
}

func (s *Scenario) checkService(c *checker, at string, v *Service) {
	c.named(at+".name", v.Name)
	c.named(at+".namespace", v.Namespace)
	if v.Trace == "" {
		c.wrong(at+".trace", "missing: write the CSV file of the load")
	} else if _, err := os.Stat(s.path(v.Trace)); err != nil {
		c.wrong(at+".trace", "%s cannot be read: write a path that begins at the scenario's", v.Trace)
	}
	if !v.To.IsZero() && !v.To.After(v.From) {
		c.wrong(at+".to", "not after from: write a later time")
	}
	c.within(at+".take", float64(v.Take), 0, 10_000)
	c.within(at+".weight", v.Weight, 1e-6, 1e6)
	if s.Fleet.Nodes == 0 && !(v.PeakCores > 0 && !math.IsInf(v.PeakCores, 0)) {
		c.wrong(at+".peakCores", "missing: write the cores of last week's peak, or fleet.nodes")
	}
	c.within(at+".cores", float64(v.Cores), 1, float64(s.Fleet.CoresPerNode))
	c.memory(at, v.Cores, v.MemoryPerCoreGiB, &s.Fleet)
	for i := range v.Windows {
		w := &v.Windows[i]
		c.window(fmt.Sprintf("%s.windows[%d]", at, i), &w.Window)
		c.within(fmt.Sprintf("%s.windows[%d].min", at, i), float64(w.Min), 0, 1e6)
		c.within(fmt.Sprintf("%s.windows[%d].max", at, i), float64(w.Max), 0, 1e6)
	}
	c.within(at+".burst", v.Burst, 1, 10)
	c.lasts(at+".startUp", time.Duration(v.StartUp), 0, time.Hour)
	c.within(at+".startUpSpread", v.StartUpSpread, 0, 1)
	c.lasts(at+".standby", time.Duration(v.Standby), 0, 2*time.Hour)
	v.SLO.check(c, at+".slo", &v.Curve)
	v.Curve.check(c, at+".curve", v)
	c.within(at+".min", float64(v.Min), 1, 1e6)
	c.within(at+".forecastPercent", v.ForecastPercent, 50, 99.9)
}

func (l *SLO) check(c *checker, at string, curve *Curve) {
	least := 0.05
	if curve.stated() {
		least = 0 // no level
	}
	c.within(at+".utilisation", l.Utilisation, least, 0.99)
	if l.Latency != 0 {
		c.latency(at+".latency", at+".quantile", Latency{Quantile: l.Quantile, Under: l.Latency})
	}
	for i := range l.Latencies {
		own := fmt.Sprintf("%s.latencies[%d]", at, i)
		c.latency(own+".under", own+".quantile", l.Latencies[i])
		if k := slices.IndexFunc(l.Latencies[:i], l.Latencies[i].alike); k >= 0 {
			c.wrong(own+".quantile", "latencies[%d] bounds it already: write one limit for each quantile", k)
		}
	}
	c.within(at+".errors", l.Errors, 0, 0.5)
	if l.Objective != (Objective{}) {
		c.within(at+".objective.goodMinutes", l.Objective.GoodMinutes, 0.5, 0.99999)
		c.lasts(at+".objective.over", time.Duration(l.Objective.Over), time.Hour, mostDays*24*time.Hour)
	}
	switch {
	case !curve.stated() && (len(l.Latencies) > 0 || l.Errors > 0):
		c.wrong(at, "latencies and errors need a curve: write curve.serviceTime")
	case curve.stated() && len(l.levels()) == 0:
		c.wrong(at, "nothing is promised: write latencies, errors or utilisation")
	}
}

func (l Latency) alike(o Latency) bool { return l.Quantile == o.Quantile }

func (c *checker) latency(under, quantile string, l Latency) {
	c.lasts(under, time.Duration(l.Under), time.Millisecond, 30*time.Second)
	c.within(quantile, l.Quantile, 0.5, 0.9999)
}

func (u *Curve) check(c *checker, at string, v *Service) {
	if !u.stated() {
		if !reflect.ValueOf(u).Elem().IsZero() {
			c.wrong(at+".serviceTime", "missing: write the mean time that a request is served")
		}
		return
	}
	c.lasts(at+".serviceTime", time.Duration(u.ServiceTime), 10*time.Microsecond, 10*time.Second)
	c.lasts(at+".cpuTime", time.Duration(u.CPUTime), 0, time.Duration(u.ServiceTime))
	c.within(at+".parallel", float64(u.Parallel), 0, 10_000)
	st := v.station()
	if busy := st.CPUSeconds * float64(u.Parallel) / st.ServiceTime; busy > float64(v.Cores)*(1+1e-9) {
		c.wrong(at+".parallel", "%d workers would use %.3g cores of %d: write fewer, or less cpuTime", u.Parallel, busy,
			v.Cores)
	}
	c.lasts(at+".patience", time.Duration(u.Patience), 0, 10*time.Minute)
	if u.Pauses != (Pauses{}) {
		c.within(at+".pauses.every", u.Pauses.Every, 1, 1e9)
		c.lasts(at+".pauses.for", time.Duration(u.Pauses.For), time.Millisecond, 30*time.Second)
	}
	if u.Cold != (Cold{}) {
		c.within(at+".cold.factor", u.Cold.Factor, 1, 100)
		c.lasts(at+".cold.for", time.Duration(u.Cold.For), 15*time.Second, 24*time.Hour)
	}
	c.lasts(at+".dependency.time", time.Duration(u.Dependency.Time), 0, 30*time.Second)
	for i := range u.Dependency.Slow {
		w := &u.Dependency.Slow[i]
		own := fmt.Sprintf("%s.dependency.slow[%d]", at, i)
		c.window(own, &w.Window)
		c.lasts(own+".time", time.Duration(w.Time), 0, 30*time.Second)
	}
	for i := range u.Releases {
		r := &u.Releases[i]
		own := fmt.Sprintf("%s.releases[%d]", at, i)
		c.within(own+".factor", r.Factor, 0.01, 100)
		if r.At.IsZero() || i > 0 && !r.At.After(u.Releases[i-1].At) {
			c.wrong(own+".at", "missing or not after the release before: write later releases later")
		}
	}
}

func (s *Scenario) checkJobs(c *checker) {
	shares := 0.0
	for i := range s.Jobs {
		at, j := fmt.Sprintf("jobs[%d]", i), &s.Jobs[i]
		c.named(at+".name", j.Name)
		c.named(at+".namespace", j.Namespace)
		c.within(at+".cores", float64(j.Cores), 1, float64(s.Fleet.CoresPerNode))
		c.memory(at, j.Cores, j.MemoryPerCoreGiB, &s.Fleet)
		c.within(at+".gang", float64(j.Gang), 0, 10_000)
		if j.Priority != "High" && j.Priority != "Low" {
			c.wrong(at+".priority", "%q is unknown: write High or Low", j.Priority)
		}
		c.within(at+".share", j.Share, 0, 1)
		c.lasts(at+".every", time.Duration(j.Every), time.Second, 24*time.Hour)
		c.lasts(at+".save", time.Duration(j.Save), 0, time.Hour)
		c.lasts(at+".restore", time.Duration(j.Restore), 0, time.Hour)
		shares += j.Share
		if k := slices.IndexFunc(s.Jobs[:i], func(o Job) bool { return o.Name == j.Name && o.Namespace == j.Namespace }); k >= 0 {
			c.wrong(at+".name", "%s/%s is the name of jobs[%d] already: name it otherwise", j.Namespace, j.Name, k)
		}
	}
	if math.Abs(shares-1) > 1e-6 {
		c.wrong("jobs", "their shares add up to %v: make it 1", shares)
	}
}

func (s *Scenario) checkTenants(c *checker) {
	for i := range s.Tenants {
		at, t := fmt.Sprintf("tenants[%d]", i), &s.Tenants[i]
		c.named(at+".name", t.Name)
		if slices.ContainsFunc(s.Tenants[:i], func(o Tenant) bool { return o.Name == t.Name }) {
			c.wrong(at+".name", "%s stands twice: name it otherwise", t.Name)
		}
		// Parents stand before their children, so that no circle can be written.
		if t.Parent != "" && !slices.ContainsFunc(s.Tenants[:i], func(o Tenant) bool { return o.Name == t.Parent }) {
			c.wrong(at+".parent", "%s is no tenant above this one: write parents first", t.Parent)
		}
		c.within(at+".guaranteeCores", t.GuaranteeCores, 0, 1e9)
		c.lasts(at+".drain", time.Duration(t.Drain), 0, 24*time.Hour)
		c.within(at+".burst.percent", float64(t.Burst.Percent), 0, 1000)
		if t.Burst.Percent > 0 {
			c.lasts(at+".burst.for", time.Duration(t.Burst.For), time.Minute, 24*time.Hour)
		}
		for k := range t.Slices {
			x := &t.Slices[k]
			c.window(fmt.Sprintf("%s.slices[%d]", at, k), &x.Window)
			c.within(fmt.Sprintf("%s.slices[%d].guaranteeCores", at, k), x.GuaranteeCores, 0, 1e9)
		}
		for _, l := range []struct {
			field string
			v     *float64
		}{{"lendingCores", t.LendingCores}, {"borrowingCores", t.BorrowingCores}} {
			if l.v != nil {
				c.within(at+"."+l.field, *l.v, 0, 1e9)
			}
		}
	}
}

func (s *Scenario) checkFestivals(c *checker) {
	for i := range s.Festivals {
		at, f := fmt.Sprintf("festivals[%d]", i), &s.Festivals[i]
		c.named(at+".name", f.Name)
		if !f.End.After(f.Start) {
			c.wrong(at+".end", "not after start: write a later time")
		}
		for k := range f.Lifts {
			l := &f.Lifts[k]
			if l.Factor == 0 && l.Floor == 0 {
				c.wrong(fmt.Sprintf("%s.lifts[%d]", at, k), "neither factor nor floor: write one")
			}
			c.within(fmt.Sprintf("%s.lifts[%d].factor", at, k), l.Factor, 0, 100)
			c.within(fmt.Sprintf("%s.lifts[%d].floor", at, k), float64(l.Floor), 0, 1e6)
		}
	}
	for i := range s.Surges {
		at, g := fmt.Sprintf("surges[%d]", i), &s.Surges[i]
		c.within(at+".factor", g.Factor, 0, 100)
		if !g.End.After(g.Start) {
			c.wrong(at+".end", "not after start: write a later time")
		}
		if g.Start.Before(s.Start) {
			c.wrong(at+".start", "before the scored time begins: history is what was measured; write a later time")
		}
	}
}

func (s *Scenario) checkFaults(c *checker) {
	known := func(field, kind string) {
		if !slices.Contains(Kinds(), kind) {
			c.wrong(field, "%q is no fault: write one of %s", kind, strings.Join(Kinds(), ", "))
		}
		if ChangesClocks(kind) && len(s.clocks()) == 0 {
			c.wrong(field, "no window or slice has a time zone whose clocks change: give one a timeZone, as in Europe/Berlin")
		}
	}
	c.within("faults.random", float64(s.Faults.Random), 0, 1000)
	if s.Faults.Any() {
		c.lasts("faults.quiet", time.Duration(s.Faults.Quiet), 0, s.Duration())
	}
	for i, k := range s.Faults.Kinds {
		known(fmt.Sprintf("faults.kinds[%d]", i), k)
	}
	for i := range s.Faults.List {
		at, f := fmt.Sprintf("faults.list[%d]", i), &s.Faults.List[i]
		known(at+".kind", f.Kind)
		c.lasts(at+".after", time.Duration(f.After), 0, s.Duration())
		c.lasts(at+".for", time.Duration(f.For), 15*time.Second, s.Duration())
		s.checkEnd(c, at, f)
		c.within(at+".share", f.Share, 0, 1)
		c.within(at+".factor", f.Factor, 0, 100)
	}
}

// checkEnd refuses a fault that is not over when the quiet time begins: what must be in order at the end could not be.
func (s *Scenario) checkEnd(c *checker, at string, f *Fault) {
	run, end, quiet := s.Duration(), time.Duration(f.After)+time.Duration(f.For), time.Duration(s.Faults.Quiet)
	switch last := run - quiet; {
	case last < 0: // in messages on faults.quiet
	case end > run:
		c.wrong(at+".for", "it ends %s after the start, and the run after %s: end it by %s", end, run, last)
	case end > last:
		c.wrong(at+".for", "it ends %s after the start, and nothing may go wrong in the last %s of the run (faults.quiet, %s unless written): end it by %s, or write faults.quiet: %s",
			end, quiet, time.Duration(defaults().Faults.Quiet), last, run-end)
	}
}

// path is where a trace lies.
func (s *Scenario) path(trace string) string {
	if filepath.IsAbs(trace) {
		return trace
	}
	return filepath.Join(s.dir, trace)
}
