package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/scripttest"
)

// changeLine reads a line of a script that opens a window of change for ten minutes more: of a pool, of kinds of change
// with commas between them, for a number or a share.
func (w *world) changeLine(f scripttest.Line) bool {
	c := fleet.ChangeWindow{Name: "peak", Reason: "sale", Once: t0.Add(-time.Minute), Duration: 11 * time.Minute}
	if f.Has(4) {
		c.Once = t0.Add(time.Duration(f.Int(4)) * time.Minute)
	}
	for kind := range strings.SplitSeq(f[2], ",") {
		c.Changes = append(c.Changes, fleet.Change(kind))
	}
	if share, ok := strings.CutSuffix(f[3], "%"); ok {
		c.Budget = fleet.ChangeBudget{Share: float64(scripttest.Int(share)) / 100, IsShare: true}
	} else {
		c.Budget.Count = f.Int(3)
	}
	for i := range w.s.Pools {
		if p := &w.s.Pools[i]; p.ID == fleet.PoolID(f[1]) {
			p.Changes = append(p.Changes, c)
		}
	}
	return true
}

// Windows of change bound new requests: none of a template that would replace more pods, and some pods in place.
func TestResizesInAWindow(t *testing.T) {
	type budget = fleet.ChangeBudget
	for name, c := range map[string]struct {
		mode   fleet.RequestsMode
		change fleet.Change
		budget budget
		pods   int // resized; -1 where nothing is
		held   string
	}{
		"closed to templates":  {fleet.RequestsRecreate, fleet.ChangeRecreate, budget{}, -1, "change window w "},
		"too few pods":         {fleet.RequestsRecreate, fleet.ChangeRecreate, budget{Count: 9}, -1, "which lets 9 go"},
		"enough pods":          {fleet.RequestsRecreate, fleet.ChangeRecreate, budget{Count: 10}, 0, ""},
		"all of them":          {fleet.RequestsRecreate, fleet.ChangeRecreate, budget{Share: 1, IsShare: true}, 0, ""},
		"closed to the other":  {fleet.RequestsRecreate, fleet.ChangeResize, budget{}, 0, ""},
		"closed in place":      {fleet.RequestsInPlace, fleet.ChangeResize, budget{}, -1, "change window w "},
		"in place, one a time": {fleet.RequestsInPlace, fleet.ChangeResize, budget{Count: 1}, 1, ""},
		"in place, by share":   {fleet.RequestsInPlace, fleet.ChangeResize, budget{Share: 0.05, IsShare: true}, 1, ""},
	} {
		w := newWorld(3)
		w.service("web", 10, 0, 3, 40)
		w.s.Services[0].RequestsMode = c.mode
		for i := range w.s.Pools {
			w.s.Pools[i].Changes = []fleet.ChangeWindow{{Name: "w", Once: t0, Duration: time.Hour,
				Changes: []fleet.Change{c.change}, Budget: c.budget}}
		}
		in := w.input()
		in.Portraits["shop/web"] = roomy()
		m := newMaker(&in)
		(&scaler{m}).resizes()
		got, held := -1, ""
		if len(m.plan.Resizes) == 1 {
			got = len(m.plan.Resizes[0].Pods)
		}
		for _, x := range m.plan.Withheld {
			held = x.By.Text()
		}
		if got != c.pods || !strings.Contains(held, c.held) || c.held == "" && held != "" {
			t.Errorf("%s: %d pods, held by %q", name, got, held)
		}
	}
}

// A window that cannot be read holds what it meant to hold, and says so.
func TestUnreadableChange(t *testing.T) {
	w := newWorld(6).service("web", 12, 0, 6, 20)
	for i := range w.s.Pools {
		w.s.Pools[i].Changes = []fleet.ChangeWindow{{Name: "w", Problem: "no cron",
			Changes: []fleet.Change{fleet.ChangeScaleIn}}}
	}
	p := made(w.input())
	if len(p.Lowers) != 0 || len(p.Withheld) == 0 ||
		p.Withheld[0].By.Text() != "change window w until it is corrected: it cannot be read (no cron)" {
		t.Errorf("%+v, withheld %v", p.Lowers, p.Withheld)
	}
}
