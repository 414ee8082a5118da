package hostlists

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
)

// maxCooldowns is how often a cool-down doubles at most times over: a machine that is broken costs a try every sixteen
// cool-downs, and one that was fixed is back within as many.
const maxCooldowns = 16

// ring is the memory of one job's host list: who failed, how often, and until when it is left out. A member is known by
// its host, under which an operator makes a pod again where the old one was.
type ring struct {
	hosts map[string]*ringHost
	// published is the list as it was written last.
	published string
	at        time.Time
	listed    int
	// unlisted are the members that were off the list when it was published last, since a smaller size takes them, with the time since when;
	// going are those of the plan that is being carried out.
	unlisted, going map[string]time.Time
}

// ringHost is what was seen at a host last.
type ringHost struct {
	ringMember
	present  bool
	failures int32
	until    time.Time
}

// ringMember is one pod of the role that is listed.
type ringMember struct {
	host, name string
	id         fleet.UID
	created    time.Time
	restarts   int32
	ready      bool
	// leaving members have a notice, or are going: their end is no failure.
	leaving bool
}

// newRing takes up what a status says, so that a new leader does not list a member that failed a minute ago.
func newRing(was *v1alpha1.HostListStatus) *ring {
	r := &ring{hosts: map[string]*ringHost{}}
	if was != nil {
		for i := range was.LeftOut {
			x := &was.LeftOut[i]
			r.hosts[x.Host] = &ringHost{failures: x.Failures, until: x.Until.UTC()}
		}
	}
	return r
}

// turn takes up whom the plan of this cycle takes off the list. Without any, those of before stay off until their operator had the time to end
// them; should the plan have changed, they come back then.
func (r *ring) turn(now time.Time) {
	if r.going != nil {
		r.unlisted, r.going = r.going, nil
		return
	}
	maps.DeleteFunc(r.unlisted, func(_ string, since time.Time) bool { return now.Sub(since) >= 2*HostsLag })
}

// list looks at the members and returns the hosts that a ring should be made of, in the order in which they came: those
// who stay keep their ranks. A member with a notice goes off the list at once, while it still works: a ring that
// shrinks by its list loses nothing, one that loses a member goes back to its last commit. The list is never cut below
// floor for a failure: Horovod gives up a job that stays below its minimum for long, and a bad member may be better
// than none.
func (r *ring) list(now time.Time, cooldown time.Duration, floor int, members []ringMember) []string {
	seen := map[string]bool{}
	var good, resting []ringMember
	slices.SortFunc(members, func(a, b ringMember) int { return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name)) })
	for _, m := range members {
		h := r.hosts[m.host]
		if h == nil {
			h = &ringHost{}
			r.hosts[m.host] = h
		}
		if h.failed(&m) && !now.Before(h.until) {
			h.failures++
			h.until = now.Add(cooldown * time.Duration(min(int64(1)<<min(h.failures-1, 30), maxCooldowns)))
		}
		h.ringMember, h.present = m, true
		seen[m.host] = true
		switch {
		case !m.ready || m.leaving:
		case now.Before(h.until):
			resting = append(resting, m)
		default:
			good = append(good, m)
		}
	}
	r.forget(now, cooldown, seen)
	if short := floor - len(good); short > 0 {
		slices.SortStableFunc(resting, func(a, b ringMember) int { return r.hosts[a.host].until.Compare(r.hosts[b.host].until) })
		good = append(good, resting[:min(short, len(resting))]...)
		slices.SortFunc(good, func(a, b ringMember) int { return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name)) })
	}
	out := make([]string, len(good))
	for i := range good {
		out[i] = good[i].host
	}
	return out
}

// failed compares what is at a host with what was there last: a member that was ready and is not, whose container was
// started again, or in whose place another pod is though it had no notice. A member that was not ready had failed
// already, or never began. A host that was empty in between says nothing: it was scaled in, and out again.
func (h *ringHost) failed(m *ringMember) bool {
	return h.present && h.ready && !h.leaving && !m.leaving && (m.id != h.id || m.restarts > h.restarts || !m.ready)
}

// forget lets go of hosts that are empty, and of failures that are so long ago that the next one is a first one.
func (r *ring) forget(now time.Time, cooldown time.Duration, seen map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(r.hosts)) {
		h := r.hosts[name]
		h.present = seen[name]
		if h.failures > 0 && now.Sub(h.until) > maxCooldowns*cooldown {
			h.failures, h.until = 0, time.Time{}
		}
		if !h.present && h.failures == 0 {
			delete(r.hosts, name)
		}
	}
}

// leftOut lists who rests, by host.
func (r *ring) leftOut(now time.Time) []v1alpha1.LeftOutHost {
	var out []v1alpha1.LeftOutHost
	for _, name := range slices.Sorted(maps.Keys(r.hosts)) {
		if h := r.hosts[name]; now.Before(h.until) && len(out) < v1alpha1.MaxLeftOut {
			out = append(out, v1alpha1.LeftOutHost{Host: name, Until: *convert.Stamp(h.until), Failures: h.failures})
		}
	}
	return out
}

// The keys of a host list.
const (
	KeyHosts  = "hosts"
	KeyScript = "discover_hosts.sh"
)

// hostData is the content of the ConfigMap: a file of lines host:slots, and a script that prints them without a
// request.
func hostData(hosts []string, slots int32) map[string]string {
	var lines, script strings.Builder
	script.WriteString("#!/bin/sh\n")
	for _, h := range hosts {
		fmt.Fprintf(&lines, "%s:%d\n", h, slots)
		fmt.Fprintf(&script, "echo %s:%d\n", h, slots)
	}
	return map[string]string{KeyHosts: lines.String(), KeyScript: script.String()}
}
