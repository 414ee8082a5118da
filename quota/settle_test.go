package quota

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// In trees with limits whose tenants take what they may and give back what is due, all is settled after some deadlines: nobody owes anything, and
// nobody gives back what it takes again.
func TestResourcesSettle(t *testing.T) {
	const drain = 4 * time.Minute
	rapid.Check(t, func(t *rapid.T) {
		in := Input{At: now, Tenants: drawTree(t)}
		var promised fleet.Resources
		for i := range in.Tenants {
			x := &in.Tenants[i]
			cpu := func(k fleet.Known[fleet.Resources]) fleet.Known[fleet.Resources] {
				k.Value = fleet.Resources{CPU: k.Value.CPU}
				return k
			}
			*x = fleet.Tenant{ID: x.ID, Parent: x.Parent, Accepted: true, Drain: drain, Guarantee: fleet.Resources{CPU: x.Guarantee.CPU},
				LendingLimit: cpu(x.LendingLimit), BorrowingLimit: cpu(x.BorrowingLimit)}
			promised = promised.Add(x.Guarantee)
			in.Wants = append(in.Wants, Want{Tenant: x.ID})
		}
		supply := promised.Add(cores(rapid.Int64Range(-40, 40).Draw(t, "unnamed"))).Floor()
		in.Supply = fleet.KnownAt(supply, now)
		for range rapid.IntRange(1, 2).Draw(t, "turns") {
			for i := range in.Wants {
				w := &in.Wants[i]
				w.Now, w.OfflineWish = cores(rapid.Int64Range(0, 90).Draw(t, "want")), cores(rapid.Int64Range(0, 90).Draw(t, "offline"))
				w.Used, w.Offline = w.Used.Min(w.Now), w.Offline.Min(w.OfflineWish)
			}
			play := func(span time.Duration) Division {
				for end := in.At.Add(span); in.At.Before(end); in.At = in.At.Add(time.Minute) {
					live(&in, supply)
				}
				return Divide(in)
			}
			d := play(60 * drain)
			for i := range d.Shares {
				if s := &d.Shares[i]; s.Owes() {
					t.Fatalf("%s still owes %s online and %s offline\n%+v\n%+v", s.Tenant, s.Owed, s.OverOffline, in.Wants, d)
				}
			}
			var before []Want
			before = append(before, in.Wants...)
			if play(2 * drain); !reflect.DeepEqual(before, in.Wants) {
				t.Fatalf("not settled:\n%+v\n%+v", before, in.Wants)
			}
		}
	})
}
