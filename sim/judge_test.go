package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/sim/scenario"
)

// wholeLoan is a loan of a whole machine to offline.
func wholeLoan() fleet.Loan {
	return fleet.Loan{ID: "node-000001-c0", Kind: fleet.KindNode, Node: "uid-000001", NodeName: "node-000001", Cells: []int{0, 1}, From: onlinePool, To: offlinePool,
		Phase: fleet.Lent, Epoch: 1}
}

// accused is a controller that has done nothing wrong yet, with a loan of the second machine, where no pod is.
func accused(t *testing.T, lent fleet.Loan) *controller {
	t.Helper()
	b := troubled(1, 1, scenario.Faults{Random: 1})
	w := NewWorld(b, NewRates(b))
	w.faults = drawFaults(b)
	for _, id := range slices.Clone(w.machines[1].pods) {
		w.vanish(id)
	}
	c := newController(w, controllerOptions{Lends: true}, nil)
	c.cancel = func() {}
	c.loans = []fleet.Loan{lent}
	w.machines[1].toOnline = false
	if c.check(); c.err != nil {
		t.Fatalf("nothing is wrong yet: %v", c.err)
	}
	return c
}

// mustBreak wants the invariant of a text to have broken, with what plays it again.
func mustBreak(t *testing.T, c *controller, want string) {
	t.Helper()
	var broken *Broken
	if !errors.As(c.err, &broken) || !strings.Contains(broken.What, want) || broken.Seed != 1 || broken.Faults == "" {
		t.Errorf("want %q, got %v", want, c.err)
	}
}

// put puts a pod on a machine.
func put(c *controller, k kind, n int32, cores int32) {
	c.w.bindOn(c.w.newPod(pod{kind: k, cores: cores}), n)
}

// toOnline makes the third machine one of offline's, which online borrows in a phase.
func toOnline(c *controller, p fleet.Phase) {
	for _, id := range slices.Clone(c.w.machines[2].pods) {
		c.w.vanish(id)
	}
	c.w.machines[2].home = offlinePool
	c.loans = append(c.loans, fleet.Loan{ID: "node-000002-c0", Kind: fleet.KindNode, Node: "uid-000002", NodeName: "node-000002", Cells: []int{0, 1},
		From: offlinePool, To: onlinePool, Phase: p, Epoch: 1})
}

// A borrower of a machine of offline's is alone on it, and is not cut off.
func TestBorrowedMachinesAreJudged(t *testing.T) {
	for want, spoil := range map[string]func(c *controller){
		"while online borrows it by loan node-000002-c0, which is Lent": func(c *controller) { toOnline(c, fleet.Lent); put(c, offline, 2, 8) },
		"which loan node-000002-c0 has not brought them yet": func(c *controller) {
			toOnline(c, fleet.Emptying)
			c.w.facts[2].Share.Parcels = []fleet.ShareParcel{{Loan: "node-000002-c0", Cells: []int{0, 1}, Holder: offlinePool, Next: onlinePool}}
			put(c, online, 2, 8)
		},
		"was fenced for the return of loan node-000002-c0":          func(c *controller) { toOnline(c, fleet.Fenced) },
		"online pods are on machine node-000002, which nobody lent": func(c *controller) { toOnline(c, fleet.Returned); put(c, online, 2, 8) },
	} {
		c := accused(t, wholeLoan())
		spoil(c)
		c.check()
		mustBreak(t, c, want)
	}
	for name, more := range map[string]func(c *controller){
		"lent": func(*controller) {},
		"the share is lent, and the controller died before the loan was": func(c *controller) {
			c.loans[1].Phase = fleet.Emptying
			c.w.facts[2].Share.Parcels = []fleet.ShareParcel{{Loan: "node-000002-c0", Cells: []int{0, 1}, Holder: onlinePool}}
		},
		// The creation of a loan that was called off and deleted came again. The machine's share knows only the loan that followed.
		"a loan before it was begun twice": func(c *controller) {
			again := c.loans[1]
			again.ID, again.Phase = "node-000002-c0-before", fleet.Emptying
			c.loans = append(c.loans, again)
			c.w.facts[2].Share.Parcels = []fleet.ShareParcel{{Loan: "node-000002-c0", Cells: []int{0, 1}, Holder: onlinePool}}
		},
	} {
		c := accused(t, wholeLoan())
		toOnline(c, fleet.Lent)
		put(c, online, 2, 8)
		c.w.services[0].pods, c.w.services[0].starting = append(c.w.services[0].pods, int32(len(c.w.pods)-1)), c.w.services[0].starting+1
		more(c)
		if c.check(); c.err != nil {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

// A promise is broken by tenants whose pods hold more than what is kept of their own, and only while what waits is within what is kept. A slice lifts
// its tenant no further than its parent's promise reaches.
func TestPromisesAreJudged(t *testing.T) {
	for name, x := range map[string]struct {
		runs, asks, waits int // replicas of 8 cores: those of the shop that run, those that it asks for, and those that the web asks for next to one that waits
		slice             bool
		broken            bool
	}{
		"the shop holds more than it was promised":          {runs: 13, asks: 13, waits: 12, broken: true},
		"the shop asks for more, and holds what it may":     {runs: 12, asks: 20, waits: 12},
		"the web asks for more than it was promised":        {runs: 13, asks: 13, waits: 13},
		"a slice lifts the web, as far as its parent has":   {runs: 13, asks: 13, waits: 14, slice: true, broken: true},
		"what a slice lifts it beyond that cannot be kept":  {runs: 13, asks: 13, waits: 15, slice: true},
		"and neither can the shop hold that while it waits": {runs: 12, asks: 12, waits: 14, slice: true},
	} {
		c := accused(t, wholeLoan())
		c.tenants = []fleet.Tenant{{ID: "all", Guarantee: amount(216)},
			{ID: "shop", Parent: "all", Namespaces: []string{"shop"}, Guarantee: amount(100)}, {ID: "web", Parent: "all", Namespaces: []string{"web"}, Guarantee: amount(100)}}
		if x.slice {
			c.tenants[2].Slices = []fleet.Slice{{Window: fleet.Window{Schedule: "0 0 * * *", Duration: 24 * time.Hour, Zone: time.UTC}, Guarantee: amount(180)}}
		}
		shop, web := &c.w.services[0], &c.w.services[1]
		shop.ready, shop.desired = x.runs, int32(x.asks)
		web.Name.Namespace, web.waiting, web.ready, web.desired = "web", 1, 1, int32(x.waits)
		c.w.services = c.w.services[:2]
		old := c.w.newPod(pod{kind: online, owner: 1, cores: 8})
		c.w.waiting = append(c.w.waiting, podRef{old, c.w.pods[old].uid})
		for range ticks(owedWithin) + 1 {
			c.w.tick++
			c.checkPromises()
		}
		if (c.err != nil) != x.broken {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

// Offline work keeps within the cells that are lent, until they are home again.
func TestGuestsKeepToTheirCells(t *testing.T) {
	for name, x := range map[string]struct {
		phase fleet.Phase
		share fleet.PoolID // the holder by the share, where there is one
		cores int32
		want  string
	}{
		"a socket":             {fleet.Lent, "", 32, ""},
		"more than a socket":   {fleet.Lent, "", 40, "with 40 cores, of which 32 are lent"},
		"told to go":           {fleet.Noticed, "", 32, ""},
		"ending":               {fleet.Draining, "", 32, ""},
		"cut off":              {fleet.Fenced, "", 40, "of which 32 are lent"},
		"not lent yet":         {fleet.Emptying, "", 8, "which nobody lent"},
		"nor by its share":     {fleet.Emptying, onlinePool, 8, "which nobody lent"},
		"lent by a dead hand":  {fleet.Emptying, offlinePool, 32, ""},
		"and no more than it":  {fleet.Emptying, offlinePool, 40, "of which 32 are lent"},
		"never lent after all": {fleet.Cancelled, offlinePool, 8, "which nobody lent"},
	} {
		l := wholeLoan()
		l.Kind, l.Cells = fleet.KindSocket, []int{0}
		c := accused(t, l)
		c.loans[0].Phase = x.phase
		if x.share != "" {
			c.w.facts[1].Share.Parcels = []fleet.ShareParcel{{Loan: l.ID, Cells: l.Cells, Holder: x.share}}
		}
		put(c, offline, 1, x.cores)
		switch c.check(); {
		case x.want != "":
			mustBreak(t, c, x.want)
		case c.err != nil:
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

// A socket that came home is clear of offline work, which may stay within the cells of the other one for as long as that is lent.
func TestASocketComesHomeAlone(t *testing.T) {
	for _, x := range []struct {
		other fleet.Phase
		cores int32
		want  string
	}{
		{fleet.Lent, 32, ""},
		{fleet.Noticed, 32, ""},
		{fleet.Draining, 16, ""},
		{fleet.Lent, 40, "brought home for its claimant"},
		{fleet.Draining, 33, "brought home for its claimant"},
		{fleet.Returned, 1, "brought home for its claimant"},
	} {
		home := wholeLoan()
		home.Kind, home.Cells = fleet.KindSocket, []int{0}
		c := accused(t, home)
		other := home
		other.ID, other.Cells, other.Phase = "node-000001-c1", []int{1}, x.other
		c.loans = append(c.loans, other)
		c.loans[0].Phase = fleet.Returned
		put(c, offline, 1, x.cores)
		switch c.check(); {
		case x.want != "":
			mustBreak(t, c, x.want)
		case c.err != nil:
			t.Errorf("the other is %s, %d cores: %v", x.other, x.cores, c.err)
		}
	}
}

// A socket stays lent after a recall of another one of its machine for as long as a leader may take to recall it too, and no longer.
func TestSocketsAreRecalledTogether(t *testing.T) {
	for _, x := range []struct {
		first, second fleet.Phase
		node          fleet.NodeID
		breaks        bool
	}{
		{fleet.Noticed, fleet.Lent, "uid-000001", true},
		{fleet.Lent, fleet.Draining, "uid-000001", true},
		{fleet.Returned, fleet.Lent, "uid-000001", true},
		{fleet.WrittenOff, fleet.Lent, "uid-000001", true},
		{fleet.Lent, fleet.Lent, "uid-000001", false},
		{fleet.Emptying, fleet.Lent, "uid-000001", false},
		{fleet.Cancelled, fleet.Lent, "uid-000001", false},
		{fleet.Noticed, fleet.Draining, "uid-000001", false},
		{fleet.Noticed, fleet.Lent, "uid-of-an-earlier-machine", false},
	} {
		one := wholeLoan()
		one.Kind, one.Cells = fleet.KindSocket, []int{0}
		c := accused(t, one)
		other := one
		other.ID, other.UID, other.Cells, other.Phase, other.Node = "node-000001-c1", "other", []int{1}, x.second, x.node
		c.loans = append(c.loans, other)
		c.loans[0].Phase = x.first
		for range int(togetherWithin / tick) {
			c.checkTogether()
		}
		if c.err != nil {
			t.Errorf("%s and %s, at once: %v", x.first, x.second, c.err)
		}
		switch c.checkTogether(); {
		case x.breaks:
			mustBreak(t, c, "after a recall of its machine")
		case c.err != nil:
			t.Errorf("%s and %s: %v", x.first, x.second, c.err)
		}
	}
}

// A pod that answered the present notice of its machine may go before the deadline, and no other.
func TestAnswersAreJudged(t *testing.T) {
	for name, x := range map[string]struct {
		loan        fleet.LoanID
		notice, ack int64
		want        string
	}{
		"this notice":                     {"node-000001-c0", 3, 3, ""},
		"another loan's of the machine":   {"node-000001-c1", 2, 2, ""},
		"nothing":                         {"node-000001-c0", 3, 0, "before the deadline"},
		"the notice before":               {"node-000001-c0", 1, 1, "before the deadline"},
		"the notice before this one":      {"node-000001-c0", 3, 1, "before the deadline"},
		"one before of the other loan":    {"node-000001-c1", 1, 1, "before the deadline"},
		"a loan of another machine":       {"node-000002-c0", 1, 1, "before the deadline"},
		"a loan that is not there":        {"node-000003-c0", 3, 3, "before the deadline"},
		"a loan, but was not told of one": {"node-000001-c0", 0, 0, "before the deadline"},
	} {
		c := accused(t, wholeLoan())
		l := &c.loans[0]
		l.Phase, l.Epoch, l.Deadline, l.Cells = fleet.Noticed, 3, c.w.now.Add(time.Minute), []int{0}
		other := *l
		other.ID, other.Epoch, other.Cells = "node-000001-c1", 2, []int{1}
		c.loans = append(c.loans, other)
		toOnline(c, fleet.Lent)
		switch c.checkEviction(&planner.Eviction{Loan: "node-000001-c0"}, &pod{kind: offline, noticeLoan: x.loan, noticeEpoch: x.notice, ackEpoch: x.ack}); {
		case x.want != "":
			mustBreak(t, c, x.want)
		case c.err != nil:
			t.Errorf("%s: %v", name, c.err)
		}
	}
	c := accused(t, wholeLoan()) // it was turned back
	c.checkEviction(&planner.Eviction{Loan: "node-000001-c0"}, &pod{kind: offline, noticeLoan: "node-000001-c0", noticeEpoch: 2, ackEpoch: 2})
	mustBreak(t, c, "which announced no deadline")
	c = accused(t, wholeLoan())
	c.checkEviction(&planner.Eviction{Loan: "node-000009-c0"}, &pod{kind: offline})
	mustBreak(t, c, "was evicted for loan node-000009-c0, which is not there")
}

// A new notice takes the answer to an older one off a pod: epochs count by the loan, and those of two may be alike.
func TestANoticeTakesAnswersBack(t *testing.T) {
	c := accused(t, wholeLoan())
	id := c.w.newPod(pod{name: fleet.Name{Namespace: "offline", Name: "x"}, kind: offline, noticeLoan: "node-000001-c0", noticeEpoch: 2, ackEpoch: 2})
	c.notice(id, &protocol.SetNotice{Loan: "node-000001-c1", Epoch: 2})
	if p := &c.w.pods[id]; p.noticeLoan != "node-000001-c1" || p.ackEpoch != 0 {
		t.Errorf("it was told by %s, and answered epoch %d", p.noticeLoan, p.ackEpoch)
	}
}

// The charge of a job's resize is judged when it is done, of each pool; pods due to others are bound by nothing.
func TestBudgetsOfJobsAreJudged(t *testing.T) {
	for _, pool := range []fleet.PoolID{onlinePool, offlinePool} {
		for _, due := range []bool{false, true} {
			c := accused(t, wholeLoan())
			j := &c.w.jobs[0]
			charge(c, j.id().Owner(), planner.Charge{Pool: pool, Pods: 1000, Due: due})
			switch {
			case !due:
				mustBreak(t, c, "the ledger of pool "+string(pool)+" counts 1000 pods in a minute of at most 60")
			case c.err != nil:
				t.Error(c.err)
			}
		}
	}
}

// A job's raise is judged by the division that the plan was made with, and by what their tenant may ever have.
func TestQuotasOfJobsAreJudged(t *testing.T) {
	no := fleet.KnownAt(fleet.Resources{}, begin)
	for name, x := range map[string]struct {
		tenants []fleet.Tenant
		shares  []quota.Share
		from    int32
		want    string
	}{
		"within": {[]fleet.Tenant{{ID: "lab", Namespaces: []string{"offline"}, Guarantee: amount(64), BorrowingLimit: no}},
			[]quota.Share{{Tenant: "lab", OfflineLimit: amount(64)}}, 0, ""},
		"beyond the division": {[]fleet.Tenant{{ID: "lab", Namespaces: []string{"offline"}, Guarantee: amount(640)}},
			[]quota.Share{{Tenant: "lab", OfflineLimit: amount(63)}}, 0, "the jobs of tenant lab were raised to 64 cores, 1 more than"},
		"not raised": {[]fleet.Tenant{{ID: "lab", Namespaces: []string{"offline"}, Guarantee: amount(32), BorrowingLimit: no}},
			[]quota.Share{{Tenant: "lab", OfflineLimit: amount(32)}}, 5, ""},
		"what another finds no room for": {[]fleet.Tenant{{ID: "lab", Namespaces: []string{"offline"}, Guarantee: amount(640)}, {ID: "idle", Namespaces: []string{"idle"}}},
			[]quota.Share{{Tenant: "lab", OfflineLimit: amount(60)}, {Tenant: "idle", OfflineLimit: amount(4)}}, 0, ""},
		"more than that": {[]fleet.Tenant{{ID: "lab", Namespaces: []string{"offline"}, Guarantee: amount(640)}, {ID: "idle", Namespaces: []string{"idle"}}},
			[]quota.Share{{Tenant: "lab", OfflineLimit: amount(60)}, {Tenant: "idle", OfflineLimit: amount(3)}}, 0, "and others leave 3 of theirs"},
		"beyond what it may borrow": {[]fleet.Tenant{{ID: "company", Guarantee: amount(60), BorrowingLimit: no}, {ID: "lab", Parent: "company", Namespaces: []string{"offline"}}},
			[]quota.Share{{Tenant: "lab", OfflineLimit: amount(64)}}, 0, "tenant company and those below it came to 64 cores with their jobs, beyond the 60"},
		"with its services": {[]fleet.Tenant{{ID: "lab", Namespaces: []string{"offline", "shop"}, Guarantee: amount(70), BorrowingLimit: no}},
			[]quota.Share{{Tenant: "lab", OfflineLimit: amount(64)}}, 0, "tenant lab and those below it came to 72 cores with their jobs"},
	} {
		c := accused(t, wholeLoan())
		for i := range c.w.services {
			c.w.services[i].desired = 0
		}
		c.w.services[0].desired = 1
		j := &c.w.jobs[0] // of 16 cores a member
		c.tenants, c.epoch, j.desired = x.tenants, 1, x.from
		p := &planner.Plan{LeaderEpoch: 1, Division: quota.Division{Shares: x.shares}, Jobs: []planner.JobScale{{Job: j.id(), Role: role, Workload: j.name, Kind: "Job",
			From: x.from, To: 4}}}
		r, err := c.Apply(context.Background(), p)
		if err != nil || j.desired != 4 {
			t.Fatalf("%s: %d members, %v, %+v", name, j.desired, err, r)
		}
		switch {
		case x.want != "":
			mustBreak(t, c, x.want)
		case c.err != nil:
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

// Disorder at the end is found.
func TestTheEndIsJudged(t *testing.T) {
	wait := func(c *controller) {
		s := &c.w.services[0]
		id := c.w.newPod(pod{name: fleet.Name{Namespace: "shop", Name: "late"}, kind: online, cores: 8})
		s.pods = append(s.pods, id)
		c.w.pods[id].created = -ticks(settledWithin) - 1
	}
	for want, spoil := range map[string]func(c *controller){
		"service shop/svc-0 has broken its SLO for 33m15s": func(c *controller) { // a start-up takes 3 minutes
			c.w.services[0].broken = ticks(settledWithin+3*time.Minute) + 1
		},
		"pod shop/late has waited for 30m15s while 1 parcels are lent": func(c *controller) {
			wait(c)
			c.w.borrowed = 1
		},
	} {
		c := accused(t, wholeLoan())
		spoil(c)
		c.checkSettled()
		mustBreak(t, c, want)
	}
	for name, spare := range map[string]func(c *controller){
		"not for long yet":    func(c *controller) { c.w.services[0].broken = ticks(settledWithin + 3*time.Minute) },
		"some of it waits":    func(c *controller) { c.w.services[0].broken, c.w.services[0].waiting = 1000, 1 },
		"it has all there is": func(c *controller) { c.w.services[0].broken, c.w.services[0].desired = 1000, c.w.mostReplicas(0) },
		"nothing is lent":     wait,
		"another one does it": func(c *controller) { wait(c); c.w.borrowed = 1; c.others = []Policy{tdm{}} },
		"its quota leaves none": func(c *controller) {
			c.w.services[0].broken = 1000
			c.tenants, c.limits["shop"] = []fleet.Tenant{{ID: "shop", Namespaces: []string{"shop"}}}, 8000
		},
	} {
		c := accused(t, wholeLoan())
		spare(c)
		if c.checkSettled(); c.err != nil {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

// A pod that did not answer is evicted after the deadline if it knew of it before: by any notice of its machine that
// stands, or never where that was tried for long.
func TestAnEvictionWithoutANoticeIsJudged(t *testing.T) {
	for name, x := range map[string]struct {
		loan  fleet.LoanID
		epoch int64
		ago   int32 // ticks since its notice; 0 for never
		began time.Duration
		want  string
	}{
		"told in time":                {"node-000001-c0", 3, 1, 2 * time.Minute, ""},
		"told by the machine's other": {"node-000001-c1", 2, 4, 2 * time.Minute, ""},
		"told in this moment":         {"node-000001-c0", 3, 0, 2 * time.Minute, "not told in time"},
		"told of an earlier notice":   {"node-000001-c0", 2, 4, 2 * time.Minute, "not told in time"},
		"told by another machine's":   {"node-000002-c0", 3, 4, 2 * time.Minute, "not told in time"},
		"never":                       {"", 0, 0, 2 * time.Minute, "not told in time"},
		"never, and it was tried":     {"", 0, 0, 10 * time.Minute, ""},
	} {
		c := accused(t, wholeLoan())
		l := &c.loans[0]
		l.Phase, l.Epoch, l.FirstNotice, l.Deadline, l.Cells = fleet.Draining, 3, c.w.now.Add(-x.began), c.w.now.Add(-time.Second), []int{0}
		other := *l
		other.ID, other.Epoch, other.Cells = "node-000001-c1", 2, []int{1}
		c.loans = append(c.loans, other)
		toOnline(c, fleet.Lent)
		c.w.tick = 100
		if x.loan != "" {
			c.judge.noteNotice("uid", &protocol.SetNotice{Loan: x.loan, Epoch: x.epoch}, c.w.tick-x.ago)
			c.judge.noteNotice("uid", &protocol.SetNotice{Loan: x.loan, Epoch: x.epoch, Again: true}, c.w.tick)
		}
		switch c.checkEviction(&planner.Eviction{Loan: "node-000001-c0"}, &pod{kind: offline, uid: "uid"}); {
		case x.want != "":
			mustBreak(t, c, x.want)
		case c.err != nil:
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

// A request of the leader before is judged by the clock of that leader, and what it takes by what it could see.
func TestARequestIsJudgedByItsLeader(t *testing.T) {
	const putOff, answered, older = time.Second, 2 * time.Second, 3 * time.Second // the next leader put the deadline off; it saw an answer, or one to an older notice
	for ahead, want := range map[time.Duration]string{0: "before the deadline", 2 * time.Minute: "", 30 * time.Second: "before the deadline", putOff: "", answered: "",
		older: "before the deadline"} {
		c := accused(t, wholeLoan())
		l := &c.loans[0]
		l.Phase, l.Epoch, l.FirstNotice, l.Deadline = fleet.Draining, 3, c.w.now.Add(-time.Minute), c.w.now.Add(time.Minute)
		c.late = &lastPlan{facts: &fleet.Snapshot{At: c.w.now.Add(ahead)}}
		seen := *l
		if ahead == putOff {
			seen.Deadline = c.w.now
		}
		c.late.facts.Loans = []fleet.Loan{seen}
		if epoch := map[time.Duration]int64{answered: 3, older: 2}[ahead]; epoch > 0 {
			c.late.facts.Pods = []fleet.Pod{{ID: "uid", NoticeLoan: l.ID, NoticeEpoch: 3, AckEpoch: epoch}}
		}
		c.w.tick = 100
		c.judge.noteNotice("uid", &protocol.SetNotice{Loan: l.ID, Epoch: 3}, 90)
		switch c.checkEviction(&planner.Eviction{Loan: l.ID}, &pod{kind: offline, uid: "uid"}); {
		case want != "":
			mustBreak(t, c, want)
		case c.err != nil:
			t.Errorf("a clock %s ahead: %v", ahead, c.err)
		}
	}
}
