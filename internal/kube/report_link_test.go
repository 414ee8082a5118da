package kube

import (
	"slices"
	"strings"
	"testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
)

// A service shows how it follows its group, and is named while it holds the group back: once.
func TestReportLink(t *testing.T) {
	objects := kubetest.Shop()
	for _, o := range objects {
		if s, ok := o.(*v1alpha1.ElasticService); ok {
			s.Spec.LinkGroup = "checkout"
		}
	}
	r := newReported(t, objects...)
	id := r.snapshot(t).Services[0].ID
	status := func() v1alpha1.ElasticServiceStatus {
		return objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, string(id)).Status
	}
	r.cycle(t, nil)
	if l := status().Link; l == nil || l.Group != "checkout" || l.Source != "Refused" || l.Note != "it is the only member of its group" {
		t.Errorf("alone: %+v", l)
	}
	for _, c := range []struct {
		ratio        float64 // stated: it wins over what was learned, or refused
		link         planner.Link
		source, note string
	}{
		{0, planner.Link{Hub: "shop/front", Link: portrait.Link{Ratio: 0.4, Fit: 0.93, Hours: 200}}, "Learned", "0.4 of its load for one of shop/front, which explains 93 % of it over 200 hours"},
		{0, planner.Link{Hub: "shop/front", Link: portrait.Link{Refused: "3 hours"}}, "Refused", "3 hours"},
		{0, planner.Link{Hub: id, Link: portrait.Link{Ratio: 1}}, "Learned", "the other members are compared with it"},
		{0.4, planner.Link{Hub: "shop/front", Link: portrait.Link{Ratio: 2, Fit: 0.93, Hours: 200}}, "Declared", "0.4 replicas for one unit of the chain's work"},
		{3, planner.Link{Hub: "shop/front", Link: portrait.Link{Refused: "3 hours"}}, "Declared", "3 replicas for one unit of the chain's work"},
	} {
		r.clock.Time = r.clock.Time.Add(r.Options.StatusEvery)
		r.cycle(t, func(rep *loop.Report) {
			rep.Snapshot.Services[0].LinkRatio = c.ratio
			rep.Links = map[fleet.ServiceID]planner.Link{id: c.link}
		})
		if l := status().Link; l.Source != c.source || l.Note != c.note {
			t.Errorf("%+v, want %s: %s", l, c.source, c.note)
		}
	}
	held := func(rep *loop.Report) {
		rep.Plan.Links = []planner.LinkView{{Group: "shop/checkout", Bottleneck: id,
			Why: reason.Of(reason.HoldsChainBack, reason.Of(reason.MaxReplicas), 3, 9)}}
	}
	_, events := r.cycle(t, held)
	if len(events) != 1 || !strings.HasPrefix(events[0], "Warning ChainBottleneck link group shop/checkout can do no more than this service: max replicas") {
		t.Errorf("events %v", events)
	}
	if !slices.Contains(kubetest.Said(status().Conditions), "ChainBottleneck=True/HeldBack") {
		t.Errorf("conditions %v", kubetest.Said(status().Conditions))
	}
	if _, events = r.cycle(t, held); len(events) > 0 {
		t.Errorf("told again: %v", events)
	}
	r.cycle(t, nil)
	if !slices.Contains(kubetest.Said(status().Conditions), "ChainBottleneck=False/KeepsUp") {
		t.Errorf("conditions %v", kubetest.Said(status().Conditions))
	}
}
