package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/scripttest"
)

// standbyLine reads a line of a script that is about standby.
func (w *world) standbyLine(f scripttest.Line) bool {
	first := func(change func(*fleet.Pod)) {
		svc := w.service1(f[1])
		for i := range svc.Pods[:f.Int(2)] {
			change(&svc.Pods[i])
		}
	}
	switch f[0] {
	case "staged":
		w.staged(f[1], time.Duration(f.Int(2))*time.Minute)
	case "stands":
		w.stands(f[1], f.Int(2), time.Duration(f.Int(3))*time.Second)
	case "ungated":
		first(func(p *fleet.Pod) { p.Gated = false })
	case "refused":
		w.refused = map[fleet.UID]bool{}
		pods := w.service1(f[1]).Pods
		for _, p := range pods[len(pods)-f.Int(2):] {
			w.refused[p.ID] = true
		}
	case "old":
		first(func(p *fleet.Pod) { p.CurrentRevision = false })
	case "unready":
		first(func(p *fleet.Pod) { p.Ready = false })
	case "ending":
		first(func(p *fleet.Pod) { p.Deleting = true })
	case "breaks":
		w.service1(f[1]).Disruptions = fleet.KnownAt(int32(f.Int(2)), t0)
	case "most":
		w.service1(f[1]).Max = int32(f.Int(2))
	case "pause":
		w.service1(f[1]).Pause = fleet.Pause(f[2])
	case "change":
		return w.changeLine(f)
	case "holds":
		return w.holdsLine(f)
	case "full":
		n := &w.s.Nodes[f.Int(1)]
		w.s.Pods = append(w.s.Pods, fleet.Pod{ID: fleet.UID("full-" + n.Name),
			Name: fleet.Name{Namespace: "other", Name: "full-" + n.Name},
			Node: n.ID, NodeName: n.Name, Class: fleet.PodOnline, Phase: fleet.PodRunning, Ready: true, Created: t0,
			Requests: fleet.Resources{CPU: fleet.MilliCPU(1000 * f.Int(2))}})
	case "orphaned":
		i := slices.IndexFunc(w.s.Services, func(s fleet.Service) bool { return s.ID == fleet.ServiceID("shop/"+f[1]) })
		for k := range w.s.Services[i].Pods {
			w.s.Services[i].Pods[k].Service = ""
		}
		w.copyPods(&w.s.Services[i])
		w.s.Services = slices.Delete(w.s.Services, i, i+1)
		return true
	default:
		return false
	}
	for i := range w.s.Services {
		w.copyPods(&w.s.Services[i])
	}
	return true
}

// staged gives the pods of a service the gate.
func (w *world) staged(name string, standby time.Duration) {
	svc := w.service1(name)
	svc.Standby, svc.Gate = standby, true
	for i := range svc.Pods {
		svc.Pods[i].Gated = true
	}
	w.copyPods(svc)
}

// stands puts the last pods of a service into standby.
func (w *world) stands(name string, n int, since time.Duration) {
	svc := w.service1(name)
	for i := len(svc.Pods) - n; i < len(svc.Pods); i++ {
		p := &svc.Pods[i]
		p.Ready, p.Standby, p.FullCPU = false, fleet.KnownAt(t0.Add(-since), t0), p.Requests.CPU
		p.Requests.CPU = fleet.StandbyCPU(p.Requests.CPU)
	}
	w.copyPods(svc)
}

// copyPods brings the pods of the snapshot to what a service says of them.
func (w *world) copyPods(svc *fleet.Service) {
	for i := range svc.Pods {
		for k := range w.s.Pods {
			if w.s.Pods[k].ID == svc.Pods[i].ID {
				w.s.Pods[k] = svc.Pods[i]
			}
		}
	}
}

// TestStandbyHolds draws services in any state and compares each plan with what must hold of it. The sums are computed
// here by what remains of the snapshot, and not by the planner.
func TestStandbyHolds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		pods, load := rapid.IntRange(2, 30).Draw(r, "pods"), rapid.IntRange(1, 200).Draw(r, "cores")
		stands := rapid.IntRange(0, pods-1).Draw(r, "standing by")
		w := newWorld(6).service("web", pods, 0, 5, float64(load))
		w.staged("web", 15*time.Minute)
		svc := w.service1("web")
		if rapid.Bool().Draw(r, "budget") {
			svc.Disruptions = fleet.KnownAt(int32(rapid.IntRange(0, 10).Draw(r, "may break")), t0)
		}
		w.stands("web", stands, time.Duration(rapid.IntRange(0, 1200).Draw(r, "since"))*time.Second)
		svc.Mode = rapid.SampledFrom([]fleet.Mode{fleet.Auto, fleet.Auto, fleet.Recommend, fleet.Observe}).Draw(r, "mode")
		svc.Pause = rapid.SampledFrom([]fleet.Pause{fleet.PauseNone, fleet.PauseNone, fleet.PauseAll, fleet.PauseIn,
			fleet.PauseOut}).Draw(r, "pause")
		if rapid.IntRange(0, 5).Draw(r, "frozen") == 0 {
			w.s.Frozen = "a drill"
		}
		if rapid.IntRange(0, 5).Draw(r, "new leader") == 0 {
			w.s.WatchedSince = t0
		}
		in := w.input()
		blind := rapid.IntRange(0, 4).Draw(r, "blind") == 0
		if blind {
			in.Live["shop/web"] = hpa.Live{}
		}
		if err := wrongStandby(in.Snapshot, made(in), blind); err != "" {
			r.Fatal(err)
		}
	})
}

// wrongStandby says what does not hold of a plan.
func wrongStandby(s *fleet.Snapshot, p Plan, blind bool) string {
	svc := &s.Services[0]
	standing, target := len(svc.StandingBy()), &p.Targets[0]
	takes := len(p.Standbys) + len(p.Lowers)
	switch {
	case s.Frozen != "" && takes+len(p.Returns)+len(p.Raises) > 0:
		return "something is done under a freeze"
	case svc.Pause == fleet.PauseAll && takes+len(p.Returns)+len(p.Raises) > 0:
		return "something is done under a pause"
	case svc.Pause == fleet.PauseIn && takes > 0, svc.Pause == fleet.PauseOut && len(p.Returns)+len(p.Raises) > 0:
		return "the pause of a direction does not hold"
	case takes > 0 && (!svc.Mode.Acts() || !s.Watching(DefaultOptions().Window) || blind):
		return "something is taken without a right or evidence"
	case svc.Disruptions.OK && len(p.Standbys) > int(svc.Disruptions.Value):
		return "more pods leave traffic than budgets let"
	case len(p.Returns) > standing:
		return "a pod returns twice"
	case len(p.Standbys) > 0 && len(p.Returns) > 0:
		return "pods leave and come back in one plan"
	}
	if back := blind || !svc.Mode.Acts(); back && s.Frozen == "" && svc.Pause != fleet.PauseAll &&
		svc.Pause != fleet.PauseOut {
		if len(p.Returns) != standing {
			return fmt.Sprintf("%d of %d pods come back", len(p.Returns), standing)
		}
		return ""
	}
	return wrongSize(s, p, standing, target)
}

// wrongSize compares what a plan makes of a size with the size.
func wrongSize(s *fleet.Snapshot, p Plan, standing int, target *hpa.Target) string {
	if len(p.Withheld) > 0 {
		return "" // less than the size asks for
	}
	svc := &s.Services[0]
	asked := svc.Desired.Value
	if len(p.Raises) > 0 {
		asked = p.Raises[0].To
	}
	if len(p.Lowers) > 0 {
		asked = p.Lowers[0].To
	}
	left := standing - len(p.Returns) + len(p.Standbys)
	for _, l := range p.Lowers {
		left -= len(l.Victims)
		for _, v := range l.Victims {
			i := slices.IndexFunc(svc.Pods, func(q fleet.Pod) bool { return q.ID == v.ID })
			if !svc.StandbyOver(&svc.Pods[i], s.At) {
				return "a pod is deleted before its standby is over"
			}
		}
	}
	if serves := int(asked) - left; serves != int(target.Replicas) {
		return fmt.Sprintf("%d replicas are to serve, and %d will", target.Replicas, serves)
	}
	return ""
}
