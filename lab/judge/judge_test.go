package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	controllers = "system:serviceaccount:springtide-system:springtide-controller"
	step        = 15 * time.Second
)

var dawn = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// stage is a small cluster on which everything is well: two machines of online, one of offline, one service of two replicas.
type stage struct {
	t     *testing.T
	j     *Judge
	now   time.Time
	needs float64
	look  Look
	ids   int
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, j: New(Options{Controller: controllers, Ours: []string{controllers}}), now: dawn, needs: 1.5, look: Look{Source: true, Leader: true}}
	matches := func(pool string) func(map[string]string) bool {
		return func(labels map[string]string) bool { return labels["pool"] == pool }
	}
	s.see(
		&Pool{Name: "online", Side: Online, Notice: 2 * time.Minute, Matches: matches("online")},
		&Pool{Name: "offline", Side: Offline, Notice: 2 * time.Minute, Matches: matches("offline")},
		s.node("n1"), s.node("n2"), s.offlineNode("o1"),
		&Service{Ref: Ref{"shop", "web"}, Target: Ref{"shop", "web"}, Acts: true, Max: 10, Desired: 2},
		&Deployment{Ref: Ref{"shop", "web"}, Replicas: 2},
		&Lease{Holder: "a", Transitions: 1},
		s.web("web-1", "n1"), s.web("web-2", "n1"),
	)
	for _, n := range []string{"n1", "n2", "o1"} {
		s.see(&Topology{n, 4})
	}
	return s
}

func (s *stage) see(facts ...any) {
	for _, f := range facts {
		s.j.See(f)
	}
}

// pass lets time pass.
func (s *stage) pass(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(step)
		s.look.At, s.look.Services = s.now, []TrueService{{"shop", "web", s.needs}}
		s.j.Step(&s.look)
	}
}

// during lets time pass and says at each step what is so.
func (s *stage) during(d time.Duration, each func()) {
	for end := s.now.Add(d); s.now.Before(end); {
		each()
		s.pass(step)
	}
}

func (s *stage) node(name string) *Node {
	return &Node{Name: name, UID: "uid-" + name, Labels: map[string]string{"pool": "online"}, Ready: true, Room: Amount{"cpu": 64000, "memory": 256 << 30, "pods": 250}}
}

func (s *stage) offlineNode(name string) *Node {
	n := s.node(name)
	n.Labels = map[string]string{"pool": "offline", "springtide.dev/offline": "true", "springtide.dev/home": "offline"}
	n.HolderTaint = true
	return n
}

// lentNode is a machine of online with the marks of one that is lent.
func (s *stage) lentNode(name string) *Node {
	n := s.node(name)
	n.Labels["springtide.dev/offline"] = "true"
	n.HolderTaint = true
	return n
}

func (s *stage) web(name, node string) *Pod {
	return &Pod{Ref: Ref{"shop", name}, UID: "uid-" + name, Node: node, Side: Online, Owner: Ref{"shop", "web"}, Request: Amount{"cpu": 8000, "memory": 24 << 30, "pods": 1}, Ready: node != ""}
}

// fill has something of neither side take what machine n1 has left.
func (s *stage) fill() {
	full := s.work("x", "n1")
	full.Side, full.Request = Neither, Amount{"cpu": 48000, "pods": 1}
	s.see(full)
}

// socket is some cells of a machine in one hand.
func (s *stage) socket(loan, holder, next string, cells ...int) Parcel {
	return Parcel{Cells: cells, Holder: holder, Next: next, LoanName: loan, LoanUID: "uid-" + loan, Epoch: 1}
}

// socketLoan is the loan of the second socket of machine n2, which is lent; the loan of the first socket has ended.
func (s *stage) socketLoan() *Loan {
	s.see(&Loan{Name: "k1", UID: "uid-k1", Node: "n2", NodeUID: "uid-n2", From: "online", To: "offline", Cells: []int{0, 1}, Phase: "Returned", Epoch: 1})
	l := s.loan("Lent")
	l.Cells = []int{2, 3}
	return l
}

// replicas has the service run with so many ready pods.
func (s *stage) replicas(n int) {
	d := s.j.deployments[Ref{"shop", "web"}].Replicas
	s.see(&Deployment{Ref: Ref{"shop", "web"}, Replicas: n})
	for i := d; i < n; i++ {
		s.see(s.web(fmt.Sprintf("web-%d", i+1), "n1"))
	}
}

func (s *stage) work(name, node string) *Pod {
	return &Pod{Ref: Ref{"lab", name}, UID: "uid-" + name, Node: node, Side: Offline, Owner: Ref{"lab", "train"}, Request: Amount{"cpu": 8000, "pods": 1}, Ready: true}
}

// loan is a loan of machine n2 in a phase, whose history is the usual way there.
func (s *stage) loan(phase string) *Loan {
	l := &Loan{Name: "l1", UID: "uid-l1", Node: "n2", NodeUID: "uid-n2", From: "online", To: "offline", Cells: []int{0, 1, 2, 3}, Phase: phase, Epoch: 1}
	for _, p := range []string{"Emptying", "Lent", "Noticed", "Draining", "Returned"} {
		l.History = append(l.History, p)
		if p == phase {
			break
		}
	}
	if slices.Contains([]string{"Noticed", "Draining", "Fenced", "Returned"}, phase) {
		l.Epoch, l.Deadline = 2, s.now.Add(2*time.Minute)
	}
	return l
}

func (s *stage) share(holder, next string, epoch int64) *Share {
	return &Share{Node: "n2", NodeUID: "uid-n2", Parcels: []Parcel{{Cells: []int{0, 1, 2, 3}, Holder: holder, Next: next, LoanName: "l1", LoanUID: "uid-l1", Epoch: epoch}}}
}

// byCells lets the bundled scheduler serve the pool of the services.
func (s *stage) byCells() {
	p := *s.j.pools["online"]
	p.ByCells = true
	s.see(&p)
}

// lend lends machine n2, and an offline pod runs on it.
func (s *stage) lend() {
	s.see(s.loan("Emptying"), s.share("online", "offline", 1))
	tainted := s.node("n2")
	tainted.HolderTaint = true
	s.see(tainted)
	s.pass(time.Minute)
	s.see(s.share("offline", "", 1), s.loan("Lent"), s.lentNode("n2"))
	s.pass(step)
	s.see(s.work("w1", "n2"))
	s.pass(time.Minute)
}

// recall gives notice of the loan, and returns it.
func (s *stage) recall() *Loan {
	l := s.loan("Noticed")
	s.see(s.share("offline", "online", 2), l)
	n := s.lentNode("n2")
	delete(n.Labels, "springtide.dev/offline")
	s.see(n)
	w := s.work("w1", "n2")
	w.Notice = Notice{"l1", 2, l.Deadline}
	s.see(w)
	s.pass(step)
	return l
}

// drain begins the evictions of a loan that was recalled.
func (s *stage) drain(l *Loan) {
	d := s.loan("Draining")
	d.Deadline = l.Deadline
	s.see(d)
}

// recalled plays a loan up to the end of its notice.
func (s *stage) recalled() *Loan {
	s.lend()
	l := s.recall()
	s.pass(2 * time.Minute)
	s.drain(l)
	return l
}

func (s *stage) request(verb, resource string, ref Ref, code int) {
	s.ids++
	s.see(Request{ID: fmt.Sprint(s.ids), User: controllers, Verb: verb, Resource: resource, Ref: ref, Code: code, Text: "the API server's answer"})
}

func (s *stage) evict(pod string, code int) {
	s.request("create", "pods/eviction", Ref{"lab", pod}, code)
}

// home brings the machine of a drained loan home and forgets the loan.
func (s *stage) home() {
	s.see(Gone{s.work("w1", "n2")}, s.share("online", "", 2), s.loan("Returned"), s.node("n2"))
	s.pass(step)
	s.see(&Share{Node: "n2", NodeUID: "uid-n2"}, Gone{s.loan("Returned")})
	s.pass(step)
}

// broken are the rules that were found broken.
func (s *stage) broken() []string {
	var out []string
	r := s.j.Report()
	for i := range r.Rules {
		if r.Rules[i].Findings > 0 {
			out = append(out, r.Rules[i].Rule)
		}
	}
	return out
}

// TestAGoodDayHasNoFindings plays what must not be found: the way of a loan there and back, a crowd, an outage, a machine that dies.
func TestAGoodDayHasNoFindings(t *testing.T) {
	for name, play := range map[string]func(s *stage){
		"a loan goes and comes home at its deadline": func(s *stage) {
			s.recalled()
			s.evict("w1", 201)
			s.pass(step)
			s.home()
			s.pass(30 * time.Minute)
		},
		"a loan whose share was refused goes again, without an effect": func(s *stage) {
			l := s.loan("").via()
			s.see(l)
			s.see(Gone{l})
			s.pass(30 * time.Minute)
		},
		"an acknowledged notice is over at once": func(s *stage) {
			s.lend()
			l := s.recall()
			w := s.work("w1", "n2")
			w.Notice, w.Acked = Notice{"l1", 2, l.Deadline}, 2
			s.see(w)
			s.drain(l)
			s.evict("w1", 201)
			s.pass(step)
			s.home()
			s.pass(30 * time.Minute)
		},
		"a notice is short while pods wait": func(s *stage) {
			s.lend()
			s.see(s.web("web-3", ""))
			s.pass(step)
			l := s.loan("Noticed")
			l.Deadline = s.now.Add(30 * time.Second)
			s.see(s.share("offline", "online", 2), l)
			s.see(s.web("web-3", "n1"))
			s.pass(time.Minute)
		},
		"a load leaps and the service follows within five minutes": func(s *stage) {
			s.pass(10 * time.Minute)
			s.needs = 4
			s.pass(4 * time.Minute)
			s.see(&Deployment{Ref: Ref{"shop", "web"}, Replicas: 4}, s.web("web-3", "n1"), s.web("web-4", "n1"))
			s.pass(10 * time.Minute)
		},
		"a load doubles every quarter of an hour and the service follows four minutes later": func(s *stage) {
			var past []float64
			s.during(time.Hour, func() {
				s.needs *= math.Pow(2, float64(step)/float64(15*time.Minute))
				if past = append(past, s.needs); len(past) > 16 {
					s.replicas(int(math.Ceil(past[len(past)-17])))
				}
			})
		},
		"a load that doubled in an outage is followed after it": func(s *stage) {
			s.look.Down = []string{"apiserver"}
			s.pass(10 * time.Minute)
			s.needs = 3
			s.pass(10 * time.Minute)
			s.look.Down = nil
			s.pass(4 * time.Minute)
			s.replicas(3)
			s.pass(10 * time.Minute)
		},
		"a pod waits, and sockets that were never lent stay shut next to the one that is": func(s *stage) {
			s.fill()
			s.lend()
			s.see(&Share{Node: "n2", NodeUID: "uid-n2", Parcels: []Parcel{s.socket("l1", "offline", "", 2, 3)}}, s.socketLoan(), s.web("web-3", ""))
			s.pass(10 * time.Minute)
		},
		"a pod waits that the socket that came home does not hold": func(s *stage) {
			s.fill()
			s.lend()
			big := s.web("web-3", "")
			big.Request = Amount{"cpu": 33000, "pods": 1}
			s.see(&Share{Node: "n2", NodeUID: "uid-n2", Parcels: []Parcel{s.socket("k1", "online", "", 0, 1), s.socket("l1", "offline", "", 2, 3)}}, s.socketLoan(), big)
			s.pass(10 * time.Minute)
		},
		"a pod waits, and the socket that came home is full of online pods": func(s *stage) {
			s.fill()
			s.lend()
			s.see(&Share{Node: "n2", NodeUID: "uid-n2", Parcels: []Parcel{s.socket("k1", "online", "", 0, 1), s.socket("l1", "offline", "", 2, 3)}}, s.socketLoan())
			for _, name := range []string{"web-4", "web-5", "web-6", "web-7"} {
				s.see(s.web(name, "n2"))
			}
			s.see(s.web("web-3", ""))
			s.pass(10 * time.Minute)
		},
		"a pod waits next to a machine whose loan begins, and stands in no share yet": func(s *stage) {
			s.fill()
			s.see(s.loan("Emptying"), s.web("web-3", ""))
			s.pass(10 * time.Minute)
		},
		"a source is back, and a loan begins and a service is scaled in before the next step": func(s *stage) {
			s.see(&Deployment{Ref: Ref{"shop", "web"}, Replicas: 3})
			s.look.Source = false
			s.pass(10 * time.Minute)
			s.see(s.loan("Emptying"), s.share("online", "offline", 1), &Deployment{Ref: Ref{"shop", "web"}, Replicas: 2})
			s.look.Source = true
			s.pass(time.Minute)
		},
		"what waits during an outage is nobody's fault": func(s *stage) {
			s.look.Down = []string{"apiserver"}
			s.see(s.web("web-3", ""))
			s.pass(20 * time.Minute)
			s.look.Down = nil
			s.see(s.web("web-3", "n1"))
			s.pass(time.Minute)
		},
		"a machine goes, and its loan": func(s *stage) {
			s.lend()
			s.see(Gone{s.lentNode("n2")}, Gone{s.work("w1", "n2")}, s.loan("Returned"), Gone{&Share{Node: "n2"}})
			s.pass(step)
			s.see(Gone{s.loan("Returned")})
			s.pass(10 * time.Minute)
		},
		"a status that is older than the scale-in": func(s *stage) {
			s.see(&Deployment{Ref: Ref{"shop", "web"}, Replicas: 3})
			s.see(&Service{Ref: Ref{"shop", "web"}, Target: Ref{"shop", "web"}, Acts: true, Max: 10, Desired: 3})
			s.pass(time.Minute)
			s.see(&Deployment{Ref: Ref{"shop", "web"}, Replicas: 2})
			s.pass(10 * time.Minute)
		},
		"a loan that takes long in each phase": func(s *stage) {
			s.see(s.loan("Emptying"), s.share("online", "offline", 1))
			s.pass(time.Hour)
			s.see(s.loan("Emptying").as("Cancelled"), &Share{Node: "n2", NodeUID: "uid-n2"})
			s.pass(14 * time.Minute)
		},
		"a loan that was lost is made again, by notice": func(s *stage) {
			s.see(s.share("offline", "", 1), s.lentNode("n2"), s.work("w1", "n2"))
			s.pass(time.Minute)
			l := s.loan("").via()
			l.UID, l.Name = "uid-l2", "l2"
			s.see(l)
			l = s.loan("Noticed").via("Noticed")
			l.UID, l.Name = "uid-l2", "l2"
			sh := s.share("offline", "online", 2)
			sh.Parcels[0].LoanUID, sh.Parcels[0].LoanName = "uid-l2", "l2"
			s.see(sh, l)
			s.pass(time.Minute)
		},
		"a service at its maximum is its owner's": func(s *stage) {
			s.see(&Service{Ref: Ref{"shop", "web"}, Target: Ref{"shop", "web"}, Acts: true, Max: 2, Desired: 2})
			s.pass(10 * time.Minute)
			s.needs = 2.3
			s.pass(10 * time.Minute)
		},
		"a refusal that the loan names": func(s *stage) {
			l := s.recalled()
			d := s.loan("Draining")
			d.Deadline, d.Conditions = l.Deadline, []Condition{{"Forced", "True", "BudgetRefused", "PodDisruptionBudget lab/pdb refuses the eviction of lab/w1"}}
			s.see(d)
			s.during(4*time.Minute, func() { s.evict("w1", 429) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.pass(time.Minute)
			play(s)
			for _, f := range s.j.Report().Findings {
				t.Error(f)
			}
		})
	}
}

// planted is one fault, and the rule that has to find it.
type planted struct {
	rule, name string
	play       func(s *stage)
	object     string // part of the finding's object
}

var faults = []planted{
	{rulePhase, "a hand writes Lent to Returned", func(s *stage) {
		s.lend()
		s.see(s.loan("Returned").via("Emptying", "Lent", "Returned"), s.share("online", "", 1), s.node("n2"), Gone{s.work("w1", "n2")})
		s.pass(step)
	}, "l1"},
	{rulePhase, "a loan leaps into Draining", func(s *stage) {
		s.lend()
		l := s.loan("Draining").via("Emptying", "Lent", "Draining")
		l.Deadline = s.now
		s.see(l, s.share("offline", "online", 2))
		s.pass(step)
	}, "l1"},
	{rulePhase, "a leap that nobody watched stands in the history", func(s *stage) {
		s.lend()
		s.see(Whole{&Loan{}, []any{s.loan("Draining").via("Emptying", "Lent", "Fenced", "Draining")}}, s.share("offline", "online", 2))
		s.pass(step)
	}, "l1"},
	{rulePhase, "a loan is deleted while it is lent", func(s *stage) {
		s.lend()
		s.see(Gone{s.loan("Lent")})
		s.pass(step)
	}, "l1"},
	{rulePhase, "a loan without a phase is deleted, and its machine is on its way", func(s *stage) {
		l := s.loan("").via()
		s.see(l, s.share("online", "offline", 1))
		s.see(Gone{l})
		s.pass(step)
	}, "l1"},
	{rulePhase, "a loan begins Noticed, and nobody uses its parcel", func(s *stage) {
		s.see(s.loan("").via(), s.share("online", "", 1))
		s.see(s.loan("Noticed").via("Noticed"))
		s.pass(step)
	}, "l1"},
	{rulePhase, "an epoch falls", func(s *stage) {
		s.lend()
		l := s.loan("Lent")
		l.Epoch = 0
		s.see(l)
		s.pass(step)
	}, "l1"},

	{ruleNotice, "half of the notice", func(s *stage) {
		s.lend()
		l := s.loan("Noticed")
		l.Deadline = s.now.Add(time.Minute)
		s.see(l, s.share("offline", "online", 2))
		s.pass(step)
	}, "l1"},
	{ruleNotice, "a notice of ten seconds while pods wait", func(s *stage) {
		s.lend()
		s.see(s.web("web-3", ""))
		s.pass(step)
		s.see(s.web("web-3", "n1"))
		l := s.loan("Noticed")
		l.Deadline = s.now.Add(10 * time.Second)
		s.see(l, s.share("offline", "online", 2))
		s.pass(step)
	}, "l1"},
	{ruleNotice, "a deadline that moves for no reason", func(s *stage) {
		s.lend()
		s.pass(5 * time.Minute)
		l := *s.recall()
		l.Deadline = l.Deadline.Add(-time.Minute)
		s.see(&l)
		s.pass(step)
	}, "l1"},
	{ruleNotice, "a drain before the deadline without an answer", func(s *stage) {
		s.lend()
		s.drain(s.recall())
		s.pass(step)
	}, "l1"},

	{ruleEviction, "an online pod is evicted", func(s *stage) {
		s.request("create", "pods/eviction", Ref{"shop", "web-1"}, 201)
		s.pass(step)
	}, "shop/web-1"},
	{ruleEviction, "a pod is evicted while its machine is lent", func(s *stage) {
		s.lend()
		s.evict("w1", 201)
		s.pass(step)
	}, "lab/w1"},
	{ruleEviction, "a pod is evicted before its deadline", func(s *stage) {
		s.lend()
		s.recall()
		s.evict("w1", 201)
		s.see(Gone{s.work("w1", "n2").noticed(Notice{"l1", 2, s.now.Add(time.Minute)})})
		s.pass(step)
	}, "lab/w1"},
	{ruleEviction, "a pod is evicted from offline's own machine without a loan", func(s *stage) {
		s.see(s.work("w2", "o1"))
		s.evict("w2", 200)
		s.pass(step)
	}, "lab/w2"},

	{ruleCell, "two parcels of a share", func(s *stage) {
		s.lend()
		sh := s.share("offline", "", 1)
		sh.Parcels = append(sh.Parcels, Parcel{Cells: []int{3}, Holder: "online", LoanName: "l1", LoanUID: "uid-l1", Epoch: 1})
		s.see(sh)
		s.pass(2 * step)
	}, "n2"},
	{ruleCell, "two loans", func(s *stage) {
		s.lend()
		l := s.loan("Emptying")
		l.Name, l.UID, l.Cells = "l2", "uid-l2", []int{2, 3}
		s.see(l)
		s.pass(time.Minute)
	}, "n2"},
	{ruleCell, "pods of both sides", func(s *stage) {
		s.lend()
		a, b := s.work("w1", "n2"), s.web("web-2", "n2")
		a.Cells, b.Cells = []int{0, 1}, []int{1}
		s.see(a, b)
		s.pass(time.Minute)
	}, "n2"},

	{ruleSide, "an offline pod on a machine that is home", func(s *stage) {
		s.see(s.work("w9", "n1"))
		s.pass(time.Minute)
	}, "lab/w9"},
	{ruleSide, "an offline pod stays after the return", func(s *stage) {
		s.recalled()
		s.pass(step)
		s.see(s.share("online", "", 2), s.loan("Returned"), s.node("n2"))
		s.pass(time.Minute)
	}, "lab/w1"},
	{ruleSide, "an online pod on a lent machine", func(s *stage) {
		s.lend()
		s.see(s.web("web-2", "n2"))
		s.pass(time.Minute)
	}, "shop/web-2"},
	{ruleSide, "an offline pod on cells that online keeps", func(s *stage) {
		s.lend()
		sh := s.share("offline", "", 1)
		sh.Parcels[0].Cells = []int{2, 3}
		w := s.work("w1", "n2")
		w.Cells = []int{0}
		s.see(sh, w)
		s.pass(time.Minute)
	}, "lab/w1"},

	{rulePair, "a share without its loan", func(s *stage) {
		s.see(s.share("offline", "", 1), s.lentNode("n2"))
		s.pass(4 * time.Minute)
	}, "n2"},
	{rulePair, "a loan without its share", func(s *stage) {
		s.lend()
		s.see(Gone{&Share{Node: "n2"}}, Gone{s.work("w1", "n2")})
		s.pass(4 * time.Minute)
	}, "loan l1"},
	{rulePair, "a loan that ended while the share is lent", func(s *stage) {
		s.lend()
		s.see(s.loan("Returned").via("Emptying", "Lent", "Returned"))
		s.pass(4 * time.Minute)
	}, "nodeshare n2 loan l1"},
	{rulePair, "a taint that is left", func(s *stage) {
		n := s.node("n1")
		n.HolderTaint = true
		s.see(n)
		s.pass(4 * time.Minute)
	}, "node n1 taint"},
	{rulePair, "a label that is left", func(s *stage) {
		n := s.node("n1")
		n.Labels["springtide.dev/offline"] = "true"
		s.see(n)
		s.pass(4 * time.Minute)
	}, "node n1 label"},
	{rulePair, "a fence that is left", func(s *stage) {
		n := s.node("n1")
		n.FencedTaint = true
		s.see(n)
		s.pass(4 * time.Minute)
	}, "node n1 fence"},
	{rulePair, "a lent machine without its taint", func(s *stage) {
		s.lend()
		n := s.lentNode("n2")
		n.HolderTaint = false
		s.see(n)
		s.pass(4 * time.Minute)
	}, "node n2 taint"},
	{rulePair, "a lent machine without its taint, though cells decide", func(s *stage) {
		s.byCells()
		s.lend()
		n := s.lentNode("n2")
		n.HolderTaint = false
		s.see(n)
		s.pass(4 * time.Minute)
	}, "node n2 taint"},
	{rulePair, "a lent socket of which the taint shuts the other one", func(s *stage) {
		s.byCells()
		s.lend()
		s.see(&Share{Node: "n2", NodeUID: "uid-n2", Parcels: []Parcel{s.socket("l1", "offline", "", 2, 3)}}, s.socketLoan())
		s.pass(4 * time.Minute)
	}, "node n2 taint"},
	{rulePair, "a notice that was taken back stays on the pod", func(s *stage) {
		s.lend()
		s.see(s.work("w1", "n2").noticed(Notice{"l1", 1, s.now.Add(time.Minute)}))
		s.pass(4 * time.Minute)
	}, "lab/w1"},

	{ruleWait, "a pod waits next to a machine that is free", func(s *stage) {
		s.see(s.web("web-3", ""))
		s.pass(90 * time.Second)
	}, "shop/web-3"},
	{ruleWait, "room that came home stays shut", func(s *stage) {
		s.fill()
		s.recalled()
		s.pass(step)
		s.see(Gone{s.work("w1", "n2")}, s.share("online", "", 2), s.loan("Returned"), s.node("n2"), s.web("web-3", ""))
		s.pass(90 * time.Second)
	}, "shop/web-3"},
	{ruleWait, "a socket that came home stays shut while the other one is lent", func(s *stage) {
		s.fill()
		s.lend()
		s.see(&Share{Node: "n2", NodeUID: "uid-n2", Parcels: []Parcel{s.socket("k1", "online", "", 0, 1), s.socket("l1", "offline", "", 2, 3)}}, s.socketLoan(), s.web("web-3", ""))
		s.pass(90 * time.Second)
	}, "shop/web-3"},
	{ruleWait, "a socket that came home stays shut while the other one drains", func(s *stage) {
		s.fill()
		s.lend()
		l := s.socketLoan()
		l.Phase, l.Epoch, l.Deadline, l.History = "Noticed", 2, s.now.Add(2*time.Minute), append(l.History, "Noticed")
		p := s.socket("l1", "offline", "online", 2, 3)
		p.Epoch = 2
		s.see(&Share{Node: "n2", NodeUID: "uid-n2", Parcels: []Parcel{s.socket("k1", "online", "", 0, 1), p}}, l, s.web("web-3", ""))
		s.pass(90 * time.Second)
	}, "shop/web-3"},
	{ruleWait, "a pod waits beside room of its zone", func(s *stage) {
		p := s.web("web-3", "")
		p.Selector = map[string]string{"pool": "online"}
		s.see(p)
		s.pass(90 * time.Second)
	}, "shop/web-3"},

	{ruleSource, "a scale-in without a source", func(s *stage) {
		s.look.Source = false
		s.pass(6 * time.Minute)
		s.see(&Deployment{Ref: Ref{"shop", "web"}, Replicas: 1})
		s.pass(step)
	}, "shop/web"},
	{ruleSource, "a loan without a source", func(s *stage) {
		s.look.Source, s.look.Down = false, []string{"prometheus"}
		s.pass(6 * time.Minute)
		s.see(s.loan("Emptying"), s.share("online", "offline", 1))
		s.pass(step)
	}, "l1"},
	{ruleSource, "a source that comes and goes is away from its last going", func(s *stage) {
		s.look.Source = false
		s.pass(6 * time.Minute)
		s.look.Source = true
		s.pass(time.Minute)
		s.see(&Deployment{Ref: Ref{"shop", "web"}, Replicas: 1}, &Deployment{Ref: Ref{"shop", "web"}, Replicas: 2}) // the source is there: nothing to find
		s.look.Source = false
		s.pass(10 * time.Minute)
		s.see(&Deployment{Ref: Ref{"shop", "web"}, Replicas: 1})
		s.pass(step)
	}, "shop/web"},

	{ruleNeed, "a service that was scaled in too far", func(s *stage) {
		s.pass(10 * time.Minute)
		s.see(&Deployment{Ref: Ref{"shop", "web"}, Replicas: 1}, Gone{s.web("web-2", "n1")})
		s.pass(2 * time.Minute)
	}, "shop/web"},
	{ruleNeed, "a load that rises slowly", func(s *stage) {
		s.during(time.Hour, func() { s.needs += .01 })
	}, "shop/web"},
	{ruleNeed, "a load that grows by a quarter every five minutes", func(s *stage) {
		s.during(time.Hour, func() { s.needs *= math.Pow(leap*1.01, float64(step)/float64(leapSpan)) })
	}, "shop/web"},
	{ruleNeed, "a service that follows such a load too late", func(s *stage) {
		grown := s.needs
		s.during(time.Hour, func() {
			s.needs *= math.Pow(1.3, float64(step)/float64(leapSpan))
			if s.needs > grown*2.2 { // it doubled ten minutes ago
				grown = s.needs / 2.2
				s.replicas(int(math.Ceil(grown)))
			}
		})
	}, "shop/web"},
	{ruleNeed, "a leap that is followed half of the way", func(s *stage) {
		s.pass(10 * time.Minute)
		s.needs = 6
		s.pass(2 * time.Minute)
		s.replicas(5)
		s.pass(5 * time.Minute)
	}, "shop/web"},
	{ruleNeed, "a service that does not follow after an outage", func(s *stage) {
		s.look.Down = []string{"prometheus"}
		s.pass(30 * time.Minute)
		s.needs, s.look.Down = 3, nil
		s.pass(10 * time.Minute)
	}, "shop/web"},
	{ruleNeed, "pods that are not ready", func(s *stage) {
		p := s.web("web-2", "n1")
		p.Ready = false
		s.pass(10 * time.Minute)
		s.see(p)
		s.pass(2 * time.Minute)
	}, "shop/web"},

	{ruleStuck, "a loan that stays Draining", func(s *stage) {
		s.recalled()
		s.pass(22 * time.Minute)
	}, "loan l1"},
	{ruleStuck, "a loan that stays Noticed after its deadline", func(s *stage) {
		s.lend()
		s.recall()
		s.pass(6 * time.Minute)
	}, "loan l1"},
	{ruleStuck, "a loan that is never forgotten", func(s *stage) {
		s.recalled()
		s.pass(step)
		s.see(Gone{s.work("w1", "n2")}, s.share("online", "", 2), s.loan("Returned"), s.node("n2"))
		s.pass(16 * time.Minute)
	}, "loan l1"},
	{ruleStuck, "a pod that does not end", func(s *stage) {
		p := s.web("web-2", "n1")
		p.Leaving, p.Grace = true, 30*time.Second
		s.see(p, s.web("web-5", "n1"))
		s.pass(7 * time.Minute)
	}, "web-2"},
	{ruleStuck, "a service that is no longer scaled", func(s *stage) {
		s.see(&Service{Ref: Ref{"shop", "web"}, Target: Ref{"shop", "web"}, Acts: true, Max: 10, Desired: 5, Conditions: []Condition{{"AbleToScale", "True", "Ready", ""}}})
		s.pass(6 * time.Minute)
	}, "service shop/web"},
	{ruleStuck, "nobody leads", func(s *stage) {
		s.look.Leader = false
		s.pass(time.Minute)
	}, "controller"},
	{ruleStuck, "each leader ends", func(s *stage) {
		for i := range 4 {
			s.see(&Lease{Holder: fmt.Sprint(i), Transitions: 2 + i})
			s.pass(time.Minute)
		}
	}, "controller"},

	{ruleReported, "a budget refuses and nothing reports it", func(s *stage) {
		s.recalled()
		s.during(2*time.Minute, func() { s.evict("w1", 429) })
	}, "lab/w1"},
	{ruleReported, "two budgets answer 500", func(s *stage) {
		l := s.recalled()
		d := s.loan("Draining")
		d.Deadline, d.Conditions = l.Deadline, []Condition{{"Clean", "False", "Waiting", "1 pod is on the parcel"}}
		s.see(d)
		s.during(2*time.Minute, func() { s.evict("w1", 500) })
	}, "lab/w1"},
	{ruleReported, "a write is refused again and again", func(s *stage) {
		s.during(5*time.Minute, func() { s.request("patch", "deployments/scale", Ref{"shop", "web"}, 422) })
	}, "shop/web"},
	{ruleReported, "a right is missing", func(s *stage) {
		s.during(5*time.Minute, func() { s.request("update", "loans/status", Ref{"", "l1"}, 403) })
	}, "l1"},
}

// TestRefusalsThatAreReported: a refusal that the loan's condition Forced names is reported, whatever its status; a Forced that names none is not.
func TestRefusalsThatAreReported(t *testing.T) {
	for _, c := range []struct {
		condition Condition
		found     bool
	}{
		{Condition{"Forced", "False", "TwoBudgets", "disruption budgets lab/a and lab/b refuses to evict pod lab/w1"}, false},
		{Condition{"Forced", "False", "BudgetRefused", "disruption budget lab/a refuses to evict pod lab/w1"}, false},
		{Condition{"Forced", "True", "Fenced", "the machine was not clean in time and is cut off"}, false},
		{Condition{"Forced", "False", "NotForced", "nothing is taken by force"}, true},
		{Condition{"Clean", "False", "InUse", "disruption budget lab/a keeps it"}, true},
	} {
		s := newStage(t)
		s.pass(time.Minute)
		l := s.recalled()
		d := s.loan("Draining")
		d.Deadline, d.Conditions = l.Deadline, []Condition{c.condition}
		s.see(d)
		s.during(2*time.Minute, func() { s.evict("w1", 500) })
		found := false
		for _, x := range s.j.Report().Findings {
			found = found || x.Rule == ruleReported
		}
		if found != c.found {
			t.Errorf("%+v: found is %v: %v", c.condition, found, s.j.Report().Findings)
		}
	}
}

// as is a loan in another phase.
func (l *Loan) as(phase string) *Loan {
	l.Phase, l.History = phase, append(l.History, phase)
	return l
}

// via is a loan with a history.
func (l *Loan) via(phases ...string) *Loan {
	l.History = phases
	return l
}

// noticed is a pod with a notice.
func (p *Pod) noticed(n Notice) *Pod {
	p.Notice = n
	return p
}

// finds fails the test when a planted fault was not found by its rule at its object.
func (s *stage) finds(f planted) {
	s.t.Helper()
	var found bool
	for _, x := range s.j.Report().Findings {
		s.t.Log(x)
		found = found || x.Rule == f.rule && strings.Contains(x.Object, f.object)
	}
	if !found {
		s.t.Errorf("rule %s did not find it at %q", f.rule, f.object)
	}
}

// TestPlantedFaultsAreFound plays at least three faults for each rule; each is found by its rule, at its object.
func TestPlantedFaultsAreFound(t *testing.T) {
	count := map[string]int{}
	for _, f := range faults {
		count[f.rule]++
		t.Run(f.rule+"/"+f.name, func(t *testing.T) {
			s := newStage(t)
			s.pass(time.Minute)
			if got := s.broken(); len(got) > 0 {
				t.Fatalf("the stage itself breaks %v", got)
			}
			f.play(s)
			s.finds(f)
		})
	}
	for _, r := range rules {
		if count[r.id] < 3 {
			t.Errorf("rule %s has %d planted faults, want three at least", r.id, count[r.id])
		}
	}
}
