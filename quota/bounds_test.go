package quota

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// family is a company of two shops of 50 cores each. Only what is bent bounds anybody.
func family(bend func(company, a, b *fleet.Tenant)) []fleet.Tenant {
	ts := []fleet.Tenant{tenant("company", "", 100), tenant("a", "company", 50), tenant("b", "company", 50)}
	bend(&ts[0], &ts[1], &ts[2])
	return ts
}

// The most that a tenant may use: by its own limit, by those above it, and by what others do not lend.
func TestBounds(t *testing.T) {
	night := []fleet.Slice{{Window: fleet.Window{Name: "night"}, Guarantee: cores(200)}}
	for _, c := range []struct {
		name string
		bend func(company, a, b *fleet.Tenant)
		most int64 // cores, -1 for any number
		by   string
	}{
		{"no limit", func(_, _, _ *fleet.Tenant) {}, -1, ""},
		{"its own", func(_, a, _ *fleet.Tenant) { a.BorrowingLimit = limit(10) }, 60, "a 60"},
		{"its own, with a burst", func(_, a, _ *fleet.Tenant) {
			a.BorrowingLimit, a.Burst = limit(10), fleet.Burst{Percent: 20, Duration: time.Hour}
		}, 70, "a 70"},
		{"its own, with a burst for no time", func(_, a, _ *fleet.Tenant) { a.BorrowingLimit, a.Burst = limit(10), fleet.Burst{Percent: 20} }, 60, "a 60"},
		{"its own, with a burst by no share", func(_, a, _ *fleet.Tenant) { a.BorrowingLimit, a.Burst = limit(10), fleet.Burst{Duration: time.Hour} }, 60, "a 60"},
		{"its own, in a slice", func(_, a, _ *fleet.Tenant) { a.BorrowingLimit, a.Slices = limit(10), night }, 210, "a 210"},
		{"one above", func(company, _, _ *fleet.Tenant) { company.BorrowingLimit = limit(5) }, 105, "company 105"},
		{"one above that passes on slices", func(company, a, _ *fleet.Tenant) {
			company.Guarantee, company.BorrowingLimit, a.Slices = fleet.Resources{}, limit(0), night
		}, 250, "company 250"},
		{"what a neighbour keeps", func(company, _, b *fleet.Tenant) { company.BorrowingLimit, b.LendingLimit = limit(0), limit(20) }, 70, "company 100 30"},
		{"a neighbour that lends all", func(company, _, b *fleet.Tenant) { company.BorrowingLimit, b.LendingLimit = limit(0), limit(80) }, 100, "company 100"},
		{"what it keeps itself is its own", func(company, a, _ *fleet.Tenant) { company.BorrowingLimit, a.LendingLimit = limit(0), limit(0) }, 100, "company 100"},
	} {
		b := NewBounds(family(c.bend))
		if x := b.Refuse("a", cores(max(c.most, 0))); x != nil || c.most < 0 && b.Refuse("a", cores(1<<40)) != nil {
			t.Errorf("%s: %d refused: %+v", c.name, c.most, x)
		}
		if c.most < 0 {
			continue
		}
		x := b.Refuse("a", cores(c.most).Add(fleet.Resources{CPU: 1}))
		if x == nil {
			t.Errorf("%s: more than %d is not refused", c.name, c.most)
			continue
		}
		got := strings.TrimSpace(string(x.Tenant) + " " + strings.ReplaceAll(x.Most.String()+" "+x.Kept.String(), "cpu=", ""))
		if want := c.by; !strings.HasPrefix(got, want) {
			t.Errorf("%s: refused by %q, want %q", c.name, got, want)
		}
	}
	// By day the slice is shut.
	b := NewBounds(family(func(_, a, _ *fleet.Tenant) { a.BorrowingLimit, a.Slices = limit(0), night }))
	open := func(_ fleet.Window, at time.Time) bool { return at.After(now) }
	if b.At(now, open).Refuse("a", cores(200)) == nil || b.At(now.Add(time.Hour), open).Refuse("a", cores(200)) != nil || b.Refuse("a", cores(200)) != nil {
		t.Error("a slice counts when it is shut, or does not when it is open")
	}
	if x := b.Refuse("nobody", cores(1000)); x != nil {
		t.Errorf("who has no quota is refused: %+v", x)
	}
}

// Whatever a division lets a tenant use is within its bounds: what they refuse is never allowed.
func TestBoundsHoldAnyDivision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		class := fleet.ParcelClass{Kind: fleet.KindNode}
		for i := range in.Tenants {
			q := fleet.ParcelQuota{Class: class, Guarantee: rapid.Int64Range(0, 9).Draw(t, "parcels")}
			if rapid.Bool().Draw(t, "borrows parcels?") {
				q.BorrowingLimit = fleet.KnownAt(rapid.Int64Range(0, 9).Draw(t, "borrows parcels"), now)
			}
			if rapid.Bool().Draw(t, "lends parcels?") {
				q.LendingLimit = fleet.KnownAt(rapid.Int64Range(0, 9).Draw(t, "lends parcels"), now)
			}
			in.Tenants[i].Parcels = []fleet.ParcelQuota{q}
		}
		in.Parcels = []ParcelSupply{{Class: class, Firm: rapid.Int64Range(0, 60).Draw(t, "firm"), Lent: rapid.Int64Range(0, 60).Draw(t, "lent")}}
		ever, parcels := NewBounds(in.Tenants), NewParcelBounds(in.Tenants, class)
		then := ever.At(in.At, in.Open)
		d := Divide(in)
		for i := range d.Shares {
			s := &d.Shares[i]
			uses := s.Online.Min(s.Limit).Add(s.OfflineLimit)
			for _, b := range []*Bounds{ever, then} {
				if x := b.Refuse(s.Tenant, uses); x != nil {
					t.Fatalf("%s may use %v, which %+v refuses", s.Tenant, uses, x)
				}
			}
			if x := parcels.RefuseParcels(s.Tenant, s.Parcels[0].Limit); x != nil {
				t.Fatalf("%s may be on %d parcels, which %+v refuses", s.Tenant, s.Parcels[0].Limit, x)
			}
		}
	})
}
