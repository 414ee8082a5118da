package loop_test

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
)

func TestDue(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 3, 16, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return last.Add(time.Duration(s) * time.Second) }
	for name, c := range map[string]struct {
		p    loop.Pending
		want time.Time
	}{
		"nothing is pending":                       {loop.Pending{Now: at(20), Tick: at(60)}, at(60)},
		"a fact changed":                           {loop.Pending{Now: at(20), Tick: at(60), Changed: true}, at(20)},
		"replicas are short":                       {loop.Pending{Now: at(20), Tick: at(60), Short: true}, at(20)},
		"pods wait while machines are away":        {loop.Pending{Now: at(20), Tick: at(60), Waiting: true}, at(20)},
		"a deadline before the tick":               {loop.Pending{Now: at(20), Tick: at(60), Deadline: at(40)}, at(40)},
		"a deadline after the tick":                {loop.Pending{Now: at(20), Tick: at(60), Deadline: at(80)}, at(60)},
		"a deadline that passed leaves a pause":    {loop.Pending{Now: at(1), Tick: at(60), Deadline: at(-300)}, at(15)},
		"a deadline at once leaves a pause":        {loop.Pending{Now: at(1), Tick: at(60), Deadline: at(3)}, at(15)},
		"a deadline does not delay a short tick":   {loop.Pending{Now: at(1), Tick: at(5), Deadline: at(3)}, at(5)},
		"a change does not wait for a deadline":    {loop.Pending{Now: at(2), Tick: at(60), Deadline: at(40), Changed: true}, at(2)},
		"a tick that passed is due since its time": {loop.Pending{Now: at(90), Tick: at(60), Changed: true}, at(60)},
	} {
		c.p.Last = last
		if got := loop.Due(c.p); !got.Equal(c.want) {
			t.Errorf("%s: due %s after the last cycle, want %s", name, got.Sub(last), c.want.Sub(last))
		}
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 16, 12, 0, 0, 0, time.UTC)
	pools := []fleet.Pool{{ID: "web", Class: fleet.Online}, {ID: "batch", Class: fleet.Offline}}
	for name, c := range map[string]struct {
		loan fleet.Loan
		due  bool
	}{
		"a recall of online's machine":          {fleet.Loan{From: "web", Phase: fleet.Noticed, Deadline: noon}, true},
		"online's own notice to itself":         {fleet.Loan{From: "batch", Phase: fleet.Noticed, Deadline: noon}, false},
		"a machine of offline's that is asked":  {fleet.Loan{From: "batch", Phase: fleet.Emptying, Deadline: noon}, true},
		"a machine that empties by scale-in":    {fleet.Loan{From: "web", Phase: fleet.Emptying}, false},
		"a machine whose pods are evicted":      {fleet.Loan{From: "web", Phase: fleet.Draining, Deadline: noon}, false},
		"a machine that is lent":                {fleet.Loan{From: "web", Phase: fleet.Lent, Deadline: noon}, false},
		"a loan of a pool that nobody knows of": {fleet.Loan{From: "x", Phase: fleet.Noticed, Deadline: noon}, false},
	} {
		later := fleet.Loan{From: "web", Phase: fleet.Noticed, Deadline: noon.Add(time.Hour)}
		want := later.Deadline
		if c.due {
			want = noon
		}
		if got := loop.Deadline([]fleet.Loan{later, c.loan}, pools); !got.Equal(want) {
			t.Errorf("%s: the first deadline is %s, want %s", name, got, want)
		}
		if c.due != !loop.Deadline([]fleet.Loan{c.loan}, pools).IsZero() {
			t.Errorf("%s: alone", name)
		}
	}
}
