package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

// Shares that rise with the load are joined, each load with equal weight; the objective is read off the line.
func TestWhereALimitBreaks(t *testing.T) {
	m := measured{Objective: 0.95, Truths: []truth{{Load: 100, Holds: []float64{1}}, {Load: 110, Holds: []float64{0.9}},
		{Load: 120, Holds: []float64{0.98}}, {Load: 130, Holds: []float64{0.94}}, {Load: 140, Holds: []float64{0.5}}}}
	// 110 to 130 have a mean of 0.94 each: 0.95 lies five sixths of the way from 100 to 110.
	if got := m.breaks(0); math.Abs(got-(100+10*5.0/6)) > 1e-9 {
		t.Errorf("breaks at %v", got)
	}
	m.Objective = 0.4
	if got := m.breaks(0); got != 140 {
		t.Errorf("a limit that every load keeps breaks at %v, want the last one", got)
	}
	m.Objective, m.Truths[0].Holds[0] = 0.99, 0.5
	if got := m.breaks(0); got != 100 {
		t.Errorf("a limit that no load keeps breaks at %v, want the first one", got)
	}
}

// A server that breaks beyond 300 a second, and nowhere below, is learned within the bounds of the page.
func TestLearnedOfASharpKnee(t *testing.T) {
	m := measured{Objective: 0.95, Cores: 0.3, Limits: []time.Duration{100 * time.Millisecond}}
	for range 8 {
		for load := 60.0; load < 340; load += 4 {
			o := observation{Load: load, P99: 0.08, CPU: load * 0.3 / 350}
			if load > 300 {
				o.P99 = 0.3
			}
			m.Observations = append(m.Observations, o)
		}
	}
	if e := m.learn(m.Limits[0]); e.Load < 0.85*300 || e.Load > 1.05*300 {
		t.Errorf("%+v", e)
	}
}

func TestBudgetsAndTables(t *testing.T) {
	all := []played{
		{objective: 0.99, minutes: 1000, class: "a"}, {objective: 0.99, minutes: 1000, class: "a"},
		{objective: 0.99, minutes: 1000, class: "b"},
	}
	all[0].SLOViolationMinutes, all[1].SLOViolationMinutes, all[1].OnlineCoreHours = 4, 11, 7
	x := keeping(all, func(p *played) bool { return p.class == "a" })
	if x.services != 2 || x.kept != 1 || math.Abs(x.left-0.6) > 1e-9 || math.Abs(x.worst-0.989) > 1e-9 {
		t.Errorf("%+v", x)
	}
	sum := tallyOf(all, func(p *played) bool { return p.class == "a" })
	if sum.bad != 15 || sum.cores != 7 || math.Abs(sum.good()-0.9925) > 1e-9 {
		t.Errorf("%+v", sum)
	}
	at := func(q float64) tally { return tally{bad: int(100 - q), cores: q} }
	if q, _, ok := cheapest(quantiles, at, 4); !ok || q != 97 {
		t.Errorf("the cheapest quantile with at most 4 bad minutes is %v", q)
	}
	if _, _, ok := cheapest(quantiles, at, 0); ok {
		t.Error("no quantile has none")
	}
	start := time.Date(2026, 6, 7, 0, 0, 0, 0, time.UTC)
	if n := within([]int32{59, 60, 61, 60 + 24*60 - 1, 60 + 24*60}, start, start.Add(time.Hour)); n != 3 {
		t.Errorf("%d minutes of the day after", n)
	}
	var out bytes.Buffer
	(&bench{out: &out}).heads("a", "b")
	if out.String() != "| a | b |\n|---|---|\n" || !strings.Contains(met(false), "missed") {
		t.Errorf("%q", out.String())
	}
}
