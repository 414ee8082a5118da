package kube

import (
	"slices"

	"github.com/springtide/springtide/fleet"
)

// addRequests says what one more pod of each service and member will ask for: what its pods ask for. A template is not the pod: a LimitRange, an admission
// webhook, the overhead of a RuntimeClass and a resize in place change what comes of it. Where there is no pod of the newest revision, the template's requests stand.
func (a *assembly) addRequests() {
	for i := range a.s.Services {
		s := &a.s.Services[i]
		s.Template = s.Request
		s.Request = a.middle(s.Request, s.Pods)
	}
	if len(a.s.Jobs) == 0 {
		return
	}
	pods := map[memberRef][]fleet.Pod{}
	for i := range a.s.Pods {
		if p := &a.s.Pods[i]; p.Job != "" {
			ref := memberRef{p.Job, p.Role}
			pods[ref] = append(pods[ref], *p)
		}
	}
	for i := range a.s.Jobs {
		j := &a.s.Jobs[i]
		for k := range j.Members {
			m := &j.Members[k]
			m.Request = a.middle(m.Request, pods[memberRef{j.ID, m.Role}])
		}
	}
}

// middle is the median of what pods of the newest revision ask for, of each amount by itself: one pod that was resized by hand is no measure of the next one.
func (a *assembly) middle(template fleet.Resources, pods []fleet.Pod) fleet.Resources {
	asked := a.asked[:0]
	for i := range pods {
		if p := &pods[i]; p.CurrentRevision && !p.Deleting {
			asked = append(asked, p.Requests)
		}
	}
	a.asked = asked
	if len(asked) == 0 {
		return template
	}
	of := func(amount func(*fleet.Resources) int64) int64 {
		slices.SortFunc(asked, func(x, y fleet.Resources) int { return int(min(max(amount(&x)-amount(&y), -1), 1)) })
		return amount(&asked[len(asked)/2])
	}
	return fleet.Resources{
		CPU:    fleet.MilliCPU(of(func(r *fleet.Resources) int64 { return int64(r.CPU) })),
		Memory: fleet.Bytes(of(func(r *fleet.Resources) int64 { return int64(r.Memory) })),
		GPU:    of(func(r *fleet.Resources) int64 { return r.GPU }),
		Pods:   of(func(r *fleet.Resources) int64 { return r.Pods }),
	}
}
