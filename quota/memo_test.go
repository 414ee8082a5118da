package quota

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// Whatever changes between two divisions, wishes, tenants, their limits or the supply, a memo of the one never shows in the other.
func TestAMemoNeverShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memo := &Memo{}
		in := drawInput(t)
		for range 4 {
			switch other := drawInput(t); rapid.IntRange(0, 4).Draw(t, "change") {
			case 0:
				in = other
			case 1:
				in.Supply = other.Supply
			case 2:
				in.Wants = other.Wants
			case 3:
				i := rapid.IntRange(0, len(in.Tenants)-1).Draw(t, "whose")
				in.Tenants[i].BorrowingLimit = fleet.KnownAt(bundle(t, 50, "limit"), in.At)
			}
			in.Ahead = nil
			for k := range 12 {
				in.Ahead = append(in.Ahead, in.At.Add(time.Duration(k)*time.Hour))
			}
			for i := range in.Wants {
				in.Wants[i].Ahead = []fleet.Resources{{}, bundle(t, 60, "now"), bundle(t, 60, "soon")}
				in.Wants[i].Ahead = append(in.Wants[i].Ahead, in.Wants[i].Ahead[1:]...)
			}
			in.Memo = nil
			want := Divide(in)
			in.Memo = memo
			if got := Divide(in); !reflect.DeepEqual(got, want) {
				t.Fatalf("with a memo:\n%+v\nwithout:\n%+v", got, want)
			}
			if again := Divide(in); !reflect.DeepEqual(again, want) {
				t.Fatalf("once more with it:\n%+v\nwithout:\n%+v", again, want)
			}
		}
	})
}

// A memo is asked again on each ground that it knows, and forgets all of them when it has grown large.
func TestAMemoRemembersAndForgets(t *testing.T) {
	m, divided := &Memo{}, 0
	divide := func(d []demand) *round { divided++; return &round{demands: d} }
	ask := func(on, n int64) {
		m.on(ground{parents: []int{0}, amounts: []amount{amountOf(cores(on))}}).round([]demand{{online: amountOf(cores(n))}}, divide)
	}
	for _, c := range []struct {
		what             string
		ground, n        int64
		divided, grounds int
	}{
		{"the first", 4, 1, 1, 1},
		{"another demand", 4, 2, 2, 1},
		{"the first again", 4, 1, 2, 1},
		{"another ground", 5, 1, 3, 2},
		{"the first ground again", 4, 1, 3, 2},
	} {
		if ask(c.ground, c.n); divided != c.divided || len(m.grounds) != c.grounds {
			t.Errorf("%s: divided %d times on %d grounds, want %d on %d", c.what, divided, len(m.grounds), c.divided, c.grounds)
		}
	}
	m.held = memoMost + 1
	if ask(4, 1); len(m.grounds) != 1 || m.held != 1 {
		t.Errorf("%d grounds and %d demands are kept, want one of each", len(m.grounds), m.held)
	}
	for n := range int64(3 * mostGrounds) {
		if ask(10+n, 1); len(m.grounds) > mostGrounds {
			t.Fatalf("%d grounds are kept, want %d at most", len(m.grounds), mostGrounds)
		}
	}
}
