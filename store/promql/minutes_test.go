package promql

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/slo"
)

// TestMinutesAreReadBack: two processes, one after the other, counted three hours of a service; another one is not
// asked for. A source that does not scrape the controller knows nothing, which is no fault.
func TestMinutesAreReadBack(t *testing.T) {
	judged := func(pod, result, values string) string {
		return `springtide_slo_judged_seconds_total{namespace="shop",service="cart",pod="` + pod +
			`",result="` + result + `"} ` + values + "\n"
	}
	script := "load 1m\n" + judged("a", "good", "0+60x60 stale") + judged("a", "bad", "0x60 stale") + judged("a",
		"unknown", "0+60x60 stale") +
		judged("b", "good", "_x61 0+60x50 3000x9 3000+60x60") + judged("b", "bad", "_x61 0x50 0+60x9 540x60") +
		`springtide_slo_judged_seconds_total{namespace="shop",service="pay",pod="a",result="bad"} 0+60x200`
	p := newProm(t, script, 1e6)
	got, err := p.history(Options{}).Minutes(t.Context(), []fleet.Service{cart()}, at(-100*time.Hour),
		at(3*time.Hour+10*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	want := map[fleet.ServiceID][]slo.Hour{cart().ID: {{At: at(0), Good: 60}, {At: at(time.Hour), Good: 49, Bad: 9},
		{At: at(2 * time.Hour), Good: 60}}}
	if d := cmp.Diff(want, got, cmp.Comparer(near)); d != "" {
		t.Error(d)
	}
	days := 0
	for _, q := range p.asked() {
		if strings.Contains(q, "springtide_slo_judged_seconds_total") {
			days++
		}
	}
	if days != 5 {
		t.Errorf("103 hours were asked for in %d questions, want one a day", days)
	}
	none := newProm(t, shop, 1e6)
	if got, err := none.history(Options{}).Minutes(t.Context(), []fleet.Service{cart()}, at(0),
		at(time.Hour)); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// near are hours that differ by a minute at most: an increase is extrapolated to the edges of its hour.
func near(a, b slo.Hour) bool {
	off := func(x, y int) bool { return x-y > 1 || y-x > 1 }
	return a.At.Equal(b.At) && !off(a.Good, b.Good) && !off(a.Bad, b.Bad)
}
