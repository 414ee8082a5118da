package judge

import (
	"testing"
	"time"
)

// relist is what the judge's eyes bring after a gap: all objects of all kinds, as they are now. Kinds come in any order; loans come first here, whose rules
// ask the others.
func (s *stage) relist(loans, pods, shares, deployments, nodes []any) {
	s.see(Whole{&Loan{}, loans}, Whole{&Pod{}, pods}, Whole{&Share{}, shares}, Whole{&Deployment{}, deployments}, Whole{&Node{}, nodes})
}

// dark has the API server away for a while: the watches are cut.
func (s *stage) dark(d time.Duration, down ...string) {
	s.look.Blind, s.look.Down = true, down
	s.pass(d)
}

// light ends a gap. The judge sees a new list before the first step in the light.
func (s *stage) light() {
	s.look.Blind, s.look.Down = false, nil
	s.pass(step)
}

func (s *stage) deployment(uid string, replicas int) *Deployment {
	return &Deployment{Ref: Ref{"shop", "web"}, UID: uid, Replicas: replicas}
}

// TestWhatWasNotSeenIsNoBreach plays what may happen while the judge's watches are cut, each allowed and each looking like a breach in its last state.
func TestWhatWasNotSeenIsNoBreach(t *testing.T) {
	for name, play := range map[string]func(s *stage){
		"a loan came home and was forgotten": func(s *stage) {
			l := s.recall()
			s.pass(2 * time.Minute)
			s.drain(l)
			s.pass(step)
			s.dark(3*time.Minute, "apiserver")
			s.relist(nil, s.webs(), []any{&Share{Node: "n2", NodeUID: "uid-n2"}}, []any{s.deployment("d", 2)}, []any{s.node("n1"), s.node("n2"), s.offlineNode("o1")})
			s.light()
		},
		"a notice was given in full, and is half over": func(s *stage) {
			s.dark(3*time.Minute, "etcd")
			l := s.loan("Noticed")
			l.Deadline = s.now.Add(time.Minute)
			s.relist([]any{l}, append(s.webs(), s.work("w1", "n2").noticed(Notice{"l1", 2, l.Deadline})), []any{s.share("offline", "online", 2)}, []any{s.deployment("d", 2)},
				[]any{s.node("n1"), s.closed("n2"), s.offlineNode("o1")})
			s.light()
		},
		"a notice was shortened for pods that wait no longer": func(s *stage) {
			l := *s.recall()
			s.dark(time.Minute)
			l.Deadline = s.now.Add(15 * time.Second)
			s.relist([]any{&l}, append(s.webs(), s.work("w1", "n2").noticed(Notice{"l1", 2, l.Deadline})), []any{s.share("offline", "online", 2)}, []any{s.deployment("d", 2)},
				[]any{s.node("n1"), s.closed("n2"), s.offlineNode("o1")})
			s.light()
		},
		"a machine went, and its loan ended by that": func(s *stage) {
			s.dark(3 * time.Minute)
			s.relist([]any{s.loan("Returned").via("Emptying", "Lent", "Returned")}, s.webs(), nil, []any{s.deployment("d", 2)}, []any{s.node("n1"), s.offlineNode("o1")})
			s.light()
		},
		"a machine is back under its name, and its loan ended by that": func(s *stage) {
			s.dark(3 * time.Minute)
			again := s.node("n2")
			again.UID = "uid-n2-again"
			s.relist([]any{s.loan("Returned").via("Emptying", "Lent", "Returned")}, s.webs(), nil, []any{s.deployment("d", 2)}, []any{s.node("n1"), again, s.offlineNode("o1")})
			s.light()
		},
		"a Deployment was made again with fewer replicas": func(s *stage) {
			s.see(s.deployment("d", 3))
			s.look.Source = false
			s.pass(10 * time.Minute)
			s.dark(time.Minute)
			s.relist([]any{s.loan("Lent")}, append(s.webs(), s.work("w1", "n2")), []any{s.share("offline", "", 1)}, []any{s.deployment("d-again", 2)},
				[]any{s.node("n1"), s.lentNode("n2"), s.offlineNode("o1")})
			s.light()
		},
		"a scale-in before the source went": func(s *stage) {
			s.see(s.deployment("d", 3))
			s.pass(step)
			s.look.Source = false
			s.dark(10*time.Minute, "apiserver", "prometheus")
			s.relist([]any{s.loan("Lent")}, append(s.webs(), s.work("w1", "n2")), []any{s.share("offline", "", 1)}, []any{s.deployment("d", 2)},
				[]any{s.node("n1"), s.lentNode("n2"), s.offlineNode("o1")})
			s.look.Source = true
			s.light()
		},
		"a pod of the same name was noticed, evicted and made again": func(s *stage) {
			l := *s.recall()
			s.dark(3 * time.Minute)
			s.evict("w1", 201)
			l.Phase, l.History = "Draining", []string{"Emptying", "Lent", "Noticed", "Draining"}
			again := s.work("w1", "o1")
			again.UID = "uid-w1-again"
			s.relist([]any{&l}, append(s.webs(), again), []any{s.share("offline", "online", 2)}, []any{s.deployment("d", 2)}, []any{s.node("n1"), s.closed("n2"), s.offlineNode("o1")})
			s.light()
		},
		"requests were refused for as long": func(s *stage) {
			s.look.Down = []string{"etcd"}
			s.during(10*time.Minute, func() {
				s.request("patch", "deployments/scale", Ref{"shop", "web"}, 500)
				s.evict("w1", 500)
			})
			s.evict("w1", 500)
			s.evict("w1", 500)
			s.light()
			s.pass(2 * time.Minute)
		},
		"a pod acknowledged, was evicted and went, and its loan ended": func(s *stage) {
			s.dark(3 * time.Minute)
			s.evict("w1", 201)
			s.relist([]any{s.loan("Returned")}, s.webs(), []any{s.share("online", "", 2)}, []any{s.deployment("d", 2)}, []any{s.node("n1"), s.node("n2"), s.offlineNode("o1")})
			s.light()
		},
		"a notice was given in a hurry": func(s *stage) {
			s.dark(time.Minute)
			l := s.loan("Noticed")
			l.Deadline = s.now.Add(20 * time.Second)
			s.relist([]any{l}, append(s.webs(), s.work("w1", "n2").noticed(Notice{"l1", 2, l.Deadline})), []any{s.share("offline", "online", 2)}, []any{s.deployment("d", 2)},
				[]any{s.node("n1"), s.closed("n2"), s.offlineNode("o1")})
			s.light()
		},
		"a deadline that a controller moved that is a step behind": func(s *stage) {
			l := *s.recall()
			s.see(s.web("web-3", ""))
			s.look.Down = []string{"prometheus"}
			s.pass(time.Minute)
			s.see(s.web("web-3", "n1"))
			l.Deadline = s.now.Add(leastNotice - 5*time.Second)
			s.see(&l)
			s.light()
		},
		"a notice of a controller that is a step behind, just after the outage": func(s *stage) {
			s.look.Down = []string{"prometheus"}
			s.pass(10 * time.Minute)
			s.light()
			l := s.loan("Noticed")
			l.Deadline = s.now.Add(2*time.Minute - step)
			s.see(l, s.share("offline", "online", 2), s.closed("n2"), s.work("w1", "n2").noticed(Notice{"l1", 2, l.Deadline}))
			s.pass(step)
		},
		"no controller could renew its lease": func(s *stage) {
			s.look.Down, s.look.Leader = []string{"etcd"}, false
			s.pass(10 * time.Minute)
			s.look.Leader = true
			s.light()
		},
		"a notice of a controller that is a step behind": func(s *stage) {
			s.look.Down = []string{"prometheus"}
			s.pass(10 * time.Minute)
			l := s.loan("Noticed")
			l.Deadline = s.now.Add(2*time.Minute - step)
			n := s.closed("n2")
			s.see(l, s.share("offline", "online", 2), n, s.work("w1", "n2").noticed(Notice{"l1", 2, l.Deadline}))
			s.light()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.see(s.deployment("d", 2))
			s.pass(time.Minute)
			s.lend()
			play(s)
			for _, f := range s.j.Report().Findings {
				t.Error(f)
			}
			if r := s.j.Report(); r.JudgedHours <= 0 || r.Steps < 5 {
				t.Errorf("%.2f hours in %d steps were judged", r.JudgedHours, r.Steps)
			}
		})
	}
}

// TestFaultsOfAGapAreFound plays faults that stand after a gap, or that nothing which was not seen could excuse.
func TestFaultsOfAGapAreFound(t *testing.T) {
	for _, f := range []planted{
		{rulePair, "a loan was deleted, and its share stands", func(s *stage) {
			s.dark(3*time.Minute, "apiserver")
			s.relist(nil, append(s.webs(), s.work("w1", "n2")), []any{s.share("offline", "", 1)}, []any{s.deployment("d", 2)}, []any{s.node("n1"), s.lentNode("n2"), s.offlineNode("o1")})
			s.light()
			s.pass(4 * time.Minute)
		}, "nodeshare n2"},
		{rulePhase, "a loan was written to Returned, and its machine stood all the time", func(s *stage) {
			s.dark(3*time.Minute, "etcd")
			s.relist([]any{s.loan("Returned").via("Emptying", "Lent", "Returned")}, s.webs(), []any{s.share("online", "", 1)}, []any{s.deployment("d", 2)},
				[]any{s.node("n1"), s.node("n2"), s.offlineNode("o1")})
			s.light()
		}, "l1"},
		{ruleNotice, "a deadline that is over by the time of the last look", func(s *stage) {
			l := s.loan("Noticed")
			l.Deadline = s.now.Add(10 * time.Second)
			s.dark(time.Minute)
			s.relist([]any{l}, append(s.webs(), s.work("w1", "n2")), []any{s.share("offline", "online", 2)}, []any{s.deployment("d", 2)}, []any{s.node("n1"), s.closed("n2"), s.offlineNode("o1")})
			s.light()
		}, "l1"},
		{ruleSource, "a scale-in after the source went", func(s *stage) {
			s.see(s.deployment("d", 3))
			s.look.Source = false
			s.pass(10 * time.Minute)
			s.dark(time.Minute, "apiserver", "prometheus")
			s.relist([]any{s.loan("Lent")}, append(s.webs(), s.work("w1", "n2")), []any{s.share("offline", "", 1)}, []any{s.deployment("d", 2)},
				[]any{s.node("n1"), s.lentNode("n2"), s.offlineNode("o1")})
			s.light()
		}, "shop/web"},
		{ruleStuck, "no controller leads after the outage", func(s *stage) {
			s.look.Leader = false
			s.dark(3*time.Minute, "apiserver")
			s.light()
			s.pass(time.Minute)
		}, "controller"},
		{ruleEviction, "an eviction after the outage, before its time", func(s *stage) {
			s.dark(3*time.Minute, "apiserver")
			s.relist([]any{s.loan("Lent")}, append(s.webs(), s.work("w1", "n2")), []any{s.share("offline", "", 1)}, []any{s.deployment("d", 2)},
				[]any{s.node("n1"), s.lentNode("n2"), s.offlineNode("o1")})
			s.light()
			s.evict("w1", 201)
			s.pass(step)
		}, "lab/w1"},
		{ruleReported, "refusals after the outage that are not reported", func(s *stage) {
			s.look.Down = []string{"etcd"}
			s.pass(5 * time.Minute)
			s.light()
			s.during(5*time.Minute, func() { s.request("patch", "deployments/scale", Ref{"shop", "web"}, 422) })
		}, "shop/web"},
	} {
		t.Run(f.rule+"/"+f.name, func(t *testing.T) {
			s := newStage(t)
			s.see(s.deployment("d", 2))
			s.pass(time.Minute)
			s.lend()
			f.play(s)
			s.finds(f)
		})
	}
}

// webs are the pods of the stage's service.
func (s *stage) webs() []any { return []any{s.web("web-1", "n1"), s.web("web-2", "n1")} }

// closed is a lent machine that is on its way home.
func (s *stage) closed(name string) *Node {
	n := s.lentNode(name)
	delete(n.Labels, "springtide.dev/offline")
	return n
}
