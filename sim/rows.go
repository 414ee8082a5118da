package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/sim/scenario"
)

// The names of the policies, in the order of tables.
const (
	Static     = "static"
	HPA        = "hpa"
	KEDA       = "keda"
	CronHPA    = "cronhpa"
	DSP        = "dsp"
	PHPA       = "phpa"
	AWS        = "aws"
	AHPA       = "ahpa"
	Reactive   = "springtide-reactive"
	Springtide = "springtide"
	Oracle     = "oracle"
	OracleFree = "oracle-free"
)

// The names of the lenders.
const (
	LendNone       = "none"
	LendTDM        = "tdm"
	LendTidal      = "tidalpool"
	LendSpringtide = "springtide"
	LendOracle     = "oracle"
)

// The knobs that targets turn.
const (
	KnobUtilisation  = "utilisation"
	KnobHeadroom     = "headroom"
	KnobAvailability = "availability"
)

// Row is one policy with one lender at one target: a line of the table.
type Row struct {
	Policy, Lender string
	// Target is in percent, and Knob says of what: utilisation of the requested CPU, last week's peak, or the forecast's quantile.
	Target float64
	Knob   string
	// Default marks the target that the policy comes with.
	Default bool
	// Capacity is where Springtide has what a replica carries from.
	Capacity Capacity
	// ByObjective leaves the forecast's quantile to the record of each service, as where its operator states none.
	ByObjective bool
	// Explores lets every service approach its knee in quiet hours.
	Explores bool
}

// Capacity says where Springtide has from what a replica carries.
type Capacity string

// The sources of a capacity.
const (
	// CapacityOwn is as the product has it.
	CapacityOwn Capacity = ""
	// CapacityRule is the fixed rule: every replica carries what 60 % of its CPU does, whatever its levels are.
	CapacityRule Capacity = "rule"
	// CapacityTrue is what the curve that is played says, for the share of minutes that the objective asks for: no
	// sizer can know more of a replica.
	CapacityTrue Capacity = "true"
)

// Charted reports whether a page draws each service of the row: Springtide as it comes, and what it is compared with.
func (r *Row) Charted() bool {
	return r.Default && (r.Policy == Springtide && r.Lender == LendSpringtide || r.Policy == HPA && r.Lender == LendNone)
}

// Policies are the names of all policies.
func Policies() []string {
	return []string{Static, HPA, KEDA, CronHPA, DSP, PHPA, AWS, AHPA, Reactive, Springtide, Oracle, OracleFree}
}

// The targets that are swept, the default first.
var (
	utilisations   = []float64{60, 40, 50, 70, 80}
	headrooms      = []float64{120, 100, 110, 140, 160}
	availabilities = []float64{80, 90, 97, 99}
)

// Rows are the lines of some policies: each without lending at its targets, and with the lenders that it is compared with. A name such as
// hpa+none picks a policy's lines with one lender.
func Rows(b *scenario.Built, names []string) ([]Row, error) {
	if err := Known(names); err != nil {
		return nil, err
	}
	var out []Row
	for _, name := range names {
		policy, lender, one := strings.Cut(name, "+")
		rows := rowsOf(policy, own(b))
		if one {
			rows = slices.DeleteFunc(rows, func(r Row) bool { return r.Lender != lender })
		}
		out = append(out, rows...)
	}
	return out, nil
}

// rowsOf are the lines of a policy, in a scenario that asks for an availability.
func rowsOf(p string, availability float64) []Row {
	switch p {
	case Static:
		return sweep(p, KnobHeadroom, headrooms)
	case HPA:
		out := sweep(p, KnobUtilisation, utilisations)
		for _, lender := range []string{LendTDM, LendTidal, LendSpringtide} {
			out = append(out, Row{Policy: p, Lender: lender, Target: utilisations[0], Knob: KnobUtilisation, Default: true})
		}
		return out
	case KEDA, CronHPA, DSP, PHPA, AWS, AHPA:
		return sweep(p, KnobUtilisation, utilisations)
	case Reactive:
		return []Row{
			{Policy: p, Lender: LendSpringtide, Target: availability, Knob: KnobAvailability, Default: true},
			{Policy: p, Lender: LendNone, Target: availability, Knob: KnobAvailability, Default: true},
		}
	case Springtide:
		others := slices.DeleteFunc(slices.Clone(availabilities), func(a float64) bool { return a == availability })
		out := []Row{{Policy: p, Lender: LendSpringtide, Target: availability, Knob: KnobAvailability, Default: true}}
		out = append(out, sweep(p, KnobAvailability, append([]float64{availability}, others...))...)
		return append(out, Row{Policy: p, Lender: LendTidal, Target: availability, Knob: KnobAvailability, Default: true})
	case Oracle, OracleFree:
		return []Row{{Policy: p, Lender: LendOracle, Default: true}}
	}
	return nil
}

// All is the name that means all policies.
const All = "all"

// Known refuses names that are no policy's, and lenders that it is not played with.
func Known(names []string) error {
	for _, name := range names {
		policy, lender, one := strings.Cut(name, "+")
		if name != All && !slices.Contains(Policies(), policy) {
			return fmt.Errorf("there is no policy %q: write some of %s, or %s", policy, strings.Join(Policies(), ", "), All)
		}
		if !one {
			continue
		}
		var with []string
		for _, r := range rowsOf(policy, 0) {
			if !slices.Contains(with, r.Lender) {
				with = append(with, r.Lender)
			}
		}
		if !slices.Contains(with, lender) {
			return fmt.Errorf("%s is not played with lender %q: write %s+ and one of %s", policy, lender, policy, strings.Join(with, ", "))
		}
	}
	return nil
}

// own is the availability that a scenario asks for by default, in percent.
func own(b *scenario.Built) float64 { return b.Defaults.ForecastPercent }

func sweep(policy, knob string, targets []float64) []Row {
	var out []Row
	for i, t := range targets {
		out = append(out, Row{Policy: policy, Lender: LendNone, Target: t, Knob: knob, Default: i == 0})
	}
	return out
}

// Run plays one row and returns what it came to.
func Run(ctx context.Context, b *scenario.Built, r Row, shared *Shared) (Result, error) {
	if r.Policy == Oracle || r.Policy == OracleFree {
		return foresee(b, shared.rates, r), nil
	}
	w := NewWorld(b, shared.rates)
	lender := lenderOf(r.Lender)
	if ours := r.controller(b); ours != nil {
		if err := runController(ctx, w, *ours, shared, lender...); err != nil {
			var broken *Broken
			if errors.As(err, &broken) {
				broken.Row = r.Policy + "+" + r.Lender
			}
			return Result{}, err
		}
		return w.result(r), nil
	}
	policies := append([]Policy{r.scaler(w, shared.past)}, lender...)
	for !w.over() {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		w.step(policies)
	}
	return w.result(r), nil
}

// Shared is what the rows of one scenario have in common: the true load, what peers forecast of it, and what Springtide learned before.
type Shared struct {
	rates *Rates
	past  *Past
	warm  warm
}

// Share prepares what the rows of a scenario have in common.
func Share(b *scenario.Built) *Shared { return &Shared{rates: NewRates(b), past: NewPast(b)} }

// lenderOf is a peer's lender; ours is the controller's own.
func lenderOf(name string) []Policy {
	switch name {
	case LendTDM:
		return []Policy{tdm{}}
	case LendTidal:
		return []Policy{&tidal{}}
	}
	return nil
}

// controller says how far Springtide's own loop goes in this row; nil where it does not run.
func (r Row) controller(b *scenario.Built) *controllerOptions {
	lends := r.Lender == LendSpringtide
	switch r.Policy {
	case Springtide, Reactive:
		o := &controllerOptions{Lends: lends, Blind: r.Policy == Reactive, Knows: r.Capacity == CapacityTrue}
		if r.Capacity == CapacityRule {
			o.Target = hpa.Standard().LatencyUtilisation
		}
		o.ByObjective, o.Explores = r.ByObjective, r.Explores
		if r.Target != own(b) {
			o.Quantile = r.Target / 100
		}
		return o
	case HPA:
		if lends {
			return &controllerOptions{Lends: true, Blind: true, Target: r.Target / 100}
		}
	}
	return nil
}

// scaler is a peer's scaler.
func (r Row) scaler(w *World, past *Past) Policy {
	t, n := r.Target/100, len(w.services)
	switch r.Policy {
	case Static:
		return static(t, scenario.Headroom)
	case KEDA:
		return newFrame(w, []ask{byValue(t)}, nil)
	case CronHPA:
		return newFrame(w, []ask{byCPU(t)}, []ask{byLastWeek(past, t)})
	case DSP:
		return newFrame(w, []ask{byCPU(t), byCrane(past, t)}, nil)
	case PHPA:
		return newFrame(w, []ask{byLine(n, byCPU(t))}, nil)
	case AWS:
		return newFrame(w, []ask{byCPU(t)}, []ask{byAWS(past, t)})
	case AHPA:
		return newFrame(w, []ask{byCPU(t)}, []ask{byAHPA(past, t)})
	}
	return newFrame(w, []ask{byCPU(t)}, nil)
}
