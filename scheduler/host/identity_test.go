package host

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// relisted plays that a watch was cut while an object was deleted and another one made under its name: the informer reports one update.
func (p *play) relisted(set, gone func(any), before, after any) {
	p.t.Helper()
	p.c.follow(set, gone).OnUpdate(before, after)
	p.mail()
}

// optionalKind finds the kind that is served by a resource.
func optionalKind(t *testing.T, resource string) *optional {
	t.Helper()
	for _, k := range optionals() {
		if k.gvrs[0].Resource == resource {
			return &k
		}
	}
	t.Fatalf("no kind %s", resource)
	return nil
}

// made is an object of some kind as an informer has it.
func made(kind, full, uid, version string, more map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for k, v := range more {
		u.Object[k] = v
	}
	u.SetAPIVersion("scheduling.k8s.io/v1alpha2")
	if kind != "PodGroup" {
		u.SetAPIVersion(v1alpha1.GroupVersion.String())
	}
	u.SetKind(kind)
	u.SetName(full)
	u.SetUID(types.UID(uid))
	u.SetResourceVersion(version)
	u.SetGeneration(1)
	return u
}

// TestAnotherPodUnderAName: a pod that was deleted and made again while the watch was cut leaves nothing behind: room, place in a gang, anti-affinity.
func TestAnotherPodUnderAName(t *testing.T) {
	again := func(o *corev1.Pod) *corev1.Pod {
		next := o.DeepCopy()
		next.UID, next.ResourceVersion, next.Spec.NodeName = o.UID+"-again", o.ResourceVersion+"9", ""
		return next
	}
	t.Run("room", func(t *testing.T) {
		p := newPlay(t)
		p.node("a", "4")
		o := p.pod("db-0", "3")
		p.settle()
		o = p.bound(o, "a")
		p.take()
		p.relisted(p.c.podSet, p.c.podEnded, o, again(o))
		p.settle()
		if got := p.take(); got["db-0"] != "a" {
			t.Errorf("the room of the former db-0 is held: bound %v", got)
		}
	})
	t.Run("place in a gang", func(t *testing.T) {
		p := newPlay(t)
		p.node("a", "4")
		p.c.setGroup("default/ring", &podGroup{namespace: "default", name: "ring", minCount: 2})
		one, two := p.pod("g0", "1", inGroup("ring")), p.pod("g1", "1", inGroup("ring"))
		p.settle()
		p.take()
		one, two = p.bound(one, "a"), p.bound(two, "a")
		p.relisted(p.c.podSet, p.c.podEnded, one, again(one))
		p.relisted(p.c.podSet, p.c.podEnded, two, again(two))
		if n := len(p.c.gangs.byKey["gang default/ring"].members); n != 2 {
			t.Errorf("the gang has %d members, want 2", n)
		}
	})
	t.Run("anti-affinity", func(t *testing.T) {
		p := newPlay(t)
		p.c.judge.terms = byLabel{}
		p.node("a", "4")
		o := p.pod("db-0", "1", func(o *corev1.Pod) { o.Labels = map[string]string{"apart": "db"} })
		p.settle()
		o = p.bound(o, "a")
		p.relisted(p.c.podSet, p.c.podEnded, o, again(o))
		if n := p.c.judge.repelling["db"]; n != 0 {
			t.Errorf("%d pods keep others away, want none: the former one is gone and the new one is not placed", n)
		}
	})
}

// TestAnotherGroupUnderAName: the condition is written on the PodGroup that is there, with the generation that was read.
func TestAnotherGroupUnderAName(t *testing.T) {
	p := newPlay(t)
	k := optionalKind(t, "podgroups")
	var wrote []*podGroup
	p.c.gangs.result = func(g *podGroup, _ bool, _ string) { wrote = append(wrote, g) }
	policy := map[string]any{"spec": map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(2)}}}}
	first, second := made("PodGroup", "ring", "first", "1", policy), made("PodGroup", "ring", "second", "7", policy)
	first.SetNamespace("default")
	second.SetNamespace("default")
	k.setIn(p.c)(first)
	p.relisted(k.setIn(p.c), k.goneIn(p.c), first, second)
	third := second.DeepCopy()
	third.SetGeneration(2)
	third.SetResourceVersion("8")
	p.relisted(k.setIn(p.c), k.goneIn(p.c), second, third)
	p.node("a", "4")
	for _, o := range []*corev1.Pod{p.pod("g0", "1", inGroup("ring")), p.pod("g1", "1", inGroup("ring"))} {
		p.settle()
		p.bound(o, "a")
	}
	if len(wrote) != 1 || wrote[0].uid != "second" || wrote[0].generation != 2 {
		t.Errorf("the condition was written for %+v, want the UID second and generation 2", wrote)
	}
}

// TestAnotherJobUnderAName: an ElasticJob that was made again begins at generation 1 again, and its minimum is read.
func TestAnotherJobUnderAName(t *testing.T) {
	p := newPlay(t)
	k := optionalKind(t, "elasticjobs")
	job := func(uid, version string, least int64) *unstructured.Unstructured {
		u := made("ElasticJob", "train", uid, version, map[string]any{"spec": map[string]any{"members": []any{map[string]any{"role": "worker",
			"workloadRef": map[string]any{"kind": "Job", "name": "train"}, "min": least}}}})
		u.SetNamespace("default")
		return u
	}
	first := job("first", "1", 2)
	k.setIn(p.c)(first)
	p.relisted(k.setIn(p.c), k.goneIn(p.c), first, job("second", "5", 3))
	if got := p.c.gangs.jobs["default/train"]; got == nil || len(got.roles) != 1 || got.roles[0].min != 3 {
		t.Errorf("the job is read as %+v, want a minimum of 3", got)
	}
}

// TestAnotherShareUnderAName: a NodeShare that was made again with the same generation is acknowledged.
func TestAnotherShareUnderAName(t *testing.T) {
	p := newPlay(t)
	p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
	p.c.setPool("batch", &poolFacts{name: "batch", class: fleet.Offline, selector: labels.Nothing()})
	p.node("a", "8")
	k := optionalKind(t, "nodeshares")
	of := func(uid, version string) *unstructured.Unstructured {
		return made("NodeShare", "a", uid, version, map[string]any{"spec": map[string]any{"nodeName": "a", "nodeUID": "uid-of-a", "parcels": []any{
			map[string]any{"cells": []any{int64(0)}, "holder": "web", "next": "batch", "loanName": "l", "loanUID": "l", "epoch": int64(1)}}}})
	}
	first := of("first", "1")
	k.setIn(p.c)(first)
	p.relisted(k.setIn(p.c), k.goneIn(p.c), first, of("second", "5"))
	if n := len(p.acked); n != 2 || p.acked[1].uid != "second" {
		t.Errorf("acknowledged %v, want both shares", p.acked)
	}
}

// TestAnotherNodeUnderAName: room that came home on a machine is not kept on another machine of its name.
func TestAnotherNodeUnderAName(t *testing.T) {
	p := newPlay(t)
	p.recallsForShop()
	p.c.setShare("a", share("a", 2))
	p.pod("other", "3")
	p.settle()
	if got := p.take(); len(got) != 0 {
		t.Fatalf("bound %v: the room is the shop's", got)
	}
	before := p.c.nodes["a"].node
	after := before.DeepCopy()
	after.UID, after.ResourceVersion = "another", "9"
	p.relisted(p.c.nodeSet, p.c.nodeGone, before, after)
	p.now = p.now.Add(time.Second)
	p.settle()
	if got := p.take(); got["other"] != "a" {
		t.Errorf("bound %v: room of a machine that is gone is kept on its successor", got)
	}
}

// TestAcknowledgementIsGivenAgain: an acknowledgement that was wiped from the status, which changes no generation, is written again; one that stands is not.
func TestAcknowledgementIsGivenAgain(t *testing.T) {
	p := newPlay(t)
	p.c.setPool("web", &poolFacts{name: "web", class: fleet.Online, selector: labels.Everything()})
	p.c.setPool("batch", &poolFacts{name: "batch", class: fleet.Offline, selector: labels.Nothing()})
	p.node("a", "8")
	k := optionalKind(t, "nodeshares")
	of := func(version string, acked bool) *unstructured.Unstructured {
		u := made("NodeShare", "a", "first", version, map[string]any{"spec": map[string]any{"nodeName": "a", "nodeUID": "uid-of-a", "parcels": []any{
			map[string]any{"cells": []any{int64(0)}, "holder": "web", "next": "batch", "loanName": "l", "loanUID": "l", "epoch": int64(1)}}}})
		if acked {
			u.Object["status"] = map[string]any{"acks": []any{map[string]any{"instance": "springtide-scheduler-0", "generation": int64(1)}}}
		}
		return u
	}
	k.setIn(p.c)(of("1", false))
	k.setIn(p.c)(of("2", true))
	if n := len(p.acked); n != 1 {
		t.Fatalf("acknowledged %d times, want once", n)
	}
	k.setIn(p.c)(of("3", false))
	if n := len(p.acked); n != 2 {
		t.Errorf("acknowledged %d times, want twice: the first was wiped", n)
	}
}
