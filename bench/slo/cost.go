package main

import (
	"fmt"
	"slices"

	"github.com/springtide/springtide/sim"
)

// quantiles are those that a sizing is played at, in percent.
var quantiles = []float64{80, 90, byDefault, 97, 99}

// tally sums up a class of services under one sizing at one quantile.
type tally struct {
	minutes, bad int
	cores        float64
}

func (t *tally) good() float64 { return 1 - float64(t.bad)/float64(t.minutes) }

// tallyOf sums up what matches.
func tallyOf(all []played, match func(*played) bool) tally {
	var out tally
	for i := range all {
		if p := &all[i]; match(p) {
			out.minutes, out.bad, out.cores = out.minutes+p.minutes, out.bad+p.SLOViolationMinutes, out.cores+p.OnlineCoreHours
		}
	}
	return out
}

// cost compares what the sizings cost, by how tight the limits are.
func (b *bench) cost() error {
	var all []played
	for seed := uint64(1); seed <= b.seeds; seed++ {
		s, err := b.load("slo.yaml", seed)
		if err != nil {
			return err
		}
		var rows []sim.Row
		for _, z := range sizings {
			for _, q := range z.quantiles() {
				rows = append(rows, row(z, q))
			}
		}
		got, err := b.play(s, rows)
		if err != nil {
			return err
		}
		all = append(all, got...)
	}
	at := func(class string, z sizing, q float64) tally {
		return tallyOf(all, func(p *played) bool { return p.class == class && z.matches(&p.row) && p.row.Target == q })
	}
	b.heads("limits", "sizing", "good minutes", "bad minutes", "core-hours", "of the rule's",
		"quantile at no more bad minutes", "core-hours there", "of the rule's")
	for _, class := range classesOf(all) {
		rule := at(class, byRule, byDefault)
		for _, z := range sizings {
			t := at(class, z, byDefault)
			fmt.Fprintf(b.out, "| %s | %s | %.3f %% | %d | %.0f | %.1f %% |", class, z.name, 100*t.good(), t.bad, t.cores,
				100*t.cores/rule.cores)
			q, equal, ok := cheapest(z.quantiles(), func(q float64) tally { return at(class, z, q) }, rule.bad)
			if !ok {
				fmt.Fprintf(b.out, " none | | |\n")
				continue
			}
			fmt.Fprintf(b.out, " %v | %.0f | %.1f %% |\n", q, equal.cores, 100*equal.cores/rule.cores)
		}
	}
	b.judgeCost(all, at)
	return nil
}

// quantiles are those that a sizing is played at: one that chooses them itself is played once.
func (z sizing) quantiles() []float64 {
	if z.byObjective || z.explores {
		return []float64{byDefault}
	}
	return quantiles
}

// cheapest is the cheapest quantile with so many bad minutes at most.
func cheapest(of []float64, at func(q float64) tally, bad int) (q float64, out tally, ok bool) {
	for _, try := range of {
		if t := at(try); t.bad <= bad && (!ok || t.cores < out.cores) {
			q, out, ok = try, t, true
		}
	}
	return q, out, ok
}

// judgeCost says what of the musts and goals holds.
func (b *bench) judgeCost(all []played, at func(class string, z sizing, q float64) tally) {
	rule := at("loose", byRule, byDefault)
	_, loose, ok := cheapest(quantiles, func(q float64) tally { return at("loose", atOneNotch, q) }, rule.bad)
	saved := 1 - loose.cores/rule.cores
	fmt.Fprintf(b.out, "\n- Loose limits at no more bad minutes than the rule: %.1f %% fewer core-hours. "+
		"Must: 15 %%. %s.\n",
		100*saved, met(ok && saved >= 0.15))

	objective := 0.0
	for i := range all {
		if all[i].class == "tight" {
			objective = all[i].objective
		}
	}
	tight, own := at("tight", byRule, byDefault), at("tight", asItIs, byDefault)
	fmt.Fprintf(b.out, "- Tight limits with an objective of %v %%: the rule keeps %.3f %%, Springtide %.3f %%. "+
		"Must: the objective, where the rule breaks it. %s.\n",
		100*objective, 100*tight.good(), 100*own.good(), met(own.good() >= objective))

	for _, class := range classesOf(all) {
		truth, own := at(class, byTrueCurve, byDefault), at(class, atOneNotch, byDefault)
		more := own.cores/truth.cores - 1
		fmt.Fprintf(b.out, "- %s limits: %+.1f %% core-hours next to the sizer that knows the true curve, "+
			"at the same quantile (%d bad minutes, and its %d). Goal: within 10 %%. %s.\n",
			class, 100*more, own.bad, truth.bad, met(more <= 0.1 && more >= -0.1))
	}
}

func classesOf(all []played) []string {
	var out []string
	for i := range all {
		if !slices.Contains(out, all[i].class) {
			out = append(out, all[i].class)
		}
	}
	slices.Sort(out)
	return out
}
