package kube

import (
	"cmp"
	"slices"
	"strings"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/object"
)

// The kinds of targets that the controller reads and scales.
const (
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	kindJob         = "Job"
	kindHPA         = "HorizontalPodAutoscaler"
)

// addServices joins each ElasticService with its target and finds who else scales it. The oldest service of a target acts, whatever
// else is wrong with it: two that take turns would be worse than one that is blocked.
func (a *assembly) addServices() {
	all := a.c.services.All()
	slices.SortFunc(all, func(x, y *ownService) int {
		if x.Older(&y.Header) {
			return -1
		}
		return 1
	})
	hpas := byTarget(a.c.hpas.All())
	scaled := byTarget(a.c.scaledObjects.All())
	crons := byTarget(a.c.cronHPAs.All())
	vpas := byTarget(a.c.vpas.All())
	first := map[convert.TargetKey]fleet.ServiceID{}
	keeps := map[convert.TargetKey]bool{}
	for _, f := range all {
		s := f.Facts.Service
		s.Created = a.at(f.CreationTimestamp.Time)
		s.Takeovers.Last = a.past("ElasticService", &f.Header, "status.takeovers.lastTime", s.Takeovers.Last)
		if s.Resized.OK {
			s.Resized.OK = !a.past("ElasticService", &f.Header, "status.recommendation.appliedTime", s.Resized.Value).IsZero()
		}
		w := a.target(&f.Facts)
		if w != nil {
			a.observeTarget(&s, f, w)
		}
		s.Blocked = blockedBy(&s, &f.Facts, first[f.Facts.Key], hpas[f.Facts.Key], scaled[f.Facts.Key])
		if !s.Blocked.Any() && s.Mode.Acts() {
			s.Blocked = blockedByCron(&f.Facts, hpas[f.Facts.Key], crons)
		}
		if !s.Blocked.Any() && s.Mode.Acts() {
			s.Blocked = a.blockedByLeader(&s, w, hpas[f.Facts.Key])
		}
		if _, taken := first[f.Facts.Key]; !taken {
			first[f.Facts.Key] = s.ID
			if w != nil {
				a.services[owned{w.Namespace, w.UID}] = len(a.s.Services)
				a.updates[owned{w.Namespace, w.UID}] = w.updateRevision
			}
		}
		if h := hpas[f.Facts.Key]; len(h) == 1 {
			s.HPA = &fleet.HPAFacts{Name: h[0].Name, Min: h[0].min, Max: h[0].max, Version: h[0].ResourceVersion}
			if s.Actuation == fleet.ByHPAFloor {
				a.observeFloor(&s, f, h[0])
			}
		}
		if v := vpas[f.Facts.Key]; len(v) > 0 {
			s.VPA = v[0].Name
		}
		// One that acts by Scale has no use for a floor; any other may be about to, or only looks on, and then nothing is undone for it.
		keeps[f.Facts.Key] = keeps[f.Facts.Key] || s.Actuation == fleet.ByHPAFloor || !s.Mode.Acts() || f.Facts.Problem.Any()
		a.s.Services = append(a.s.Services, s)
	}
	a.addOrphans(keeps)
}

// addOrphans lists the HPAs that were adopted for a service that is gone, names another target now, or scales it itself.
func (a *assembly) addOrphans(keeps map[convert.TargetKey]bool) {
	for _, h := range a.c.hpas.All() {
		if h.adopted.OK && !keeps[h.target] && h.DeletionTimestamp == nil {
			a.s.Orphans = append(a.s.Orphans, fleet.AdoptedHPA{Name: fleet.Name{Namespace: h.Namespace, Name: h.Name}, ID: fleet.UID(h.UID),
				Min: h.min, Own: h.adopted.Value, Version: h.ResourceVersion})
		}
	}
}

func (a *assembly) target(f *convert.ServiceFacts) *workloadFacts {
	var m *object.Mirror[*workloadFacts]
	switch f.Key.Kind {
	case kindDeployment:
		m = a.c.deployments
	case kindStatefulSet:
		m = a.c.statefulSets
	}
	w, ok := m.Get(f.Key.Namespace, f.Key.Name)
	if !ok {
		return nil
	}
	return w
}

func (a *assembly) observeTarget(s *fleet.Service, f *ownService, w *workloadFacts) {
	s.TargetFound, s.TargetUID, s.Version = true, fleet.UID(w.UID), w.ResourceVersion
	s.Request = a.templateRequest(w.Namespace, w.request, &w.devices)
	a.tolerations[s.ID] = w.tolerations
	if s.PodsRefused = w.refused; f.Facts.Key.Kind == kindStatefulSet && w.lacks {
		if e := a.refused(owned{w.Namespace, w.UID}, statefulSetRefusedFor); e != nil {
			s.PodsRefused = e.text
		}
	}
	s.Desired = fleet.KnownAt(w.replicas, a.s.At)
	// Pods leave a StatefulSet by ordinal, and under an HPA it is the HPA that shrinks: only a ReplicaSet that we scale can be steered.
	s.Steerable = f.Facts.Key.Kind == kindDeployment && s.Actuation == fleet.ByScale
	if w.replicas == 0 {
		s.SetToZero = zeroBy(w.writers, s.Min > 0 || !f.Facts.Scaled.IsZero())
	}
	if s.Actuation == fleet.ByScale && !f.Facts.Scaled.IsZero() {
		a.takenBack(s, f, w.writers)
	}
}

// observeFloor reads who else writes the floor of an HPA. One that scales to 0 comes back by itself.
func (a *assembly) observeFloor(s *fleet.Service, f *ownService, h *scalerFacts) {
	if h.min == 0 {
		s.SetToZero = ""
	}
	if h.adopted.OK && !f.Facts.Scaled.IsZero() {
		a.takenBack(s, f, h.writers)
	}
}

// takenBack counts a write of another manager over what Springtide had set.
func (a *assembly) takenBack(s *fleet.Service, f *ownService, writers []replicaWriter) {
	by := foreignWriter(writers)
	s.ForeignWriter = by.manager
	if by.manager != "" {
		s.Takeovers = s.Takeovers.Taken(by.manager, by.at, a.past("ElasticService", &f.Header, "status.lastScaleTime", f.Facts.Scaled))
	}
}

// zeroBy names who set a target to 0, where that was not Springtide. The managed fields may name no owner: a patch of the scale subresource, as kubectl scale
// sends it, records none and takes ours. Then it was another one where Springtide would own its 0, since it has scaled the target, or sets none, since its
// minimum is above 0.
func zeroBy(writers []replicaWriter, notOurs bool) string {
	by := foreignWriter(writers).manager
	if by == "" && len(writers) == 0 && notOurs {
		return "another component"
	}
	return by
}

// foreignWriter names the manager that took spec.replicas from us. Managed fields name the present owners alone, so it
// is asked only after we have scaled: before that, the target's creator owns its replicas by right.
func foreignWriter(writers []replicaWriter) replicaWriter {
	if len(writers) == 0 || slices.ContainsFunc(writers, func(w replicaWriter) bool { return w.manager == v1alpha1.FieldManager }) {
		return replicaWriter{}
	}
	return slices.MinFunc(writers, func(a, b replicaWriter) int { return strings.Compare(a.manager, b.manager) })
}

// byTarget groups scalers by what they scale, each group by name.
func byTarget(list []*scalerFacts) map[convert.TargetKey][]*scalerFacts {
	out := map[convert.TargetKey][]*scalerFacts{}
	for _, s := range list {
		out[s.target] = append(out[s.target], s)
	}
	for _, group := range out {
		slices.SortFunc(group, func(x, y *scalerFacts) int { return cmp.Compare(x.Name, y.Name) })
	}
	return out
}

// blockedBy says why nothing may be done for a service, none when all is well. The first
// obstacle that an operator must clear comes first. In a mode that only looks on, scalers of other operators are no obstacle: the service is
// sized next to them, so that an operator sees what would be before taking over.
func blockedBy(s *fleet.Service, f *convert.ServiceFacts, first fleet.ServiceID, hpas, scaledObjects []*scalerFacts) fleet.Problem {
	if !s.Mode.Acts() {
		scaledObjects = nil
		hpas = slices.DeleteFunc(slices.Clone(hpas), func(h *scalerFacts) bool { return h.parent != "" })
	}
	scaledObjects = slices.DeleteFunc(slices.Clone(scaledObjects), func(o *scalerFacts) bool { return o.paused })
	switch {
	case f.Problem.Any():
		return f.Problem
	case first != "":
		return catalog.TargetConflicted.Of(f.Key.Kind, s.Target, first)
	case !s.TargetFound:
		return catalog.TargetNotFound.Of(f.Key.Kind, s.Target)
	case len(scaledObjects) > 0:
		return catalog.ScaledObjectFound.Of(scaledObjects[0].Name)
	case s.Actuation == fleet.ByHPAFloor && len(hpas) == 0:
		return catalog.HPAMissing.Of()
	case s.Actuation == fleet.ByHPAFloor && len(hpas) > 1:
		return catalog.HPAAmbiguous.Of(names(hpas))
	case s.Actuation == fleet.ByHPAFloor && hpas[0].parent != "":
		return catalog.HPAOfScaledObject.Of(hpas[0].Name, hpas[0].parent)
	case s.Actuation == fleet.ByScale && len(hpas) > 0:
		return catalog.HPAFound.Of(names(hpas))
	}
	return fleet.Problem{}
}

// blockedByLeader finds the stamp of a newer leader on what the service scales. A former leader is fenced and writes nothing anyway. A leader that
// holds its Lease would find each of its writes stale, for ever and in silence.
func (a *assembly) blockedByLeader(s *fleet.Service, w *workloadFacts, hpas []*scalerFacts) fleet.Problem {
	kind, h, leader := s.TargetKind, &w.Header, w.leader
	if s.Actuation == fleet.ByHPAFloor {
		kind, h, leader = kindHPA, &hpas[0].Header, hpas[0].leader
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
func blockedByCron(f *convert.ServiceFacts, hpas []*scalerFacts, crons map[convert.TargetKey][]*scalerFacts) fleet.Problem {
	found := slices.Clone(crons[f.Key])
	for _, h := range hpas {
		found = append(found, crons[convert.TargetKey{Namespace: h.Namespace, Kind: kindHPA, Name: h.Name}]...)
	}
	if len(found) == 0 {
		return fleet.Problem{}
	}
	return catalog.CronHPAFound.Of(names(found))
}

func names(list []*scalerFacts) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.Name
	}
	return strings.Join(out, ", ")
}
