package quota

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// pod is what one pod of so many cores requests: a request brings the pod, which no quota of the API counts.
func pod(n int64) fleet.Resources {
	r := cores(n)
	r.Pods = 1
	return r
}

// A quota counts CPU, memory and GPUs. It names no pods, and that is no limit on them.
func TestPodsAreNoResourceOfAQuota(t *testing.T) {
	a, b := tenant("a", "all", 50), tenant("b", "all", 50)
	a.BorrowingLimit, b.LendingLimit = limit(10), limit(30)
	tree := []fleet.Tenant{tenant("all", "", 100), a, b}
	supply := fleet.Resources{CPU: 200_000, Pods: 1000}
	for _, c := range []struct {
		name     string
		want     Want
		borrowed int64
		offline  int64
		over     int64
	}{
		{"within its own", Want{Now: pod(1).Times(40), Used: pod(1).Times(40)}, 0, 0, 0},
		{"up to its borrowing limit", Want{Now: pod(1).Times(60), Used: pod(1).Times(55)}, 10, 0, 0},
		{"beyond its borrowing limit", Want{Now: pod(2).Times(40), Used: pod(2).Times(35)}, 10, 0, 10},
		{"offline work beyond its own", Want{OfflineNeed: pod(1).Times(20), OfflineWish: pod(1).Times(80), Offline: pod(1).Times(55)}, 0, 10, 0},
		{"more pods than machines hold", Want{Now: fleet.Resources{CPU: 55_000, Pods: 5000}}, 5, 0, 0},
	} {
		c.want.Tenant = "a"
		d := Divide(Input{At: now, Supply: fleet.KnownAt(supply, now), Tenants: tree, Wants: []Want{c.want, {Tenant: "b", Now: pod(1).Times(5)}}})
		s := d.Share("a")
		if s.Borrowed != cores(c.borrowed) || s.BorrowedOffline != cores(c.offline) || s.OverOnline != cores(c.over) {
			t.Errorf("%s: borrows %+v and %+v offline, is over by %+v: want %d, %d and %d cores\n%s", c.name, s.Borrowed, s.BorrowedOffline, s.OverOnline,
				c.borrowed, c.offline, c.over, s.Why)
		}
		if short := s.Borrowed.CPU < s.Online.Sub(s.Own).CPU; len(d.Short) > 0 != short {
			t.Errorf("%s: short is %+v", c.name, d.Short)
		}
	}
	bounds := NewBounds(tree)
	for n, refused := range map[int64]bool{1: false, 50: false, 60: false, 61: true} {
		if x := bounds.Refuse("a", pod(1).Times(n)); (x != nil) != refused {
			t.Errorf("%d pods of one core each: refused by %+v, want %t", n, x, refused)
		}
	}
	parcels := NewParcelBounds([]fleet.Tenant{{ID: "a", Accepted: true, Parcels: []fleet.ParcelQuota{{Guarantee: 2, BorrowingLimit: fleet.KnownAt(int64(1), now)}}}}, fleet.ParcelClass{})
	for n, refused := range map[int64]bool{0: false, 3: false, 4: true} {
		if x := parcels.RefuseParcels("a", n); (x != nil) != refused || x != nil && x.MostParcels != 3 {
			t.Errorf("%d parcels: refused by %+v, want %t", n, x, refused)
		}
	}
}

// Whatever is divided, the number of pods that ask for it changes nothing.
func TestPodsChangeNoDivision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		want := Divide(in)
		bring := func(r *fleet.Resources) { r.Pods = rapid.Int64Range(0, 500).Draw(t, "pods") }
		in.Supply.Value.Pods = rapid.Int64Range(0, 500).Draw(t, "pods of the machines")
		for i := range in.Wants {
			w := &in.Wants[i]
			for _, r := range []*fleet.Resources{&w.Now, &w.Used, &w.Offline, &w.OfflineNeed, &w.OfflineWish} {
				bring(r)
			}
			for k := range w.Ahead {
				bring(&w.Ahead[k])
			}
		}
		got := Divide(in)
		for i := range got.Shares { // notices keep what was used as it was counted
			for k := range got.Shares[i].Notices {
				n := &got.Shares[i].Notices[k]
				n.OnlineUsed.Pods, n.OfflineUsed.Pods = 0, 0
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("with pods:\n%+v\nwithout:\n%+v", got, want)
		}
	})
}
