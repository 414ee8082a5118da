package promql

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// TestIntervalsOfAPart: where the source answers for a part of the fleet alone, that part is read again, and what is known of the rest stays: the interval of a
// namespace that was refused, and the usual one, by which namespaces go that are not known yet.
func TestIntervalsOfAPart(t *testing.T) {
	const wide, narrow = 60 * time.Second, 15 * time.Second
	for _, c := range []struct {
		name string
		// first are the namespaces for which the first question gets no answer, then those of the next one; a question about all of the fleet has none in it
		// where any is refused.
		first, then []string
		// slower is the namespace that is sampled once a minute from the twentieth minute on.
		slower string
		want   map[string]time.Duration
	}{
		{"the slow one is refused later", nil, []string{"slow"}, "", map[string]time.Duration{"slow": wide, "a": narrow, "b": narrow, "new": narrow}},
		{"all but the slow one are refused later", nil, []string{"a", "b", "c"}, "", map[string]time.Duration{"slow": wide, "a": narrow, "c": narrow, "new": narrow}},
		{"what is answered is read again", nil, []string{"slow", "b"}, "a", map[string]time.Duration{"slow": wide, "a": wide, "b": narrow, "new": narrow}},
		{"nothing is answered later", nil, []string{"a", "b", "c", "slow"}, "", map[string]time.Duration{"slow": wide, "a": narrow, "new": narrow}},
		{"the slow one is refused from the start", []string{"slow"}, []string{"slow"}, "", map[string]time.Duration{"slow": narrow, "a": narrow, "new": narrow}},
		{"the slow one alone is answered at first, and all are later", []string{"a", "b", "c"}, nil, "", map[string]time.Duration{"slow": wide, "a": narrow, "b": narrow, "new": narrow}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var script strings.Builder
			script.WriteString("load 15s\n")
			var services []fleet.Service
			for _, ns := range []string{"a", "b", "c", "slow"} {
				samples := "0+15x140"
				switch ns {
				case c.slower:
					samples = "0+15x80" + strings.Repeat(" _x3 1260", 15)
				case "slow":
					samples = "0" + strings.Repeat(" _x3 60", 35)
				}
				fmt.Fprintf(&script, "  container_cpu_usage_seconds_total{namespace=%q, pod=\"cart-7d-a\", container=\"app\"} %s\n", ns, samples)
				s := cart()
				s.ID, s.Target.Namespace = fleet.ServiceID(ns+"/cart"), ns
				services = append(services, s)
			}
			p := newProm(t, script.String(), 1e6)
			h := p.history(Options{})
			for _, turn := range []struct {
				at      time.Duration
				refused []string
			}{{20 * time.Minute, c.first}, {34 * time.Minute, c.then}} {
				p.intercept(func(w http.ResponseWriter, r *http.Request) bool {
					q := r.FormValue("query")
					if !strings.Contains(q, "count_over_time") || !asksOneOf(q, turn.refused) {
						return false
					}
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusUnprocessableEntity)
					_, _ = w.Write([]byte(`{"status":"error","errorType":"execution","error":"query processing would load too many samples into memory"}`))
					return true
				})
				if err := h.Prefetch(t.Context(), services, at(turn.at)); err != nil {
					t.Fatal(err)
				}
			}
			for ns, want := range c.want {
				if got := h.paces().cpu.of(ns); got != want {
					t.Errorf("%s is sampled every %s, want %s", ns, got, want)
				}
			}
		})
	}
}

// asksOneOf reports whether a query reads series of one of some namespaces.
func asksOneOf(query string, namespaces []string) bool {
	_, in, some := strings.Cut(query, `namespace=~"`)
	if !some {
		return len(namespaces) > 0
	}
	in, _, _ = strings.Cut(in, `"`)
	return slices.ContainsFunc(strings.Split(in, "|"), func(one string) bool { return slices.Contains(namespaces, one) })
}
