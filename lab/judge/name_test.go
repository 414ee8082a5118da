package judge

import (
	"testing"
	"time"
)

// A name is not an identity: a pod that has the name of one that has just gone is judged by itself, and a request is taken for the pod that it may be about, if it is
// right for one of them.
func TestAPodOfTheSameName(t *testing.T) {
	for name, c := range map[string]struct {
		play   func(s *stage)
		object string // of a finding of rule eviction; empty for none
	}{
		"the one that went was evicted rightly, and its successor at home is too": {func(s *stage) {
			s.recalled()
			s.evict("w1", 201)
			s.pass(step)
			s.see(Gone{s.work("w1", "n2")})
			again := s.work("w1", "o1")
			again.UID = "uid-again"
			s.see(again)
			s.pass(step)
			s.evict("w1", 201)
			s.pass(step)
		}, "lab/w1"},
		"an online one of the name is evicted": {func(s *stage) {
			s.recalled()
			s.evict("w1", 201)
			s.pass(step)
			s.see(Gone{s.work("w1", "n2")})
			again := s.web("w1", "n1")
			again.UID, again.Ref = "uid-again", Ref{"lab", "w1"}
			s.see(again)
			s.pass(2 * step)
			s.evict("w1", 201)
			s.pass(step)
		}, "lab/w1"},
		"the one that went was never to be evicted, and its successor is": {func(s *stage) {
			old := s.work("w1", "o1")
			old.UID = "uid-old"
			s.see(old)
			s.lend()
			l := s.recall()
			s.pass(2 * time.Minute)
			s.see(Gone{old})
			s.drain(l)
			s.pass(step)
			s.evict("w1", 201)
			s.pass(step)
		}, ""},
		"it went and came within the step in which it was evicted": {func(s *stage) {
			s.recalled()
			s.pass(step)
			s.evict("w1", 201)
			s.see(Gone{s.work("w1", "n2")})
			again := s.work("w1", "o1")
			again.UID = "uid-again"
			s.see(again)
			s.pass(step)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.pass(time.Minute)
			c.play(s)
			found := false
			for _, f := range s.j.Report().Findings {
				t.Log(f)
				found = found || f.Rule == ruleEviction && f.Object == c.object
				if f.Rule == ruleEviction && c.object == "" {
					t.Error("that was right")
				}
			}
			if c.object != "" && !found {
				t.Error("it was not found")
			}
		})
	}
}

// A pod that is deleted went like one that is evicted: no notice and no budget stands before a delete.
func TestDeletesAreEvictions(t *testing.T) {
	for name, c := range map[string]struct {
		verb, resource, user string
		pod                  Ref
		code                 int
		found                bool
	}{
		"an online pod":              {"delete", "pods", controllers, Ref{"shop", "web-1"}, 200, true},
		"an offline pod on its loan": {"delete", "pods", controllers, Ref{"lab", "w1"}, 200, true},
		"all pods of a namespace":    {"deletecollection", "pods", controllers, Ref{"shop", ""}, 200, true},
		"refused":                    {"delete", "pods", controllers, Ref{"shop", "web-1"}, 403, false},
		"a filler":                   {"delete", "pods", controllers, Ref{"springtide-system", "filler"}, 200, false},
		"by its owner":               {"delete", "pods", "jane", Ref{"shop", "web-1"}, 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.lend()
			f := s.work("filler", "n1")
			f.Ref, f.Side, f.Filler = Ref{"springtide-system", "filler"}, Neither, true
			s.see(f)
			s.pass(step)
			s.see(Request{ID: "x", User: c.user, Verb: c.verb, Resource: c.resource, Ref: c.pod, Code: c.code})
			s.pass(step)
			if got := s.j.count[ruleEviction] > 0; got != c.found {
				t.Errorf("found: %v", s.j.Report().Findings)
			}
		})
	}
}

// The cells of a parcel are those of its loan.
func TestCellsOfAParcel(t *testing.T) {
	for name, c := range map[string]struct {
		cells []int
		again bool
		found bool
	}{
		"as lent": {[]int{2, 3}, false, false}, "in another order": {[]int{3, 2}, false, false},
		"one more": {[]int{1, 2, 3}, false, true}, "one less": {[]int{3}, false, true}, "others": {[]int{0, 1}, false, true}, "twice": {[]int{2, 3}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.lend()
			l := s.socketLoan()
			share := &Share{Node: "n2", NodeUID: "uid-n2", Parcels: []Parcel{s.socket("l1", "offline", "", c.cells...)}}
			if c.again {
				share.Parcels = append(share.Parcels, s.socket("l1", "offline", "", 0, 1))
			}
			s.see(share, l)
			s.pass(5 * time.Minute)
			if got := s.j.count[rulePair] > 0; got != c.found {
				t.Errorf("found: %v", s.j.Report().Findings)
			}
		})
	}
}
