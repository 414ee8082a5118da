package snapshot

import (
	"cmp"
	"slices"
	"strings"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/watch"
)

// addServices joins each ElasticService with its target and finds who else scales it. The oldest service of a target
// acts, whatever else is wrong with it: two that take turns would be worse than one that is blocked.
func (a *assembly) addServices() {
	all := a.c.Services.All()
	slices.SortFunc(all, func(x, y *watch.OwnService) int {
		if x.Older(&y.Header) {
			return -1
		}
		return 1
	})
	hpas := byTarget(a.c.HPAs.All())
	scaled := byTarget(a.c.ScaledObjects.All())
	crons := byTarget(a.c.CronHPAs.All())
	vpas := byTarget(a.c.VPAs.All())
	first := map[convert.TargetKey]fleet.ServiceID{}
	keeps := map[convert.TargetKey]bool{}
	for _, f := range all {
		s := f.Facts.Service
		s.Created = a.at(f.CreationTimestamp.Time)
		held := a.held(f.Namespace, f.Facts.Holds)
		s.Pause, s.Hold, s.Ended = cmp.Or(held.Pause, fleet.PauseNone), held.Hold, held.Ended
		s.Takeovers.Last = a.past("ElasticService", &f.Header, "status.takeovers.lastTime", s.Takeovers.Last)
		if s.Resized.OK {
			s.Resized.OK = !a.past("ElasticService", &f.Header, "status.recommendation.appliedTime", s.Resized.Value).IsZero()
		}
		w, unread := a.c.Target(f.Namespace, &f.Facts.Target)
		if w != nil {
			a.observeTarget(&s, f, w)
		}
		s.Blocked = blockedBy(&s, &f.Facts, first[f.Facts.Key], unread, hpas[f.Facts.Key], scaled[f.Facts.Key])
		if s.Mode.Acts() {
			s.Blocked = firstProblem(s.Blocked,
				func() fleet.Problem { return blockedByCron(&f.Facts, hpas[f.Facts.Key], crons) },
				func() fleet.Problem { return unscalable(&s, w) },
				func() fleet.Problem { return a.blockedByLeader(&s, w, hpas[f.Facts.Key]) })
		}
		if _, taken := first[f.Facts.Key]; !taken {
			first[f.Facts.Key] = s.ID
			if w != nil {
				a.ownPods(len(a.s.Services), w)
			}
		}
		if h := hpas[f.Facts.Key]; len(h) == 1 {
			s.HPA = &fleet.HPAFacts{Name: h[0].Name, Min: h[0].Min, Max: h[0].Max, Version: h[0].ResourceVersion,
				Own: h[0].Own()}
			if s.Actuation == fleet.ByHPAFloor {
				a.observeFloor(&s, f, h[0])
			}
		}
		if v := vpas[f.Facts.Key]; len(v) > 0 {
			s.VPA = v[0].Name
		}
		// One that acts by Scale has no use for a floor; any other may be about to, or only looks on, and then nothing
		// is undone for it.
		keeps[f.Facts.Key] = keeps[f.Facts.Key] || s.Actuation == fleet.ByHPAFloor || !s.Mode.Acts() || f.Facts.Problem.Any()
		a.s.Services = append(a.s.Services, s)
	}
	a.addOrphans(keeps)
}

// unscalable says why the controller must not write the size of a target that it reads. Under HPAFloor it writes none.
func unscalable(s *fleet.Service, w *watch.WorkloadFacts) fleet.Problem {
	if w == nil || w.Other == nil || s.Actuation != fleet.ByScale {
		return fleet.Problem{}
	}
	return w.Other.Unscalable
}

// firstProblem is the problem that is known already, else the first that a check finds.
func firstProblem(known fleet.Problem, checks ...func() fleet.Problem) fleet.Problem {
	for _, check := range checks {
		if known.Any() {
			break
		}
		known = check()
	}
	return known
}

// addOrphans lists the HPAs that were adopted for a service that is gone, names another target now, or scales it
// itself.
func (a *assembly) addOrphans(keeps map[convert.TargetKey]bool) {
	for _, h := range a.c.HPAs.All() {
		if h.Adopted.OK && !keeps[h.Target] && h.DeletionTimestamp == nil {
			a.s.Orphans = append(a.s.Orphans, fleet.AdoptedHPA{Name: fleet.Name{Namespace: h.Namespace, Name: h.Name},
				ID:  fleet.UID(h.UID),
				Min: h.Min, Own: h.Adopted.Value, Version: h.ResourceVersion})
		}
	}
}

func (a *assembly) observeTarget(s *fleet.Service, f *watch.OwnService, w *watch.WorkloadFacts) {
	s.TargetFound, s.TargetUID, s.Version = true, fleet.UID(w.UID), w.ResourceVersion
	s.Request = a.templateRequest(w.Namespace, w.Request, &w.Devices)
	if o := w.Other; o != nil {
		s.Selected, s.Workers, s.Untemplated, s.AnyRevision = true, o.Workers, !o.Templated, len(o.Revisions) == 0
	}
	a.tolerations[s.ID] = w.Tolerations
	if s.Gate = w.Gate; s.Standby > 0 {
		s.Disruptions = a.c.DisruptionsOf(w, a.s.At)
	}
	if s.PodsRefused = w.Refused; w.Lacks {
		if e := a.refused(watch.Owned{Namespace: w.Namespace, UID: w.UID}, statefulSetRefusedFor); e != nil {
			s.PodsRefused = e.Text
		}
	}
	s.Desired = fleet.KnownAt(w.Replicas, a.s.At)
	// Pods leave a StatefulSet by ordinal, and under an HPA it is the HPA that shrinks: only a ReplicaSet that we scale
	// can be steered.
	s.Steerable = w.Other == nil && f.Facts.Key.Kind == watch.KindDeployment && s.Actuation == fleet.ByScale
	if w.Replicas == 0 {
		s.SetToZero = ZeroBy(w.Writers, s.Min > 0 || !f.Facts.Scaled.IsZero())
	}
	if s.Actuation == fleet.ByScale && !f.Facts.Scaled.IsZero() {
		a.takenBack(s, f, w.Writers)
	}
}

// observeFloor reads who else writes the floor of an HPA. One that scales to 0 comes back by itself.
func (a *assembly) observeFloor(s *fleet.Service, f *watch.OwnService, h *watch.ScalerFacts) {
	if h.Min == 0 {
		s.SetToZero = ""
	}
	if h.Adopted.OK && !f.Facts.Scaled.IsZero() {
		a.takenBack(s, f, h.Writers)
	}
}

// takenBack counts a write of another manager over what Springtide had set.
func (a *assembly) takenBack(s *fleet.Service, f *watch.OwnService, writers []watch.ReplicaWriter) {
	by := watch.ForeignWriter(writers)
	s.ForeignWriter = by.Manager
	if by.Manager != "" {
		s.Takeovers = s.Takeovers.Taken(by.Manager, by.At, a.past("ElasticService", &f.Header, "status.lastScaleTime",
			f.Facts.Scaled))
	}
}

// ZeroBy names who set a target to 0, where that was not Springtide. The managed fields may name no owner: a patch of
// the scale subresource, as kubectl scale sends it, records none and takes ours. Then it was another one where
// Springtide would own its 0, since it has scaled the target, or sets none, since its minimum is above 0.
func ZeroBy(writers []watch.ReplicaWriter, notOurs bool) string {
	by := watch.ForeignWriter(writers).Manager
	if by == "" && len(writers) == 0 && notOurs {
		return "another component"
	}
	return by
}

// byTarget groups scalers by what they scale, each group by name.
func byTarget(list []*watch.ScalerFacts) map[convert.TargetKey][]*watch.ScalerFacts {
	out := map[convert.TargetKey][]*watch.ScalerFacts{}
	for _, s := range list {
		out[s.Target] = append(out[s.Target], s)
	}
	for _, group := range out {
		slices.SortFunc(group, func(x, y *watch.ScalerFacts) int { return cmp.Compare(x.Name, y.Name) })
	}
	return out
}

// blockedBy says why nothing may be done for a service, none when all is well. The first obstacle that an operator must
// clear comes first. In a mode that only looks on, scalers of other operators are no obstacle: the service is sized
// next to them, so that an operator sees what would be before taking over.
func blockedBy(s *fleet.Service, f *convert.ServiceFacts, first fleet.ServiceID, unread fleet.Problem, hpas,
	scaledObjects []*watch.ScalerFacts) fleet.Problem {
	if !s.Mode.Acts() {
		scaledObjects = nil
		hpas = slices.DeleteFunc(slices.Clone(hpas), func(h *watch.ScalerFacts) bool { return h.Parent != "" })
	}
	scaledObjects = slices.DeleteFunc(slices.Clone(scaledObjects), func(o *watch.ScalerFacts) bool { return o.Paused })
	switch {
	case f.Problem.Any():
		return f.Problem
	case first != "":
		return catalog.TargetConflicted.Of(f.Key.Kind, s.Target, first)
	case unread.Any():
		return unread
	case !s.TargetFound:
		return catalog.TargetNotFound.Of(f.Key.Kind, s.Target)
	case len(scaledObjects) > 0:
		return catalog.ScaledObjectFound.Of(scaledObjects[0].Name)
	case s.Actuation == fleet.ByHPAFloor && len(hpas) == 0:
		return catalog.HPAMissing.Of()
	case s.Actuation == fleet.ByHPAFloor && len(hpas) > 1:
		return catalog.HPAAmbiguous.Of(names(hpas))
	case s.Actuation == fleet.ByHPAFloor && hpas[0].Parent != "":
		return catalog.HPAOfScaledObject.Of(hpas[0].Name, hpas[0].Parent)
	case s.Actuation == fleet.ByScale && len(hpas) > 0:
		return catalog.HPAFound.Of(names(hpas))
	}
	return fleet.Problem{}
}

// blockedByLeader finds the stamp of a newer leader on what the service scales. A former leader is fenced and writes
// nothing anyway. A leader that holds its Lease would find each of its writes stale, for ever and in silence.
func (a *assembly) blockedByLeader(s *fleet.Service, w *watch.WorkloadFacts, hpas []*watch.ScalerFacts) fleet.Problem {
	kind, h, leader := s.TargetKind, &w.Header, w.Leader
	if s.Actuation == fleet.ByHPAFloor {
		kind, h, leader = watch.KindHPA, &hpas[0].Header, hpas[0].Leader
	}
	if a.leads.Epoch == 0 {
		return fleet.Problem{}
	}
	if leader.Lease != "" && leader.Lease != a.leads.Lease && a.stamped[h.UID] {
		return catalog.AnotherInstallation.Of(v1alpha1.AnnotationLeaderEpoch, kind, h.Namespace, h.Name,
			strings.ToLower(kind), h.Namespace, h.Name, v1alpha1.AnnotationLeaderEpoch)
	}
	theirs := a.leads.Fencing(leader)
	if theirs <= a.leads.Epoch {
		return fleet.Problem{}
	}
	return catalog.NewerLeader.Of(v1alpha1.AnnotationLeaderEpoch, kind, h.Namespace, h.Name, theirs, a.leads.Epoch,
		strings.ToLower(kind), h.Namespace, h.Name, v1alpha1.AnnotationLeaderEpoch)
}

// blockedByCron finds a CronHPA that sets the replicas of the target, or moves the bounds of its HPA.
func blockedByCron(f *convert.ServiceFacts, hpas []*watch.ScalerFacts,
	crons map[convert.TargetKey][]*watch.ScalerFacts) fleet.Problem {
	found := slices.Clone(crons[f.Key])
	for _, h := range hpas {
		found = append(found, crons[convert.KeyOf(h.Namespace, "", watch.KindHPA, h.Name)]...)
	}
	if len(found) == 0 {
		return fleet.Problem{}
	}
	return catalog.CronHPAFound.Of(names(found))
}

func names(list []*watch.ScalerFacts) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.Name
	}
	return strings.Join(out, ", ")
}
