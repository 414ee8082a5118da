package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/scripttest"
)

// TestScripts divides the resources of a tree. Amounts are cores, or cores/GiB, or cores/GiB/GPUs; times are from now on.
//
//	supply AMOUNT
//	tenant ID PARENT|- GUARANTEE [lends AMOUNT] [borrows AMOUNT] [burst PERCENT DURATION] [drain DURATION]
//	slice ID NAME IN DURATION AMOUNT    from IN on, for DURATION, it is guaranteed AMOUNT
//	was ID over|burst AGO               since when it is told to give back, or bursts
//	want ID NOW [AHEAD...]              of its services: now, and in the quarters of an hour from now on
//	uses ID ONLINE [OFFLINE]            what its pods request
//	offline ID NEED WISH
//	level PERCENT LOW HIGH
//	parcels CLASS FIRM LENT
//	holds ID CLASS GUARANTEE [lends N] [borrows N]
//	on ID CLASS N [MORE]                it is on so many parcels, and lacks so many more
//	beside CLASS N                      so often a tenant is on a parcel beside another
//	told ID AGO CLASS N USED            it was told to leave so many of those that it was on
func TestScripts(t *testing.T) {
	scripttest.Run(t, func(t *testing.T) scripttest.Script {
		s := &script{t: t, in: Input{At: now}, wants: map[string]*Want{}}
		return scripttest.Script{Line: s.do, Out: s.divide}
	})
}

// divide divides what the lines said.
func (s *script) divide() string {
	s.in.Open = func(w fleet.Window, at time.Time) bool {
		from := now.Add(time.Duration(w.Min) * time.Minute)
		return !at.Before(from) && at.Before(from.Add(w.Duration))
	}
	steps := 0
	for _, id := range slices.Sorted(maps.Keys(s.wants)) {
		s.in.Wants = append(s.in.Wants, *s.wants[id])
		steps = max(steps, len(s.wants[id].Ahead))
	}
	for k := range steps {
		s.in.Ahead = append(s.in.Ahead, now.Add(time.Duration(k)*15*time.Minute))
	}
	d := Divide(s.in)
	return s.print(&d)
}

type script struct {
	t     *testing.T
	in    Input
	wants map[string]*Want
}

func (s *script) do(f scripttest.Line) bool {
	switch f[0] {
	case "supply":
		s.in.Supply = fleet.KnownAt(s.amount(f[1]), now)
	case "tenant":
		x := tenant(f[1], strings.Trim(f[2], "-"), 0)
		x.Guarantee = s.amount(f[3])
		for i := 4; i+1 < len(f); i += 2 {
			switch f[i] {
			case "lends":
				x.LendingLimit = fleet.KnownAt(s.amount(f[i+1]), now)
			case "borrows":
				x.BorrowingLimit = fleet.KnownAt(s.amount(f[i+1]), now)
			case "burst":
				x.Burst = fleet.Burst{Percent: f.Int(i + 1), Duration: f.Duration(i + 2)}
				i++
			case "drain":
				x.Drain = f.Duration(i + 1)
			default:
				return false
			}
		}
		s.in.Tenants = append(s.in.Tenants, x)
	case "slice":
		x := s.tenant(f[1])
		w := fleet.Window{Name: f[2], Duration: f.Duration(4), Min: int32(f.Duration(3) / time.Minute)} // Min carries the start here
		x.Slices = append(x.Slices, fleet.Slice{Window: w, Guarantee: s.amount(f[5])})
	case "was":
		since := now.Add(-f.Duration(3))
		if x := s.tenant(f[1]); f[2] == "over" {
			x.OverSince, x.Notices = since, []fleet.QuotaNotice{{Since: since, Online: cores(1000), Offline: cores(1000)}}
		} else {
			x.BurstSince = since
		}
	case "want":
		w := s.want(f[1])
		w.Now = s.amount(f[2])
		for _, word := range f[3:] {
			w.Ahead = append(w.Ahead, s.amount(word))
		}
	case "uses":
		s.want(f[1]).Used = s.amount(f[2])
		if f.Has(3) {
			s.want(f[1]).Offline = s.amount(f[3])
		}
	case "offline":
		s.want(f[1]).OfflineNeed, s.want(f[1]).OfflineWish = s.amount(f[2]), s.amount(f[3])
	case "level":
		share := func(word string) float64 { return float64(scripttest.Int(word)) / 100 }
		s.in.Level = Level{Share: fleet.KnownAt(share(f[1]), now), Low: share(f[2]), High: share(f[3])}
	case "parcels":
		s.in.Parcels = append(s.in.Parcels, ParcelSupply{Class: class(f[1]), Firm: int64(f.Int(2)), Lent: int64(f.Int(3))})
	case "holds":
		q := fleet.ParcelQuota{Class: class(f[2]), Guarantee: int64(f.Int(3))}
		for i := 4; i+1 < len(f); i += 2 {
			if n := fleet.KnownAt(int64(f.Int(i+1)), now); f[i] == "lends" {
				q.LendingLimit = n
			} else {
				q.BorrowingLimit = n
			}
		}
		s.tenant(f[1]).Parcels = append(s.tenant(f[1]).Parcels, q)
	case "on":
		p := ParcelCount{Class: class(f[2]), N: int64(f.Int(3))}
		if f.Has(4) {
			p.More = int64(f.Int(4))
		}
		s.want(f[1]).Parcels = append(s.want(f[1]).Parcels, p)
		s.supply(f[2]).Held += p.N
	case "beside":
		p := s.supply(f[1])
		p.Beside = int64(f.Int(2))
		p.Held -= p.Beside
	case "told":
		x := s.tenant(f[1])
		x.OverSince = now.Add(-f.Duration(2))
		x.Notices = append(x.Notices, fleet.QuotaNotice{Since: x.OverSince,
			Parcels: []fleet.ParcelDebt{{Class: class(f[3]), N: int64(f.Int(4)), Used: int64(f.Int(5))}}})
	default:
		return false
	}
	return true
}

func (s *script) supply(word string) *ParcelSupply {
	for i := range s.in.Parcels {
		if s.in.Parcels[i].Class == class(word) {
			return &s.in.Parcels[i]
		}
	}
	s.t.Fatalf("no parcels %q", word)
	return nil
}

func class(word string) fleet.ParcelClass {
	kind, model, _ := strings.Cut(word, "/")
	return fleet.ParcelClass{Kind: fleet.ParcelKind(kind), GPUModel: model}
}

func (s *script) amount(word string) fleet.Resources {
	var n [3]int64
	for i, part := range strings.Split(word, "/") {
		n[i] = int64(scripttest.Int(part))
	}
	return fleet.Resources{CPU: fleet.MilliCPU(n[0] * 1000), Memory: fleet.Bytes(n[1]) * fleet.GiB, GPU: n[2]}
}

func (s *script) tenant(id string) *fleet.Tenant {
	for i := range s.in.Tenants {
		if s.in.Tenants[i].ID == fleet.TenantID(id) {
			return &s.in.Tenants[i]
		}
	}
	s.t.Fatalf("no tenant %q", id)
	return nil
}

func (s *script) want(id string) *Want {
	if s.wants[id] == nil {
		s.wants[id] = &Want{Tenant: fleet.TenantID(id)}
	}
	return s.wants[id]
}

// told renders a division: what each may use and why, what is due, what is short and what is oversold.
func (s *script) print(d *Division) string {
	var b strings.Builder
	for i := range d.Shares {
		x := &d.Shares[i]
		fmt.Fprintf(&b, "%s: limit %s", x.Tenant, x.Limit)
		if !x.OfflineLimit.IsZero() {
			fmt.Fprintf(&b, ", offline %s", x.OfflineLimit)
		}
		fmt.Fprintf(&b, "; %s\n", x.Why)
		if !x.Over().IsZero() {
			fmt.Fprintf(&b, "%s: over by %s online (%s owed) and %s offline, until %s from now\n", x.Tenant, x.OverOnline, x.Owed, x.OverOffline, x.Deadline.Sub(now))
		}
		for _, p := range x.Parcels {
			fmt.Fprintf(&b, "%s: has %d %s, may have %d, entitled to %d of %d\n", x.Tenant, p.Used, p.Class, p.Limit, p.Entitled, p.Guarantee)
			if p.Over > 0 {
				fmt.Fprintf(&b, "%s: over by %d %s (%d due), until %s from now\n", x.Tenant, p.Over, p.Class, p.Due, x.Deadline.Sub(now))
			}
		}
	}
	for _, x := range d.Short {
		until := "the end"
		if !x.Until.IsZero() {
			until = x.Until.Sub(now).String()
		}
		fmt.Fprintf(&b, "short: %s by %s in %s until %s%s; %s\n", x.Tenant, x.By, x.From.Sub(now), until, worst(x.From, x.Worst), x.Why)
	}
	for _, x := range d.Oversold {
		fmt.Fprintf(&b, "oversold: %s in %s, %s kept of %s%s; %s\n", x.Tenant, x.From.Sub(now), x.Kept, x.Promised, worst(x.From, x.Worst), x.Why)
	}
	return b.String()
}

func worst(from, worst time.Time) string {
	if worst.Equal(from) {
		return ""
	}
	return fmt.Sprintf(" (worst in %s)", worst.Sub(now))
}
