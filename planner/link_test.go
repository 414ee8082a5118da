package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

// chained is a fleet with a link group of services that run ten replicas each for 50 cores: 5.04 of them fit a replica.
func chained(names ...string) *world {
	w := newWorld(12)
	for i, n := range names {
		w.service(n, 10, 3*i, 3, 50)
		w.s.Services[len(w.s.Services)-1].LinkGroup = "checkout"
	}
	return w
}

// ratios states how each service follows the first.
func ratios(w *world, of map[string]float64) map[fleet.ServiceID]Link {
	out := map[fleet.ServiceID]Link{}
	for name, r := range of {
		out[fleet.ServiceID("shop/"+name)] = Link{Hub: w.s.Services[0].ID, Link: portrait.Link{Ratio: r, Fit: 1, Hours: 100}}
	}
	return out
}

func targetOf(p *Plan, name string) *hpa.Target {
	i := slices.IndexFunc(p.Targets, func(t hpa.Target) bool { return t.Service == fleet.ServiceID("shop/"+name) })
	return &p.Targets[i]
}

func TestLinkRaises(t *testing.T) {
	for _, c := range []struct {
		name  string
		links map[string]float64
		bend  func(w *world)
		want  map[string]int32
		why   string // in the reason of cart
	}{
		{"in step", map[string]float64{"front": 1, "cart": 1}, nil, map[string]int32{"front": 10, "cart": 10}, ""},
		{"front floods", map[string]float64{"front": 1, "cart": 1, "pay": 0.5}, func(w *world) { w.flat["shop/front"] = 100 },
			map[string]int32{"front": 20, "cart": 20, "pay": 10}, "link:checkout asks for 20 (shop/front demands 100, of which 100 comes here)"},
		{"by less than the tolerance", map[string]float64{"front": 1, "cart": 1}, func(w *world) { w.flat["shop/front"] = 54 }, map[string]int32{"front": 11, "cart": 10}, ""},
		{"a ratio that was refused", map[string]float64{"front": 1}, func(w *world) { w.flat["shop/front"] = 100 }, map[string]int32{"front": 20, "cart": 10}, ""},
		{"stated, which wins over learned", map[string]float64{"front": 1, "cart": 0.1}, func(w *world) {
			w.flat["shop/front"] = 100
			w.service1("front").LinkRatio, w.service1("cart").LinkRatio = 2, 3
		}, map[string]int32{"front": 20, "cart": 30}, "link:checkout"},
		{"stated and learned in one chain", map[string]float64{"front": 1, "pay": 0.6}, func(w *world) {
			w.flat["shop/front"] = 100
			w.service1("front").LinkRatio, w.service1("cart").LinkRatio = 2, 3
		}, map[string]int32{"front": 20, "cart": 30, "pay": 12}, "link:checkout"},
		{"a festival of front", map[string]float64{"front": 1, "cart": 1}, func(w *world) {
			w.s.Festivals = []fleet.Festival{{ID: "sale", Start: t0.Add(-time.Hour), End: t0.Add(time.Hour), Approved: true, Lifts: []fleet.Lift{{Service: "shop/front", Floor: 40}}}}
		}, map[string]int32{"front": 40, "cart": 40}, "link:checkout asks for 40"},
		{"a minimum of front says nothing of the load", map[string]float64{"front": 1, "cart": 1}, func(w *world) { w.service1("front").Min = 40 },
			map[string]int32{"front": 40, "cart": 10}, ""},
		{"up to the maximum", map[string]float64{"front": 1, "cart": 1}, func(w *world) {
			w.flat["shop/front"] = 100
			w.service1("cart").Max = 15
		}, map[string]int32{"front": 20, "cart": 15}, "cut to the maximum 15"},
		{"of other namespaces are other groups", map[string]float64{"front": 1, "cart": 1}, func(w *world) {
			w.flat["shop/front"] = 100
			w.service1("cart").LinkGroup = "mail"
		}, map[string]int32{"front": 20, "cart": 10}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := chained("front", "cart", "pay")
			if c.bend != nil {
				c.bend(w)
			}
			in := w.input()
			in.Links = ratios(w, c.links)
			plan := made(in)
			for name, want := range c.want {
				if got := targetOf(&plan, name); got.Replicas != want {
					t.Errorf("%s: %d replicas, want %d: %s", name, got.Replicas, want, got.Why())
				}
			}
			if got := targetOf(&plan, "cart").Why(); !strings.Contains(got.Text(), c.why) || c.why == "" &&
				strings.Contains(got.Text(), "link") {
				t.Errorf("%s; want …%s…", got, c.why)
			}
		})
	}
}

func (w *world) service1(name string) *fleet.Service {
	i := slices.IndexFunc(w.s.Services, func(s fleet.Service) bool { return s.ID == fleet.ServiceID("shop/"+name) })
	return &w.s.Services[i]
}

// Stated ratios are in replicas: a young service whose replicas' worth is not known yet is raised by them, and raises
// others.
func TestLinkOfAYoungService(t *testing.T) {
	for _, c := range []struct {
		name string
		bend func(w *world)
		want map[string]int32
		why  string // in the reason of who was raised
	}{
		{"is raised", func(w *world) { w.flat["shop/front"] = 100 }, map[string]int32{"front": 20, "cart": 30}, "shop/front demands 100, of which 29."},
		{"raises", func(w *world) {
			w.service1("cart").Windows = []fleet.Window{{Name: "now", Schedule: "0 22 * * *", Duration: time.Hour, Zone: time.UTC, Min: 46}}
		}, map[string]int32{"cart": 46, "front": 30}, "shop/cart demands 45 replicas, of which "},
		{"a minimum says nothing of its load", func(w *world) { w.service1("cart").Min = 46 }, map[string]int32{"cart": 46, "front": 10}, ""},
		{"is compared with nobody by its load", func(w *world) { w.flat["shop/pay"] = 100 }, map[string]int32{"cart": 15, "pay": 20, "front": 10}, "shop/front demands 50, of which 14.88 replicas comes here"},
	} {
		w := chained("front", "cart", "pay")
		w.service1("front").LinkRatio, w.service1("cart").LinkRatio = 2, 3
		c.bend(w)
		in := w.input()
		in.Links = ratios(w, map[string]float64{"cart": 5, "pay": 0.5}) // of loads: it says nothing of replicas
		p, tide := in.Portraits["shop/cart"], in.Tides["shop/cart"]
		p.Signal, tide.Signal = portrait.Requests, portrait.Requests
		in.Portraits["shop/cart"], in.Tides["shop/cart"] = p, tide
		plan := made(in)
		if got := targetOf(&plan, "cart").CapacityPerReplica; got != 0 {
			t.Fatalf("%s: a replica of cart is known to carry %v", c.name, got)
		}
		reasons := ""
		for name, want := range c.want {
			got := targetOf(&plan, name)
			reasons += got.Why().Text()
			if got.Replicas != want {
				t.Errorf("%s: %d replicas of %s, want %d: %s", c.name, got.Replicas, name, want, got.Why())
			}
		}
		if !strings.Contains(reasons, c.why) || c.why == "" && strings.Contains(reasons, "link:") {
			t.Errorf("%s: %s; want …%s…", c.name, reasons, c.why)
		}
	}
}

// The day ahead follows too, so that room for it is not lent: a flood of front in six hours is one of cart.
func TestLinkAhead(t *testing.T) {
	w := chained("front", "cart")
	in := w.input()
	in.Links = ratios(w, map[string]float64{"front": 1, "cart": 1})
	tide := in.Tides["shop/front"]
	for q := range tide.Paths {
		for i := 72; i < 84; i++ {
			tide.Paths[q][i] = 100
		}
	}
	plan := made(in)
	front, cart := targetOf(&plan, "front"), targetOf(&plan, "cart")
	if cart.Replicas != 10 || slices.Max(front.Ahead) != 20 || slices.Max(cart.Ahead) != 19 {
		t.Errorf("cart has %d now and at most %d ahead, front %d ahead", cart.Replicas, slices.Max(cart.Ahead), slices.Max(front.Ahead))
	}
	// A bound of its own is no flood.
	w = chained("front", "cart")
	w.service1("front").Min = 40
	in = w.input()
	in.Links = ratios(w, map[string]float64{"front": 1, "cart": 1})
	plan = made(in)
	if cart := targetOf(&plan, "cart"); slices.Max(cart.Ahead) != 10 {
		t.Errorf("the minimum of front asks for %d of cart ahead", slices.Max(cart.Ahead))
	}
	// A chain that idles now may have a flood ahead all the same.
	w = chained("front", "cart")
	w.flat["shop/front"], w.flat["shop/cart"] = 0, 0
	w.rises = []rise{{"shop/front", 6 * time.Hour, 100}}
	in = w.input()
	in.Links = ratios(w, map[string]float64{"front": 1, "cart": 1})
	plan = made(in)
	if cart := targetOf(&plan, "cart"); slices.Max(cart.Ahead) != 19 {
		t.Errorf("of a chain that idles, the flood of front asks for %d of cart ahead", slices.Max(cart.Ahead))
	}
}

// The week of quotas' warnings follows too: beyond the day members repeat what they ask for by themselves, and plans
// raise the chain where they are.
func TestLinkOfNextWeek(t *testing.T) {
	sale := func(w *world, in, length time.Duration) {
		w.s.Festivals = []fleet.Festival{{ID: "sale", Start: t0.Add(in), End: t0.Add(in + length), Approved: true, Lifts: []fleet.Lift{{Service: "shop/front", Factor: 2}}}}
	}
	window := func(schedule string, least int32) []fleet.Window {
		return []fleet.Window{{Name: "w", Schedule: schedule, Duration: 2 * time.Hour, Zone: time.UTC, Min: least}}
	}
	for _, c := range []struct {
		name      string
		guarantee int64 // of 160 cores that both ask for; front in flood asks for 80 more, and cart follows with 72 or 80
		bend      func(w *world)
		want      string
	}{
		{"a festival within the day is not one of each day", 200, func(w *world) { sale(w, 12*time.Hour, 2*time.Hour) }, "12h+2h cpu=112; "},
		{"a festival on day 4", 250, func(w *world) { sale(w, 90*time.Hour, 2*time.Hour) }, "90h+2h cpu=62; "},
		{"a festival of half an hour on day 4", 250, func(w *world) { sale(w, 90*time.Hour+15*time.Minute, 30*time.Minute) }, "90h+1h cpu=62; "},
		{"up to the maximum", 250, func(w *world) {
			sale(w, 90*time.Hour, 2*time.Hour)
			w.service1("cart").Max = 15
		}, "90h+2h cpu=30; "},
		{"a window of each day", 250, func(w *world) { w.service1("front").Windows = window("0 10 * * *", 20) },
			"12h+2h cpu=62; 36h+2h cpu=62; 60h+2h cpu=62; 84h+2h cpu=62; 108h+2h cpu=62; 132h+2h cpu=62; 156h+2h cpu=62; "},
		{"a window on Friday", 250, func(w *world) { w.service1("front").Windows = window("0 10 * * 5", 20) }, "84h+2h cpu=62; "},
		{"who follows has a plan of its own", 250, func(w *world) {
			sale(w, 90*time.Hour, 2*time.Hour)
			w.service1("cart").Windows = window("0 10 * * 6", 12)
		}, "90h+2h cpu=62; "},
		{"within the tolerance", 160, func(w *world) { w.service1("front").Windows = window("0 10 * * 5", 12) }, "84h+2h cpu=16; "},
		{"a minimum of front says nothing of the load", 260, func(w *world) {
			w.service1("front").Min = 20
			w.service1("cart").Windows = window("0 10 * * 6", 12)
		}, ""},
		{"a flood of the tide is one of each day", 250, func(w *world) {
			w.rises = []rise{{"shop/front", 12 * time.Hour, 100}, {"shop/front", 14 * time.Hour, 50}}
		}, "12h+2h cpu=62; 36h+2h cpu=62; 60h+2h cpu=62; 84h+2h cpu=62; 108h+2h cpu=62; 132h+2h cpu=62; 156h+2h cpu=62; "},
		{"and stays one beside a plan", 250, func(w *world) {
			w.rises = []rise{{"shop/front", 12 * time.Hour, 100}, {"shop/front", 14 * time.Hour, 50}}
			w.service1("cart").Windows = window("0 20 * * 5", 12)
		}, "12h+2h cpu=62; 36h+2h cpu=62; 60h+2h cpu=62; 84h+2h cpu=62; 108h+2h cpu=62; 132h+2h cpu=62; 156h+2h cpu=62; "},
		{"by stated ratios", 250, func(w *world) {
			sale(w, 90*time.Hour, 2*time.Hour)
			w.service1("front").LinkRatio, w.service1("cart").LinkRatio = 2, 3
		}, "90h+2h cpu=142; "},
		{"of another group", 250, func(w *world) {
			sale(w, 90*time.Hour, 2*time.Hour)
			w.service1("cart").LinkGroup = "mail"
		}, ""},
	} {
		w := chained("front", "cart")
		w.tenant("shop", "shop", c.guarantee).BorrowingLimit = fleet.KnownAt(cpu(0), t0)
		c.bend(w)
		in := w.input()
		in.Links = ratios(w, map[string]float64{"front": 1, "cart": 1})
		got := ""
		for _, x := range made(in).Division.Short {
			got += fmt.Sprintf("%gh+%gh cpu=%g; ", x.From.Sub(t0).Hours(), x.Until.Sub(x.From).Hours(), x.By.CPU.Cores())
		}
		if got != c.want {
			t.Errorf("%s: short %q, want %q", c.name, got, c.want)
		}
	}
}

func TestBottleneck(t *testing.T) {
	for _, c := range []struct {
		name string
		bend func(w *world)
		want fleet.ServiceID
		why  string
	}{
		{"none", func(*world) {}, "", ""},
		{"a maximum", func(w *world) { w.service1("cart").Max = 15 }, "shop/cart", "max replicas leaves it 15 of the 20 replicas that the chain asks of it"},
		{"its own", func(w *world) { w.service1("front").Max = 12 }, "shop/front", "max replicas leaves it 12"},
		{"the tighter one", func(w *world) { w.service1("cart").Max, w.service1("pay").Max = 15, 11 }, "shop/pay", ""},
		{"a quota", func(w *world) { w.tenant("shop", "shop", 352).BorrowingLimit = fleet.KnownAt(cpu(0), t0) }, "shop/pay", "quota leaves it 14"},
	} {
		w := chained("front", "cart", "pay")
		w.flat["shop/front"] = 100
		c.bend(w)
		in := w.input()
		in.Links = ratios(w, map[string]float64{"front": 1, "cart": 1, "pay": 1})
		plan := made(in)
		if len(plan.Links) != 1 {
			t.Fatalf("%s: %+v", c.name, plan.Links)
		}
		if v := plan.Links[0]; v.Group != "shop/checkout" || v.Bottleneck != c.want ||
			!strings.Contains(v.Why.Text(), c.why) {
			t.Errorf("%s: %+v, want %s: %s", c.name, v, c.want, c.why)
		}
	}
}

// The hub is the member that others follow, and the status of one that goes its own way says so.
func TestLearnLinks(t *testing.T) {
	w := chained("alone", "cart", "front", "pay")
	in := w.input()
	tide := func(scale, phase float64) series.Series {
		s := series.New(t0.Add(-7*24*time.Hour), 5*time.Minute, 7*288)
		for i := range s.Values {
			s.Values[i] = scale * (1.2 + math.Sin(2*math.Pi*float64(i)/288+phase))
		}
		return s
	}
	for name, s := range map[string]series.Series{"alone": tide(10, 2), "cart": tide(50, 0), "front": tide(100, 0), "pay": tide(20, 0)} {
		p := in.Portraits[fleet.ServiceID("shop/"+name)]
		p.Recent = s
		in.Portraits[fleet.ServiceID("shop/"+name)] = p
	}
	got := LearnLinks(&w.s, in.Portraits)
	for name, want := range map[string]float64{"cart": 1, "front": 2, "pay": 0.4} {
		if l := got[fleet.ServiceID("shop/"+name)]; l.Hub != "shop/cart" || l.Refused != "" || math.Abs(l.Ratio/want-1) > 1e-6 {
			t.Errorf("%s: %+v, want %v of cart", name, l, want)
		}
	}
	if l := got["shop/alone"]; l.Refused == "" {
		t.Errorf("a service that goes its own way is linked: %+v", l)
	}
	w.service1("cart").LinkGroup, w.service1("front").LinkGroup, w.service1("pay").LinkGroup = "", "", ""
	if got := LearnLinks(&w.s, in.Portraits); len(got) != 0 {
		t.Errorf("one member is no group: %+v", got)
	}
}

// A link never lowers a target, never breaks a bound, and a member that it raises raises no other in turn.
func TestPropertyLinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "members")
		var names []string
		weights := map[string]float64{}
		for i := range n {
			name := fmt.Sprintf("s%d", i)
			names = append(names, name)
			if rapid.IntRange(0, 3).Draw(t, "known") > 0 {
				weights[name] = rapid.Float64Range(0.05, 20).Draw(t, "weight")
			}
		}
		build := func() *world {
			return chained(names...)
		}
		loads := make([]float64, n)
		for i := range loads {
			loads[i] = rapid.Float64Range(1, 200).Draw(t, "load")
		}
		top := rapid.Int32Range(5, 60).Draw(t, "max")
		run := func(links bool) Plan {
			w := build()
			for i, name := range names {
				w.flat[fleet.ServiceID("shop/"+name)] = loads[i]
				w.service1(name).Max = top
			}
			in := w.input()
			if links {
				in.Links = ratios(w, weights)
			}
			return made(in)
		}
		with, without := run(true), run(false)
		for _, name := range names {
			a, b := targetOf(&with, name), targetOf(&without, name)
			if a.Replicas < b.Replicas || a.Replicas > max(top, b.Replicas) {
				t.Fatalf("%s: %d replicas with the link and %d without: %s", name, a.Replicas, b.Replicas, a.Why())
			}
			if a.Demand != b.Demand {
				t.Fatalf("%s: what others are to expect changed from %v to %v by the link", name, b.Demand, a.Demand)
			}
			for k := range a.Ahead {
				if a.Ahead[k] < b.Ahead[k] || a.Ahead[k] > max(top, b.Ahead[k]) {
					t.Fatalf("%s: %d replicas ahead with the link and %d without", name, a.Ahead[k], b.Ahead[k])
				}
			}
		}
	})
}

// A festival lift raises a chain by the same amount on whichever day of the week it is, and on no other.
func TestPropertyLinksOfNextWeek(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"s0", "s1", "s2"}
		weights, loads, most := map[string]float64{}, map[string]float64{}, map[string]int32{}
		for _, name := range names {
			weights[name] = rapid.Float64Range(0.2, 5).Draw(t, "weight")
			loads[name] = rapid.Float64Range(1, 200).Draw(t, "load")
			most[name] = rapid.Int32Range(5, 90).Draw(t, "max")
		}
		hour, length := rapid.IntRange(0, 20).Draw(t, "hour"), rapid.IntRange(1, 3).Draw(t, "hours")
		day := rapid.IntRange(1, 6).Draw(t, "day")
		factor := rapid.Float64Range(1, 4).Draw(t, "factor")
		// ahead is what is asked for in each hour of the week with the lift on some day.
		ahead := func(day int) []fleet.Resources {
			w := chained(names...)
			for _, name := range names {
				w.flat[fleet.ServiceID("shop/"+name)] = loads[name]
				w.service1(name).Max = most[name]
			}
			start := t0.Add(time.Duration(24*day+hour) * time.Hour)
			w.s.Festivals = []fleet.Festival{{ID: "sale", Start: start, End: start.Add(time.Duration(length) * time.Hour), Approved: true,
				Lifts: []fleet.Lift{{Service: "shop/s0", Factor: factor}}}}
			w.tenant("shop", "shop", 100)
			in := w.input()
			in.Links = ratios(w, weights)
			m := newMaker(&in)
			m.size()
			tenants := m.tenants
			var out []fleet.Resources
			for k, r := range tenants.input.Wants[0].Ahead {
				if tenants.input.Ahead[k].Sub(t0)%time.Hour == 0 {
					out = append(out, r)
				}
			}
			return out
		}
		near, far := ahead(0), ahead(day)
		if len(far) != 7*24 {
			t.Fatalf("%d hours", len(far))
		}
		for h, r := range far {
			like := near[(hour+length)%24] // an hour without the lift
			if h >= 24*day+hour && h < 24*day+hour+length {
				like = near[hour]
			}
			if r != like || h >= 24 && near[h] != near[(hour+length)%24] {
				t.Fatalf("hour %d of a lift in hour %d: %s, want %s; with the lift of today %s", h, 24*day+hour, r, like, near[h])
			}
		}
	})
}
