package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Finding is one promise that was not kept.
type Finding struct {
	Rule string `json:"rule"`
	// At is when it was found, Since when it began.
	At     time.Time `json:"at"`
	Since  time.Time `json:"since"`
	Object string    `json:"object"`
	What   string    `json:"what"`
}

func (f Finding) String() string {
	at := f.Since.UTC().Format("01-02 15:04:05")
	if f.At.After(f.Since) {
		at += " to " + f.At.UTC().Format("15:04:05")
	}
	return fmt.Sprintf("%s %s: %s: %s", at, f.Rule, f.Object, f.What)
}

// RuleReport is what one rule came to.
type RuleReport struct {
	Rule string `json:"rule"`
	// Promise is what an operator was promised.
	Promise string `json:"promise"`
	// Judged counts what the rule had to judge: with 0, it had nothing to find.
	Judged int `json:"judged"`
	// Findings counts its breaches, also those that are not listed.
	Findings int `json:"findings"`
}

// Report is what the judge found in a run.
type Report struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Steps int       `json:"steps"`
	// JudgedHours is the time in which spans ran: the judge saw the cluster, and nothing was down on purpose.
	JudgedHours float64      `json:"judgedHours"`
	Rules       []RuleReport `json:"rules"`
	// Findings are in order of time; of each rule the first 50.
	Findings []Finding `json:"findings"`
}

// Report sums up what was found so far.
func (j *Judge) Report() Report {
	r := Report{From: j.start, To: j.now, Steps: j.steps, JudgedHours: j.seen.Hours(), Findings: []Finding{}}
	for i := range rules {
		id := rules[i].id
		r.Rules = append(r.Rules, RuleReport{id, rules[i].promise, j.looked[id], j.count[id]})
		r.Findings = append(r.Findings, j.findings[id]...)
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Object, b.Object))
	})
	return r
}

// Count is the number of all findings.
func (r *Report) Count() int {
	n := 0
	for i := range r.Rules {
		n += r.Rules[i].Findings
	}
	return n
}

// Line is the report in one line: how many promises were judged, and which of them were broken how often.
func (r *Report) Line() string {
	var idle, broken []string
	for i := range r.Rules {
		rule := &r.Rules[i]
		if rule.Judged == 0 {
			idle = append(idle, rule.Rule)
		}
		if rule.Findings > 0 {
			broken = append(broken, fmt.Sprintf("%s %d", rule.Rule, rule.Findings))
		}
	}
	out := fmt.Sprintf("%d findings in %d promises over %.4g h", r.Count(), len(r.Rules), r.JudgedHours)
	if len(broken) > 0 {
		out += ": " + strings.Join(broken, ", ")
	}
	if len(idle) > 0 {
		out += " (nothing to judge: " + strings.Join(idle, ", ") + ")"
	}
	return out
}
