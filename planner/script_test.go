package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/scripttest"
	"github.com/springtide/springtide/reason"
)

// TestScripts plans for a fleet of machines of 64 cores, on which services' pods take 8 and workers 16, every signal fresh:
//
//	machines N
//	service NAME PODS FIRST SPREAD CORES   PODS on SPREAD machines from FIRST on, for a load of CORES now and ahead
//	lent MACHINE PHASE EPOCH [WORKERS]     the whole machine; notice was given now, for two minutes
//	ladder MACHINE SINCE [KILL]            since when it stands in its phase, and for when its kill is announced, in seconds from now;
//	                                       a kill that has come was after the deadline
//	ending [killed]                        every worker was told to end, without grace
//	waits NAME N                           N more pods of a service, for which the scheduler found no room
//	told MACHINE SECONDS                   every worker there knows of the notice, and of a deadline so far from now
//	beats MACHINE SECONDS                  every worker there asks for time until then
//	thawed                                 the last cycle was frozen
//	rises NAME MINUTES CORES               its tide reaches so many cores then, and stays
//	expects MACHINE MINUTES                what its borrower was told, from now
//	offline N [WORKERS]                    N machines more, at home in the offline pool, that may lend; WORKERS on each
//	moved MACHINE POOL                     it belongs to that pool from now on, or to none (-); its marks are those of before
//	gone POOL                              it was deleted; its machines belong to none
//	down MACHINE                           it is not ready
//	unmarked MACHINE                       it has no mark of ours
//	gang MIN [stable]                      the job keeps so many workers
//	borrowed MACHINE PHASE EPOCH [SECONDS DUE]   a machine of the offline pool, its deadline and its due time so far from now
//	festival takes [asked]                 a festival plan is in force, which takes stable members; asked: nobody approved it yet
//	lentsocket MACHINE CELL                the socket that begins with the cell is lent
//	pace N                                 the budget lets so many parcels go in a minute
//	erased MACHINE                         its loan was deleted by hand; share and marks are those of before
//	ended MACHINE [lied]                   its loan ended by hand, and the share says so too; lied: the share says what it said
//	rests MACHINE TURNS MINUTES            its share says that so many loans came to nothing, and until when it rests
//	unshared MACHINE                       its NodeShare was deleted by hand
//	forged MACHINE HOLDER EPOCH CELL...    somebody wrote a parcel into its share
//	strays MACHINE N [reclaimed|ending|daemon|pending]   offline pods without a loan
//	silent MACHINE                         its agent gave no sign of life lately
//	agentless MACHINE                      no agent was ever there
//	acked [N]                              every worker acknowledged, or the first N did
//	clean MACHINE EPOCH                    the node side's report
//	share MACHINE EPOCH NEXT               what the share says instead of what the loan does
//	tenant ID NAMESPACE CORES [borrows CORES] [told MINUTES] [under ID]   what it is guaranteed, and since when it is told to give back
//	parcels ID GUARANTEE [borrows N] [told MINUTES N USED]     whole machines; and since when it is told to leave N of those that it was on
//	job NAMESPACE/NAME CORES MIN MAX [high] [waits] [named] [launcher]   in place of the job that was there; a launcher is a fixed member besides
//	on MACHINE JOB N [ending|launcher]     N of its workers there, which were told to end; or its launcher. JOB - is of no job that is known
//	staged NAME MINUTES                    its pods have the readiness gate, and stand by for so long
//	stands NAME N SECONDS                  its last N pods have stood by for so long, with a squeezed request
//
// ungated NAME N | old NAME N | unready NAME N | ending NAME N   its first N pods: without the gate, of a revision of
// before, not ready, deleted
//
//	breaks NAME N                          so many of its pods may become unready by disruption budgets
//	full MACHINE CORES                     a pod of no service asks for so much there
//	most NAME N                            its maximum
//	orphaned NAME                          its ElasticService is gone
//	pause NAME PAUSE
//	change POOL KIND,... N|N% [MINUTES]       a window of change that is open until in ten minutes, or that begins
//	                                          MINUTES from now and lasts for eleven
//	holds service|job|pool NAME MINUTES [N]   paused for so long from now, without an end (-), or until so long ago; at N
//	                                          replicas
//	mode MODE | frozen WHY | leads MINUTES | blind
func TestScripts(t *testing.T) { scripttest.Run(t, newScript) }

func newScript(t *testing.T) scripttest.Script {
	var w *world
	blind, thawed := false, false
	line := func(f scripttest.Line) bool {
		switch f[0] {
		case "machines":
			w = newWorld(f.Int(1))
		case "service":
			w.service(f[1], f.Int(2), f.Int(3), f.Int(4), float64(f.Int(5)))
		case "lent":
			l := w.loan(f.Int(1), fleet.Phase(f[2]), int64(f.Int(3)))
			if l.Phase != fleet.Lent {
				l.FirstNotice, l.Deadline, l.Due = t0, t0.Add(2*time.Minute), t0.Add(5*time.Minute)
			}
			if l.Phase == fleet.Draining {
				l.KillAt = t0.Add(time.Minute)
			}
			l.Reason = reason.Said("the flood comes")
			for i := 0; f.Has(4) && i < f.Int(4); i++ {
				w.worker(f.Int(1), i)
			}
		case "ladder":
			for i := range w.s.Loans {
				if l := &w.s.Loans[i]; l.Node == w.s.Nodes[f.Int(1)].ID {
					l.Since, l.KillAt = t0.Add(time.Duration(f.Int(2))*time.Second), time.Time{}
					if f.Has(3) {
						l.KillAt = t0.Add(time.Duration(f.Int(3)) * time.Second)
					}
					if l.KillAt.Before(l.Deadline) && !l.KillAt.After(t0) {
						l.Deadline = l.KillAt
					}
				}
			}
		case "ending":
			if f.Has(2) {
				return w.standbyLine(f)
			}
			for i := range w.s.Pods {
				if p := &w.s.Pods[i]; p.Class == fleet.PodOffline {
					p.Deleting, p.Killed = true, f.Has(1)
				}
			}
		case "rises":
			w.rises = append(w.rises, rise{fleet.ServiceID("shop/" + f[1]), time.Duration(f.Int(2)) * time.Minute, float64(f.Int(3))})
		case "expects":
			for i := range w.s.Loans {
				if l := &w.s.Loans[i]; l.Node == w.s.Nodes[f.Int(1)].ID {
					l.ExpectedUntil = t0.Add(time.Duration(f.Int(2)) * time.Minute)
				}
			}
		case "offline":
			w.offline(f.Int(1))
			for i := len(w.s.Nodes) - f.Int(1); f.Has(2) && i < len(w.s.Nodes); i++ {
				for k := range f.Int(2) {
					w.worker(i, k)
				}
			}
		case "moved":
			w.s.Nodes[f.Int(1)].Pool = fleet.PoolID(strings.TrimPrefix(f[2], "-"))
		case "gone":
			w.s.Pools = slices.DeleteFunc(w.s.Pools, func(p fleet.Pool) bool { return p.ID == fleet.PoolID(f[1]) })
			for i := range w.s.Nodes {
				if n := &w.s.Nodes[i]; n.Pool == fleet.PoolID(f[1]) {
					n.Pool = ""
				}
			}
		case "down":
			w.s.Nodes[f.Int(1)].Ready = false
		case "unmarked":
			w.s.Nodes[f.Int(1)].Marks = fleet.NodeMarks{}
		case "gang":
			mem := &w.s.Jobs[0].Members[0]
			mem.Min, mem.Stable = int32(f.Int(1)), f.Has(2)
		case "borrowed":
			l := w.loan(f.Int(1), fleet.Phase(f[2]), int64(f.Int(3)))
			l.From, l.To, l.Reason = "offline", "online", reason.Said("the flood comes")
			n := &w.s.Nodes[f.Int(1)]
			n.Marks = fleet.NodeMarks{HolderTaint: l.Phase != fleet.Lent, HomeLabel: true, KeepNode: true}
			e := &n.Share.Parcels[0]
			e.Holder, e.Next = l.Holder(), l.Next()
			l.Deadline, l.Due = t0.Add(time.Minute), t0.Add(2*time.Hour)
			if f.Has(5) {
				l.Deadline, l.Due = t0.Add(time.Duration(f.Int(4))*time.Second), t0.Add(time.Duration(f.Int(5))*time.Second)
			}
			if l.Phase == fleet.Noticed || l.Phase == fleet.Draining {
				l.FirstNotice = t0.Add(-time.Minute)
			}
		case "festival":
			w.s.Festivals = []fleet.Festival{{ID: "sale", Start: t0.Add(-time.Minute), End: t0.Add(time.Hour), Approved: len(f) < 3, TakeStable: true}}
		case "waits":
			w.waits(f[1], f.Int(2))
		case "told", "beats":
			at := t0.Add(time.Duration(f.Int(2)) * time.Second)
			for i := range w.s.Pods {
				p := &w.s.Pods[i]
				if p.Class != fleet.PodOffline || p.Node != w.s.Nodes[f.Int(1)].ID {
					continue
				}
				if f[0] == "beats" {
					p.Heartbeat = fleet.KnownAt(at, t0)
					continue
				}
				l := w.s.Loans[slices.IndexFunc(w.s.Loans, func(l fleet.Loan) bool { return l.Node == p.Node })]
				p.NoticeLoan, p.NoticeEpoch, p.NoticeDeadline = l.ID, l.Epoch, fleet.KnownAt(at, t0)
			}
		case "thawed":
			thawed = true
		case "erased":
			w.s.Loans = slices.DeleteFunc(w.s.Loans, func(l fleet.Loan) bool { return l.Node == w.s.Nodes[f.Int(1)].ID })
		case "ended":
			n := &w.s.Nodes[f.Int(1)]
			l := &w.s.Loans[slices.IndexFunc(w.s.Loans, func(l fleet.Loan) bool { return l.Node == n.ID })]
			l.Phase, l.Since, l.CleanAt = fleet.Returned, t0.Add(-time.Minute), t0.Add(-time.Minute)
			if n.Marks = (fleet.NodeMarks{}); len(f) < 3 {
				n.Share.Parcels[0].Holder, n.Share.Parcels[0].Next = l.From, ""
			}
		case "lentsocket":
			l := w.loan(f.Int(1), fleet.Lent, 1)
			n := &w.s.Nodes[f.Int(1)]
			l.Kind, l.Cells = fleet.KindSocket, []int{f.Int(2), f.Int(2) + 1}
			l.Capacity, l.Parcel = n.CapacityOf(l.Cells), fleet.MakeParcelID(n.ID, l.Cells)
			n.Share.Parcels[0].Cells = l.Cells
		case "pace":
			w.s.Pools[1].MovesPerHour = 60 * f.Int(1)
		case "rests":
			w.s.Nodes[f.Int(1)].Share.Rest = fleet.Rest{Turns: f.Int(2), Until: t0.Add(time.Duration(f.Int(3)) * time.Minute)}
		case "unshared":
			w.s.Nodes[f.Int(1)].Share = fleet.Share{}
		case "forged":
			sh := &w.s.Nodes[f.Int(1)].Share
			e := fleet.ShareParcel{Holder: fleet.PoolID(f[2]), Loan: "nobody-s", LoanUID: "forged", Epoch: int64(f.Int(3))}
			for _, c := range f[4:] {
				e.Cells = append(e.Cells, scripttest.Int(c))
			}
			sh.Exists, sh.Parcels = true, append(sh.Parcels, e)
		case "strays":
			for i := range f.Int(2) {
				w.worker(f.Int(1), i)
				p := &w.s.Pods[len(w.s.Pods)-1]
				for _, is := range f[3:] {
					p.Reclaimed, p.Deleting, p.Daemon = p.Reclaimed || is == "reclaimed", p.Deleting || is == "ending", p.Daemon || is == "daemon"
					if is == "pending" {
						p.Phase, p.Ready = fleet.PodPending, false
					}
				}
			}
		case "silent":
			w.s.Nodes[f.Int(1)].AgentAlive, w.s.Nodes[f.Int(1)].AgentKnown = false, true
		case "agentless":
			w.s.Nodes[f.Int(1)].AgentAlive, w.s.Nodes[f.Int(1)].AgentKnown = false, false
		case "acked":
			left := len(w.s.Pods)
			if f.Has(1) {
				left = f.Int(1)
			}
			for i := range w.s.Pods {
				for k := range w.s.Loans {
					if p, l := &w.s.Pods[i], &w.s.Loans[k]; p.Class == fleet.PodOffline && p.Node == l.Node && left > 0 {
						p.NoticeLoan, p.NoticeEpoch, p.AckEpoch = l.ID, l.Epoch, l.Epoch
						left--
					}
				}
			}
		case "clean":
			p := &w.s.Nodes[f.Int(1)].Share.Parcels[0]
			p.Clean, p.CleanEpoch, p.CleanAt = true, int64(f.Int(2)), t0
		case "share":
			p := &w.s.Nodes[f.Int(1)].Share.Parcels[0]
			p.Epoch, p.Next = int64(f.Int(2)), fleet.PoolID(f[3])
		case "tenant":
			x := w.tenant(f[1], f[2], int64(f.Int(3)))
			for i := 4; i+1 < len(f); i += 2 {
				if f[i] == "under" {
					x.Parent = fleet.TenantID(f[i+1])
				} else if n := f.Int(i + 1); f[i] == "borrows" {
					x.BorrowingLimit = fleet.KnownAt(cpu(int64(n)), t0)
				} else {
					tellToGiveBack(x, time.Duration(n)*time.Minute)
				}
			}
		case "parcels":
			w.parcels(t, f[1:])
		case "job":
			w.job(f[1], f.Int(2), f.Int(3), f.Int(4), f[5:])
		case "on":
			w.on(f.Int(1), f[2], f.Int(3), f[4:])
		case "mode":
			for i := range w.s.Services {
				w.s.Services[i].Mode = fleet.Mode(f[1])
			}
			for i := range w.s.Pools {
				w.s.Pools[i].Mode = fleet.Mode(f[1])
			}
		case "frozen":
			w.s.Frozen = f.Rest(1)
		case "leads":
			w.s.WatchedSince = t0.Add(-time.Duration(f.Int(1)) * time.Minute)
		case "blind":
			blind = true
		default:
			return w.standbyLine(f)
		}
		return true
	}
	return scripttest.Script{Line: line, Out: func() string {
		in := w.input()
		for id := range in.Live {
			if blind {
				in.Live[id] = hpa.Live{}
			}
		}
		if thawed {
			in.Thawed = in.Snapshot.At
		}
		plan := made(in)
		return render(&plan)
	}}
}

// render renders what a plan does, in the order in which it is carried out.
func render(p *Plan) string {
	var b strings.Builder
	scale := func(word string, list []Scale) {
		for _, s := range list {
			fmt.Fprintf(&b, "%-9s %s from %d to %d: %s\n", word, s.Service, s.From, s.To, s.Why.Text())
		}
	}
	scale("lower", p.Lowers)
	standby := func(word string, list []Standby) {
		for _, s := range list {
			fmt.Fprintf(&b, "%-9s %s on %s: %s\n", word, s.Pod.Name, s.Node, s.Why.Text())
		}
	}
	standby("standby", p.Standbys)
	for _, m := range p.Moves {
		until := ""
		if m.Kind == MoveAnnounce && m.After.Phase == fleet.Noticed {
			until = fmt.Sprintf(", until %v from now", m.After.Deadline.Sub(p.At))
		}
		if m.Kind == MoveBegin && !m.After.Deadline.IsZero() {
			until = fmt.Sprintf(", to be left in %v, due in %v", m.After.Deadline.Sub(p.At), m.After.Due.Sub(p.At))
		}
		fmt.Fprintf(&b, "%-9s %s %s, %s %d -> %s %d%s: %s\n", strings.ToLower(string(m.Kind)), m.Node, m.After.Kind, m.Before.Phase, m.Before.Epoch, m.After.Phase,
			m.After.Epoch, until, m.Why.Text())
	}
	for _, n := range p.Notices {
		again := ""
		if n.Again {
			again = ", told again"
		}
		if n.TakenBack {
			fmt.Fprintf(&b, "work on   %s: the notice of epoch %d is taken back\n", n.Pod.Name, n.Epoch)
			continue
		}
		fmt.Fprintf(&b, "notice    %s of epoch %d, until %v from now%s\n", n.Pod.Name, n.Epoch, n.Deadline.Sub(p.At), again)
	}
	for _, e := range p.Evictions {
		fmt.Fprintf(&b, "evict     %s: %s\n", e.Pod.Name, e.Why.Text())
	}
	for _, k := range p.Kills {
		fmt.Fprintf(&b, "kill      %s: %s\n", k.Pod.Name, k.Why.Text())
	}
	for _, j := range p.Jobs {
		named := ""
		if len(j.Victims) > 0 {
			named = " (" + strings.Join(j.Victims, ", ") + ")"
		}
		fmt.Fprintf(&b, "job       %s/%s from %d to %d%s: %s\n", j.Job, j.Role, j.From, j.To, named, j.Why.Text())
	}
	for _, f := range p.Fillers {
		fmt.Fprintf(&b, "filler    %s on %s, %v\n", f.Purpose, f.Node, f.Room)
	}
	for _, m := range p.Marks {
		home, fence := "", ""
		if m.Want.HomeLabel {
			home = ", a home of offline"
		}
		if m.Want.Fence != fleet.FenceNone {
			fence = ", fence " + string(m.Want.Fence)
		}
		fmt.Fprintf(&b, "mark      %s: taint %v, open to offline %v, kept %v%s%s\n", m.Node, m.Want.HolderTaint, m.Want.OfflineLabel, m.Want.KeepNode, home, fence)
	}
	standby("return", p.Returns)
	scale("raise", p.Raises)
	for _, x := range p.Survivals {
		fmt.Fprintf(&b, "expected  %s for %v, due in %v\n", x.Loan, x.Until.Sub(p.At), x.Due.Sub(p.At))
	}
	for i := range p.Strays {
		fmt.Fprintf(&b, "stray     %s, %s\n", p.Strays[i].Node, p.Strays[i].Why.Code)
	}
	for _, w := range p.Withheld {
		fmt.Fprintf(&b, "withheld  %s: %s, by %s\n", w.Subject.String(), w.Action, w.By.Text())
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}
