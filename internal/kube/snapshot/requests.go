package snapshot

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// addRequests says what one more pod of each service and member will ask for: what its pods ask for. A template is not the pod: a LimitRange, an admission
// webhook, the overhead of a RuntimeClass and a resize in place change what comes of it. Where there is no pod of the newest revision, the template's requests stand.
func (a *assembly) addRequests() {
	for i := range a.s.Services {
		s := &a.s.Services[i]
		a.asked = a.asked[:0]
		for k := range s.Pods {
			a.asked = asksOf(a.asked, &s.Pods[k])
		}
		s.Template = s.Request
		s.Request = middle(s.Request, a.asked)
	}
	if len(a.s.Jobs) == 0 {
		return
	}
	asked := map[memberRef][]fleet.Resources{}
	for i := range a.s.Pods {
		if p := &a.s.Pods[i]; p.Job != "" {
			ref := memberRef{p.Job, p.Role}
			asked[ref] = asksOf(asked[ref], p)
		}
	}
	for i := range a.s.Jobs {
		j := &a.s.Jobs[i]
		for k := range j.Members {
			m := &j.Members[k]
			m.Request = middle(m.Request, asked[memberRef{j.ID, m.Role}])
		}
	}
}

// asksOf adds what a pod asks for, where it is of the newest revision and stays.
func asksOf(asked []fleet.Resources, p *fleet.Pod) []fleet.Resources {
	if !p.CurrentRevision || p.Deleting {
		return asked
	}
	return append(asked, p.Requests)
}

// middle is the median of what pods ask for, of each amount by itself: one pod that was resized by hand is no measure of the next one. The order of asked changes.
func middle(template fleet.Resources, asked []fleet.Resources) fleet.Resources {
	if len(asked) == 0 {
		return template
	}
	// Nearly always all are equal, and this runs for each workload in each cycle.
	if !slices.ContainsFunc(asked, func(r fleet.Resources) bool { return r != asked[0] }) {
		return asked[0]
	}
	return fleet.Resources{
		CPU:    medianOf(asked, func(r *fleet.Resources) fleet.MilliCPU { return r.CPU }),
		Memory: medianOf(asked, func(r *fleet.Resources) fleet.Bytes { return r.Memory }),
		GPU:    medianOf(asked, func(r *fleet.Resources) int64 { return r.GPU }),
		Pods:   medianOf(asked, func(r *fleet.Resources) int64 { return r.Pods }),
	}
}

func medianOf[T cmp.Ordered](list []fleet.Resources, amount func(*fleet.Resources) T) T {
	slices.SortFunc(list, func(x, y fleet.Resources) int { return cmp.Compare(amount(&x), amount(&y)) })
	return amount(&list[len(list)/2])
}
