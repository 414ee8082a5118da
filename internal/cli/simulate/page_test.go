package simulate

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/chart/charttest"
	"github.com/springtide/springtide/sim"
)

// A page holds every row of every seed, is well formed and asks for nothing from elsewhere; a single row has no curve.
func TestSimulatePage(t *testing.T) {
	row := func(policy, lender string, cost float64, minutes int, byDefault bool) sim.Result {
		return sim.Result{Policy: policy, Lender: lender, Target: 60, Knob: sim.KnobUtilisation, Default: byDefault, OnlineCoreHours: cost, SLOViolationMinutes: minutes,
			Classes: map[string]sim.Class{sim.Calm: {ServiceWeeks: 1, SLOViolationMinutes: minutes}, sim.Bursty: {}}}
	}
	with := row(sim.Springtide, sim.LendSpringtide, 80, 0, true)
	with.Timeline = []sim.Moment{{Demand: 5, Ready: 8, Online: 9, Lent: 3, Used: 7}, {}, {Online: 4, Lent: 8, Used: 9}}
	with.Services = []sim.ServiceResult{{Service: "online/<b>", Class: sim.Calm, SLOViolationMinutes: 3, Timeline: []sim.ServiceMoment{{Need: 3, Ready: 4}, {Need: 1234, Ready: 5, Broken: 3}, {Need: 2, Ready: 5}}}}
	r := &simulateReport{Scenario: `<script>alert("a")</script>`, Days: 2, Nodes: 3, Services: 1, Notes: []string{"<b>: moved", "no more"}, Policies: []simulated{
		{1, row(sim.HPA, sim.LendNone, 100, 500, true)}, {1, row(sim.HPA, sim.LendNone, 150, 0, false)}, {1, row(sim.KEDA, sim.LendNone, 90, 700, false)},
		{1, row(sim.KEDA, sim.LendNone, 110, 100, true)}, {1, with},
		{1, row(sim.Reactive, sim.LendNone, 80, 900, true)}, {1, row(sim.Oracle, sim.LendOracle, 70, 0, true)}, {2, row(sim.HPA, sim.LendNone, 100, 500, true)},
	}}
	var page bytes.Buffer
	if err := writeSimulatePage(&page, r); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	// One curve (no service is bursty, so that of the calm ones is the same), one fleet and one service; the second seed has a single row.
	for what, n := range map[string]int{"<svg": 3, "class=\"breach\"": 1, "&lt;b&gt;": 2, "<script": 0, "src=": 0, "href=": 0, "NaN": 0, "Inf": 0, "Seed ": 2, "<circle": 6, "<li>&lt;b&gt;: moved</li>": 1, "<li>": 2} {
		if got := strings.Count(text, what); got != n {
			t.Errorf("%d times %q, want %d", got, what, n)
		}
	}
	charttest.Within(t, text)
	d := xml.NewDecoder(strings.NewReader(strings.NewReplacer("<!DOCTYPE html>", "", `<meta charset="utf-8">`, "").Replace(text)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	var marked bytes.Buffer
	if err := markSimulation(&marked, r); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"## Seed 2\n", "| policy | lender | target | SLO minutes |", "| at HPA's cost | SLO minutes | calm | bursty | each tuned | note |\n|---|---|---|---|---|---|\n", "| keda | 400 | 400 | 0 | - |  |\n"} {
		if !strings.Contains(marked.String(), line) {
			t.Errorf("%q is missing in\n%s", line, marked.String())
		}
	}
	var table bytes.Buffer
	if err := printSimulation(&table, r); err != nil {
		t.Fatal(err)
	}
	// A curve that ends before that cost says so, unless no minute is left; Springtide has a row whatever was played.
	equal := equalCost(r.of(1))
	for _, want := range [][]string{{sim.Reactive, cell.None, "not reached: ends at 80 with 900 minutes"}, {sim.Springtide, cell.None, "played with lending alone"}, {sim.Oracle, "0", ""}} {
		if !slices.ContainsFunc(equal, func(row []string) bool { return row[0] == want[0] && row[1] == want[1] && row[len(row)-1] == want[2] }) {
			t.Errorf("%v is not among %v", want, equal)
		}
	}
	// KEDA's curve at 100 core-hours lies halfway between 700 and 100 minutes.
	if !strings.Contains(table.String(), "keda                  400           400    0") {
		t.Errorf("the table reads\n%s", table.String())
	}
}

func TestSeedRange(t *testing.T) {
	for text, want := range map[string]int{"3": 1, "1..5": 5, "5..1": 0, "": 0, "a": 0, "1..": 0, "-1": 0, "1..2000000": 0} {
		got, err := seedRange(text)
		if len(got) != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
