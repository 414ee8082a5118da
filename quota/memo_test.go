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

// A memo is asked again, and forgets when the ground moves or it has grown large.
func TestAMemoRemembersAndForgets(t *testing.T) {
	m, divided := &Memo{}, 0
	divide := func(d []demand) *round { divided++; return &round{demands: d} }
	here := ground{parents: []int{0}, amounts: []fleet.Resources{cores(4)}}
	m.on(here)
	ask := func(n int64) { m.round([]demand{{online: cores(n)}}, divide) }
	ask(1)
	ask(2)
	ask(1)
	m.on(ground{parents: []int{0}, amounts: []fleet.Resources{cores(4)}})
	if ask(1); divided != 2 {
		t.Errorf("divided %d times, want twice", divided)
	}
	m.on(ground{parents: []int{0}, amounts: []fleet.Resources{cores(5)}})
	if ask(1); divided != 3 {
		t.Errorf("divided %d times, want once more on another ground", divided)
	}
	m.held = memoMost + 1
	m.on(ground{parents: []int{0}, amounts: []fleet.Resources{cores(5)}})
	if len(m.rounds) != 0 || m.held != 0 {
		t.Errorf("%d demands are kept in %d rounds, want none", m.held, len(m.rounds))
	}
}
