package reclaim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/scripttest"
)

// TestScripts asks four machines of 64 cores in two sockets, m00 to m03, for what they can give back:
//
//	job ID low|high SAVED [NEEDS]  SAVED ago it saved its work, which takes it NEEDS
//	gang ID MIN [divisible]        the job's workers, of which each pod here is one, are a gang of at least MIN
//	rested ID                      it was recalled ten minutes ago
//	lent MACHINE all|SOCKET JOB CORES   a parcel is away, and the job runs on it
//	until MACHINE IN               what its borrowers were told to expect
//	online MACHINE CORES           an online pod
//	ask CORES IN [emergency]       choose what comes home
func TestScripts(t *testing.T) { scripttest.Run(t, newScript) }

func newScript(*testing.T) scripttest.Script {
	s := fleetOf(4)
	s.Pools[1].NoticeMax = 10 * time.Minute
	var b strings.Builder
	line := func(f scripttest.Line) bool {
		switch f[0] {
		case "job":
			j := fleet.Job{ID: fleet.JobID(f[1]), LastCheckpoint: fleet.KnownAt(t0.Add(-f.Duration(3)), t0)}
			if f.Has(4) {
				j.Checkpoint = f.Duration(4)
			}
			if f[2] == "high" {
				j.Priority = fleet.PriorityHigh
			}
			s.Jobs = append(s.Jobs, j)
		case "gang":
			j := &s.Jobs[slices.IndexFunc(s.Jobs, func(j fleet.Job) bool { return j.ID == fleet.JobID(f[1]) })]
			j.Members = []fleet.Member{{Role: "worker", Kind: "Job", Min: int32(f.Int(2)), Divisible: f.Has(3)}}
		case "rested":
			j := &s.Jobs[slices.IndexFunc(s.Jobs, func(j fleet.Job) bool { return j.ID == fleet.JobID(f[1]) })]
			j.LastRecalled = fleet.KnownAt(t0.Add(-10*time.Minute), t0)
		case "lent":
			var cells []int
			if f[2] != "all" {
				cells = []int{2 * f.Int(2), 2*f.Int(2) + 1}
			}
			lend(s, f.Int(1), cells...)
			pod(s, f.Int(1), fleet.PodOffline, f[3], fleet.MilliCPU(1000*f.Int(4))).Role = "worker"
			for i := range s.Jobs {
				if s.Jobs[i].ID == fleet.JobID(f[3]) && len(s.Jobs[i].Members) > 0 {
					s.Jobs[i].Members[0].Active++
				}
			}
		case "until":
			for i := range s.Loans {
				if l := &s.Loans[i]; l.Node == s.Nodes[f.Int(1)].ID {
					l.ExpectedUntil = t0.Add(f.Duration(2))
				}
			}
		case "online":
			pod(s, f.Int(1), fleet.PodOnline, "shop/web", fleet.MilliCPU(1000*f.Int(2)))
		case "ask":
			s.Sort()
			a := ask(int64(f.Int(1)))
			a.Due, a.Emergency = t0.Add(f.Duration(2)), f.Has(3)
			take, short := Choose(s, a, opts)
			for _, r := range take {
				_, why, _ := strings.Cut(r.Why.Text(), " give way")
				broken, _, _ := strings.Cut(why, ",")
				fmt.Fprintf(&b, "recall %s: notice in %v, evictions in %v, clean in %v; %v of core-time lost by %v%s\n", r.Loan, r.NoticeAt.Sub(t0), r.Deadline.Sub(t0),
					r.Due.Sub(t0), r.WorkLost, r.Jobs, broken)
			}
			fmt.Fprintf(&b, "short of %v cores\n", short.CPU.Cores())
		default:
			return false
		}
		return true
	}
	return scripttest.Script{Line: line, Out: b.String}
}
