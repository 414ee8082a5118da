package main

import (
	"fmt"

	"github.com/springtide/springtide/sim"
)

// objectives plays four weeks and counts the services that kept their objective, and by how much the others were kept
// too well.
func (b *bench) objectives() error {
	var all []played
	for seed := uint64(1); seed <= b.seeds; seed++ {
		s, err := b.load("slo-objectives.yaml", seed)
		if err != nil {
			return err
		}
		var rows []sim.Row
		for _, z := range sizings {
			rows = append(rows, row(z, byDefault))
		}
		got, err := b.play(s, rows)
		if err != nil {
			return err
		}
		all = append(all, got...)
	}
	b.heads("objective", "sizing", "services", "keep it", "worst service", "mean budget left",
		"core-hours", "of the rule's")
	kept, own := 0, 0
	for _, class := range classesOf(all) {
		rule := tallyOf(all, func(p *played) bool { return p.class == class && byRule.matches(&p.row) })
		for _, z := range sizings {
			match := func(p *played) bool { return p.class == class && z.matches(&p.row) }
			x := keeping(all, match)
			if z == asItIs {
				kept, own = kept+x.kept, own+x.services
			}
			t := tallyOf(all, match)
			fmt.Fprintf(b.out, "| %v %% | %s | %d | %d | %.3f %% | %.0f %% | %.0f | %.1f %% |\n", 100*x.objective, z.name,
				x.services, x.kept, 100*x.worst,
				100*x.left/float64(max(1, x.kept)), t.cores, 100*t.cores/rule.cores)
		}
	}
	share := float64(kept) / float64(max(1, own))
	fmt.Fprintf(b.out, "\n- Springtide keeps the objective of %d of %d services, %.1f %%. Must: 95 %%, goal: 99 %%. %s.\n",
		kept, own, 100*share, met(share >= 0.95))
	return nil
}

// keeps is what services of one objective came to; left is the sum of the shares of the budget that those that kept it
// did not use.
type keeps struct {
	services, kept         int
	objective, worst, left float64
}

func keeping(all []played, match func(*played) bool) keeps {
	out := keeps{worst: 1}
	for i := range all {
		p := &all[i]
		if !match(p) {
			continue
		}
		out.services++
		out.objective, out.worst = p.objective, min(out.worst, p.good())
		if p.good() >= p.objective {
			out.kept++
			out.left += 1 - (1-p.good())/(1-p.objective)
		}
	}
	return out
}
