package hostlists

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
)

// A member of a script is "host" with marks: ! not ready, > leaving, +n restarts, ~x another pod. Hosts come in the
// order of their names.
func scriptMembers(text string) []ringMember {
	var out []ringMember
	for w := range strings.FieldsSeq(text) {
		m := ringMember{host: w[:1], name: w[:1], id: fleet.UID(w[:1]), ready: true,
			created: kubetest.Now.Add(time.Duration(w[0]) * time.Second)}
		for rest := w[1:]; rest != ""; {
			switch rest[0] {
			case '!':
				m.ready = false
			case '>':
				m.leaving = true
			case '~':
				m.id, rest = fleet.UID(rest[:2]), rest[1:]
			case '+':
				m.restarts, rest = int32(rest[1]-'0'), rest[1:]
			}
			rest = rest[1:]
		}
		out = append(out, m)
	}
	return out
}

// TestRing: a cool-down of one minute, seen once a minute; steps are "members => listed".
func TestRing(t *testing.T) {
	for _, c := range []struct {
		name  string
		floor int
		steps []string
	}{
		{"those who are ready are listed, in the order in which they came", 0, []string{"b a c! => a b", "c a b => a b c"}},
		{"a pod with a notice goes off the list while it still works", 0, []string{"a b c => a b c", "a b> c => a c",
			"a b>! c => a c", "a c => a c", "a b~1 c => a b c"}},
		{"a container that ended costs a minute", 0, []string{"a b => a b", "a b+1 => a", "a b+1 => a b"}},
		{"a member that is ready no more as well, once", 0, []string{"a b => a b", "a b! => a", "a b+1 => a b",
			"a b+1 => a b"}},
		{"twice as long each time", 0, []string{"a b => a b", "a b+1 => a", "a b+1 => a b", "a b+2 => a", "a b+2 => a",
			"a b+2 => a b",
			"a b+3 => a", "a b+3 => a", "a b+3 => a", "a b+3 => a", "a b+3 => a b"}},
		{"another pod in its place, when it had no notice", 0, []string{"a b => a b", "a b~1 => a", "a b~1 => a b"}},
		{"scaled in and out again is no failure", 0, []string{"a b => a b", "a => a", "a b~1 => a b"}},
		{"told to go, and another is there already", 0, []string{"a b => a b", "a b> => a", "a b~1 => a b"}},
		{"scaled in after a failure, and out again", 0, []string{"a b => a b", "a b+1 => a", "a => a", "a b~1 => a b"}},
		{"one that never was ready is no failure when it is made again", 0, []string{"a b! => a", "a b!~1 => a",
			"a b~1 => a b"}},
		{"not below the minimum: who rests shortest", 2, []string{"a b c => a b c", "a b+1 c => a c", "a b+1 c+1 => a b",
			"a b+2 c+1 => a c"}},
		{"a minimum without pods", 3, []string{"a b! => a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRing(nil)
			for i, s := range c.steps {
				members, want, _ := strings.Cut(s, " => ")
				got := r.list(kubetest.Now.Add(time.Duration(i)*time.Minute), time.Minute, c.floor, scriptMembers(members))
				if g := strings.Join(got, " "); g != want {
					t.Errorf("step %d, %s: listed %q", i, s, g)
				}
			}
		})
	}
}

func TestRingForgets(t *testing.T) {
	r := newRing(&v1alpha1.HostListStatus{LeftOut: []v1alpha1.LeftOutHost{{Host: "b",
		Until: metav1.NewTime(kubetest.Now.Add(time.Minute)), Failures: 9}}})
	if got := r.list(kubetest.Now, time.Minute, 0, scriptMembers("a b")); !slices.Equal(got, []string{"a"}) {
		t.Errorf("a new leader lists %v", got)
	}
	r.list(kubetest.Now.Add(time.Minute), time.Minute, 0, scriptMembers("a b"))
	r.list(kubetest.Now.Add(2*time.Minute), time.Minute, 0, scriptMembers("a b+1"))
	if out := r.leftOut(kubetest.Now.Add(2 * time.Minute)); len(out) != 1 ||
		!out[0].Until.Equal(&metav1.Time{Time: kubetest.Now.Add(18 * time.Minute)}) || out[0].Failures != 10 {
		t.Errorf("left out %+v: sixteen cool-downs are the most", out)
	}
	r.list(kubetest.Now.Add(40*time.Minute), time.Minute, 0, scriptMembers("a b+1"))
	r.list(kubetest.Now.Add(41*time.Minute), time.Minute, 0, scriptMembers("a b+2"))
	if out := r.leftOut(kubetest.Now.Add(41 * time.Minute)); len(out) != 1 || out[0].Failures != 1 {
		t.Errorf("left out %+v: after long calm a failure is a first one", out)
	}
	r.list(kubetest.Now.Add(80*time.Minute), time.Minute, 0, nil)
	if len(r.hosts) != 0 {
		t.Errorf("%d hosts are kept without a pod", len(r.hosts))
	}
}

// TestRingProperties: whatever happens, no member is listed that leaves or is not ready, none twice, and never fewer
// than the minimum while enough are there.
func TestRingProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, now := newRing(nil), kubetest.Now
		floor := rapid.IntRange(0, 4).Draw(t, "floor")
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "seconds")) * time.Second)
			var members []ringMember
			able := map[string]bool{}
			for h := range 6 {
				if rapid.Bool().Draw(t, "there") {
					m := ringMember{host: fmt.Sprint(h), name: fmt.Sprint(h), id: fleet.UID(fmt.Sprint(h,
						rapid.IntRange(0, 1).Draw(t, "id"))),
						restarts: int32(rapid.IntRange(0, 3).Draw(t, "restarts")), ready: rapid.Bool().Draw(t,
							"ready"), leaving: rapid.Bool().Draw(t, "leaving")}
					members = append(members, m)
					if m.ready && !m.leaving {
						able[m.host] = true
					}
				}
			}
			got := r.list(now, time.Minute, floor, members)
			listed := map[string]bool{}
			for _, h := range got {
				if !able[h] || listed[h] {
					t.Fatalf("%s is listed in %v, of %v", h, got, slices.Sorted(maps.Keys(able)))
				}
				listed[h] = true
			}
			if len(got) < min(floor, len(able)) {
				t.Fatalf("%v are listed, of %v with a minimum of %d", got, slices.Sorted(maps.Keys(able)), floor)
			}
			for _, x := range r.leftOut(now) {
				if rest := x.Until.Sub(now); rest > maxCooldowns*time.Minute {
					t.Fatalf("%s rests for %s", x.Host, rest)
				}
			}
		}
	})
}

// TestNoticed: a notice that was taken back is none.
func TestNoticed(t *testing.T) {
	for _, c := range []struct {
		phase string
		epoch int64
		want  bool
	}{{"Noticed", 3, true}, {"Draining", 3, true}, {"Noticed", 4, false}, {"Lent", 3, false}} {
		s := &fleet.Snapshot{Loans: []fleet.Loan{{ID: "l", Phase: fleet.Phase(c.phase), Epoch: c.epoch}}}
		s.Sort()
		if got := noticed(s, &fleet.Pod{NoticeLoan: "l", NoticeEpoch: 3}); got != c.want {
			t.Errorf("%s of epoch %d: %t", c.phase, c.epoch, got)
		}
	}
	if noticed(&fleet.Snapshot{}, &fleet.Pod{}) {
		t.Error("a pod without a notice")
	}
}
