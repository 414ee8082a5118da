package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func item(k string, priority int32, tenant string, class Class, age int) Item {
	return Item{Key: Key(k), Priority: priority, Tenant: tenant, Class: class, Since: start.Add(-time.Duration(age) * time.Second)}
}

func popAll(q *Queue, now time.Time) []Key {
	var out []Key
	for {
		i, ok := q.Pop(now)
		if !ok {
			return out
		}
		out = append(out, i.Key)
	}
}

func TestOrder(t *testing.T) {
	q := New(Backoff{First: time.Second, Most: 8 * time.Second})
	q.SetShare("rich", 0.5)
	q.SetShare("poor", 0.1)
	q.Add(item("young", 0, "", 1, 1))
	q.Add(item("old", 0, "", 1, 9))
	q.Add(item("of the rich", 5, "rich", 1, 9))
	q.Add(item("of the poor", 5, "poor", 1, 1))
	q.Add(item("urgent", 10, "rich", 1, 0))
	want := []Key{"urgent", "of the poor", "of the rich", "old", "young"}
	if got := popAll(q, start); !slices.Equal(got, want) {
		t.Errorf("popped %q, want %q", got, want)
	}
}

// TestSharesAlternate: two tenants that ask for the same again and again get turns, since each turn raises the share.
func TestSharesAlternate(t *testing.T) {
	q := New(Backoff{})
	for i := range 4 {
		q.Add(item(fmt.Sprint("a", i), 0, "a", 1, 100-i))
		q.Add(item(fmt.Sprint("b", i), 0, "b", 1, 10-i))
	}
	shares := map[string]float64{}
	var got []Key
	for {
		i, ok := q.Pop(start)
		if !ok {
			break
		}
		q.Remove(i.Key)
		got = append(got, i.Key)
		shares[i.Tenant] += 0.1
		q.SetShare(i.Tenant, shares[i.Tenant])
	}
	if want := []Key{"a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"}; !slices.Equal(got, want) {
		t.Errorf("popped %q, want %q", got, want)
	}
}

func TestBackoffDoublesUpToMost(t *testing.T) {
	q := New(Backoff{First: time.Second, Most: 5 * time.Second})
	q.Add(item("a", 0, "", 1, 0))
	now := start
	for _, want := range []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		if _, ok := q.Pop(now); !ok {
			t.Fatal("nothing is ready")
		}
		q.Retry("a", now)
		until, ok := q.Next()
		if !ok || until.Sub(now) != want {
			t.Fatalf("backs off for %v, want %v", until.Sub(now), want)
		}
		if _, ok := q.Pop(until.Add(-1)); ok {
			t.Fatal("popped before the back-off was over")
		}
		now = until
	}
}

func TestWakeIsByClass(t *testing.T) {
	q := New(Backoff{First: time.Second, Most: time.Second})
	for _, i := range []Item{item("a", 0, "", 1, 3), item("b", 0, "", 2, 2), item("c", 0, "", 1, 1)} {
		q.Add(i)
	}
	for _, k := range popAll(q, start) {
		q.Park(k, q.entries[k].item.Class)
	}
	if got := q.Parked(); !slices.Equal(got, []Class{1, 2}) {
		t.Fatalf("classes %v are parked", got)
	}
	if n := q.Wake(2); n != 1 {
		t.Errorf("woke %d, want 1", n)
	}
	if got := popAll(q, start); !slices.Equal(got, []Key{"b"}) {
		t.Errorf("popped %q", got)
	}
	if n := q.WakeLater(1, start); n != 2 {
		t.Errorf("woke %d, want 2", n)
	}
	if got := popAll(q, start); got != nil {
		t.Errorf("popped %q before the back-off was over", got)
	}
	if got := popAll(q, start.Add(time.Second)); !slices.Equal(got, []Key{"a", "c"}) {
		t.Errorf("popped %q", got)
	}
}

// TestEarly: what an event woke is taken before its back-off is over, the one that is due first. A failed pod waits for
// its time.
func TestEarly(t *testing.T) {
	q := New(Backoff{First: time.Minute, Most: time.Hour})
	for _, i := range []Item{item("failed", 0, "", 1, 3), item("late", 0, "", 2, 2), item("soon", 0, "", 3, 1)} {
		q.Add(i)
	}
	for _, k := range popAll(q, start) {
		if k == "failed" {
			q.Retry(k, start)
			continue
		}
		q.Park(k, q.entries[k].item.Class)
	}
	q.WakeLater(2, start.Add(time.Second))
	q.WakeLater(3, start)
	for _, want := range []Key{"soon", "late"} {
		if i, ok := q.Early(); !ok || i.Key != want {
			t.Errorf("took %q, want %q", i.Key, want)
		}
	}
	if i, ok := q.Early(); ok {
		t.Errorf("took %q, which failed", i.Key)
	}
	if next, ok := q.Next(); !ok || !next.Equal(start.Add(time.Minute)) {
		t.Errorf("the next back-off ends at %s", next)
	}
	if got := popAll(q, start.Add(time.Minute)); !slices.Equal(got, []Key{"failed"}) {
		t.Errorf("popped %q", got)
	}
}

// TestWakeIf: what is asked for each item comes in the order of the queue, and wakes those alone for which it says yes.
func TestWakeIf(t *testing.T) {
	q := New(Backoff{})
	for _, i := range []Item{item("young", 0, "", 1, 1), item("old", 0, "", 2, 9), item("urgent", 5, "", 3, 0), item("other", 9, "", 4, 0)} {
		q.Add(i)
	}
	for _, k := range popAll(q, start) {
		on := Class(-7)
		if k == "other" {
			on = -8
		}
		q.Park(k, on)
	}
	var asked []Key
	q.WakeIf(-7, func(i Item) bool { asked = append(asked, i.Key); return i.Key != "old" })
	if want := []Key{"urgent", "old", "young"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
	if got, want := popAll(q, start), []Key{"urgent", "young"}; !slices.Equal(got, want) {
		t.Errorf("popped %q, want %q", got, want)
	}
	if got := q.Parked(); !slices.Equal(got, []Class{-8, -7}) {
		t.Errorf("classes %v are parked", got)
	}
}

func TestChangedItemIsReadyAgain(t *testing.T) {
	q := New(Backoff{})
	q.Add(item("a", 0, "", 1, 0))
	popAll(q, start)
	q.Park("a", 1)
	q.Add(item("a", 0, "", 1, 0))
	if got := popAll(q, start); got != nil {
		t.Errorf("an item that did not change was popped: %q", got)
	}
	q.Add(item("a", 0, "", 2, 0))
	if got := popAll(q, start); !slices.Equal(got, []Key{"a"}) {
		t.Errorf("popped %q", got)
	}
	if len(q.Parked()) != 0 {
		t.Errorf("classes %v are parked", q.Parked())
	}
}

// TestNothingIsLost: whatever happens, each item is in exactly one place, and what is popped is the first of what was ready.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		q, now := New(Backoff{First: time.Second, Most: 4 * time.Second}), start
		there, taken := map[Key]bool{}, map[Key]Item{}
		key := rapid.Custom(func(r *rapid.T) Key { return Key(rapid.StringMatching(`[a-f]`).Draw(r, "key")) })
		r.Repeat(map[string]func(*rapid.T){
			"add": func(r *rapid.T) {
				k := key.Draw(r, "key")
				q.Add(item(string(k), rapid.Int32Range(0, 2).Draw(r, "priority"), rapid.SampledFrom([]string{"", "x", "y"}).Draw(r, "tenant"),
					Class(rapid.Int32Range(0, 2).Draw(r, "class")), rapid.IntRange(0, 3).Draw(r, "age")))
				there[k] = true
			},
			"remove": func(r *rapid.T) {
				k := key.Draw(r, "key")
				q.Remove(k)
				delete(there, k)
				delete(taken, k)
			},
			"pop": func(r *rapid.T) {
				i, ok := q.Pop(now)
				if !ok {
					return
				}
				if _, twice := taken[i.Key]; twice {
					r.Fatalf("%q was popped twice", i.Key)
				}
				if !there[i.Key] {
					r.Fatalf("%q was popped after it was removed", i.Key)
				}
				taken[i.Key] = i
			},
			"park": func(r *rapid.T) {
				k := key.Draw(r, "key")
				q.Park(k, Class(rapid.Int32Range(0, 2).Draw(r, "on")))
				delete(taken, k)
			},
			"retry": func(r *rapid.T) { k := key.Draw(r, "key"); q.Retry(k, now); delete(taken, k) },
			"early": func(r *rapid.T) {
				if i, ok := q.Early(); ok {
					taken[i.Key] = i
				}
			},
			"share": func(r *rapid.T) { q.SetShare("x", rapid.Float64Range(0, 1).Draw(r, "share")) },
			"wakeIf": func(r *rapid.T) {
				odd := rapid.Bool().Draw(r, "odd")
				q.WakeIf(Class(rapid.Int32Range(0, 2).Draw(r, "class")), func(i Item) bool { return odd == (i.Key[0]%2 == 1) })
			},
			"wake":  func(r *rapid.T) { q.Wake(Class(rapid.Int32Range(0, 2).Draw(r, "class"))) },
			"later": func(r *rapid.T) { q.WakeLater(Class(rapid.Int32Range(0, 2).Draw(r, "class")), now) },
			"time":  func(*rapid.T) { now = now.Add(700 * time.Millisecond) },
			"": func(r *rapid.T) {
				var counted [states]int
				for _, e := range q.entries {
					counted[e.state]++
				}
				ready, off, parked := q.Count()
				if counted[isReady] != ready || counted[isBackingOff] != off || counted[isParked] != parked {
					r.Fatalf("counts %d, %d and %d, and there are %v", ready, off, parked, counted)
				}
				if len(q.entries) != len(there) || ready+off+parked+len(taken) != len(there) {
					r.Fatalf("%d items: %d ready, %d backing off, %d parked, %d taken", len(there), ready, off, parked, len(taken))
				}
			},
		})
		for k := range taken {
			q.Retry(k, now)
		}
		for _, c := range q.Parked() {
			q.Wake(c)
		}
		if got := popAll(q, now.Add(time.Hour)); len(got) != len(there) {
			r.Fatalf("%d of %d items can be popped in the end", len(got), len(there))
		}
	})
}
