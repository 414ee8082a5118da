package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/springtide/springtide/api/v1alpha1"
)

// eachCommand walks the tree of commands, cobra's own left out.
func eachCommand(c *cobra.Command, visit func(*cobra.Command)) {
	for _, below := range c.Commands() {
		if below.Hidden || below.Name() == "help" || below.Name() == "completion" {
			continue
		}
		visit(below)
		eachCommand(below, visit)
	}
}

// TestEveryHelpHasAnExample: and each line of it that begins with the binary names commands and flags that there are.
func TestEveryHelpHasAnExample(t *testing.T) {
	root := newRootCommand()
	eachCommand(root, func(c *cobra.Command) {
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
			return
		}
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("the example of %s shows another command: %s", c.CommandPath(), c.Example)
		}
		for line := range strings.SplitSeq(c.Example, "\n") {
			words := strings.Fields(line)
			if len(words) == 0 || words[0] != "springtide" {
				continue
			}
			found, _, err := root.Find(words[1:])
			if err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			for _, w := range words {
				name, isFlag := strings.CutPrefix(w, "--")
				name, _, _ = strings.Cut(name, "=")
				if isFlag && found.Flags().Lookup(name) == nil && found.InheritedFlags().Lookup(name) == nil && name != "" {
					t.Errorf("%q: %s has no flag --%s", line, found.CommandPath(), name)
				}
			}
		}
	})
}

func TestDidYouMean(t *testing.T) {
	root := newRootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs([]string{"servces"})
	err := root.Execute()
	if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), "did you mean services?") {
		t.Errorf("got %v", err)
	}
}

func TestAsPlugin(t *testing.T) {
	root := newRootCommand()
	asPlugin(root)
	services, _, err := root.Find([]string{"services"})
	if err != nil {
		t.Fatal(err)
	}
	if got := services.UseLine(); !strings.HasPrefix(got, "kubectl springtide services") {
		t.Errorf("usage %q", got)
	}
	if !strings.Contains(services.Example, "  kubectl springtide services -A") || strings.Contains(services.Example, "kubectl kubectl") {
		t.Errorf("example %q", services.Example)
	}
	if got := calledAsPlugin("see springtide doctor (springtide thaw ends it), springtide.dev/x, deploy/springtide is"); got != "see kubectl springtide doctor (kubectl springtide thaw ends it), springtide.dev/x, deploy/springtide is" {
		t.Errorf("%q", got)
	}
}

func TestColoursByMeaning(t *testing.T) {
	var out bytes.Buffer
	table := &table{out: &out, colours: true, tight: true}
	if err := table.print([][]string{{"NAME", "STATE", "REASON"}, {"OK", "Refused", "OK"}, {"b", "OK", "x"}, {"c", "Whatever", "y"}}); err != nil {
		t.Fatal(err)
	}
	want := "NAME  STATE     REASON\nOK    " + colourBad + "Refused" + colourEnd + "   OK\nb     " + colourGood + "OK" + colourEnd + "        x\nc     Whatever  y\n"
	if out.String() != want {
		t.Errorf("got %q\nwant %q", &out, want)
	}
	if coloursFor(&out) {
		t.Error("what is no terminal is coloured")
	}
}

// realistic are objects with names and numbers as large clusters have them.
func realistic(t *testing.T) []runtime.Object {
	t.Helper()
	const text = `{"apiVersion": "springtide.dev/v1alpha1", "kind": "ElasticService", "metadata": {"name": "recommendation-ranking-v2", "namespace": "commerce-prod"},
 "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "recommendation-ranking-v2"}, "mode": "Recommend", "replicas": {"min": 120, "max": 2400}},
 "status": {"observedGeneration": 4, "observedTime": "2026-11-20T09:36:00Z", "replicas": 1840, "readyReplicas": 1836, "desiredReplicas": 1912, "floorReplicas": 1900, "tide": {"model": "seasonal", "peakReplicas": 2310, "peakTime": "2026-11-20T12:30:00Z"},
  "reason": "1912 of forecast (p95, ready in 90 s): 1840 -> 1912; reactive:cpu 1800; the pool has no more room for it", "conditions": [
  {"type": "Accepted", "status": "False", "reason": "ScaledObjectFound", "lastTransitionTime": "2026-11-20T08:00:00Z", "message": "x"}]}}
{"apiVersion": "springtide.dev/v1alpha1", "kind": "ElasticService", "metadata": {"name": "checkout", "namespace": "commerce-prod"},
 "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout"}, "mode": "Auto", "replicas": {"min": 120, "max": 2400}},
 "status": {"observedGeneration": 4, "observedTime": "2026-11-20T09:36:00Z", "replicas": 1840, "readyReplicas": 1836, "desiredReplicas": 1912, "floorReplicas": 1900, "tide": {"model": "seasonal", "peakReplicas": 2310, "peakTime": "2026-11-20T12:30:00Z"},
  "reason": "the load fell by 80 percent in five minutes and nothing confirms that, so nothing scales in: see FallUnconfirmed", "conditions": [
  {"type": "Accepted", "status": "True", "reason": "Accepted", "lastTransitionTime": "2026-11-20T08:00:00Z", "message": "x"},
  {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "lastTransitionTime": "2026-11-20T08:00:00Z", "message": "x"}]}}
{"apiVersion": "springtide.dev/v1alpha1", "kind": "CapacityPool", "metadata": {"name": "online-general-purpose-a"}, "spec": {"class": "Offline", "mode": "Recommend", "lendableUnit": "Socket"},
 "status": {"observedGeneration": 1, "nodes": 20000, "capacity": {"cpu": "1280000"}, "requested": {"cpu": "904000"}, "lent": {"cpu": "218000"}, "lentNodes": 3406, "lentSockets": 12, "moving": 120,
  "pinned": [{"node": "gpu-h800-rack17-node042", "by": "x"}, {"node": "gpu-h800-rack17-node043", "by": "x"}],
  "conditions": [{"type": "Ready", "status": "False", "reason": "ModeRecommend", "lastTransitionTime": "2026-11-20T08:00:00Z", "message": "x"}]}}
{"apiVersion": "springtide.dev/v1alpha1", "kind": "CapacityQuota", "metadata": {"name": "company-commerce-search"}, "spec": {"parent": "company-commerce", "guarantee": {"cpu": "128000"}},
 "status": {"observedGeneration": 1, "entitled": {"cpu": "127400500m"}, "limit": {"cpu": "160000"}, "used": {"cpu": "131072250m"}, "borrowed": {"cpu": "3072"}, "lent": {"cpu": "12400"}, "over": {"cpu": "3072"}, "drainDeadline": "2026-11-20T08:00:00Z",
  "conditions": [{"type": "Ready", "status": "True", "reason": "ShortAhead", "lastTransitionTime": "2026-11-20T08:00:00Z", "message": "x"}, {"type": "GuaranteeKept", "status": "False", "reason": "Oversold", "lastTransitionTime": "2026-11-20T08:00:00Z", "message": "x"}]}}
{"apiVersion": "springtide.dev/v1alpha1", "kind": "Loan", "metadata": {"name": "gpu-h800-rack17-node042-1f2e3d"}, "spec": {"nodeName": "gpu-h800-rack17-node042", "kind": "Socket", "from": "online-general-a", "to": "offline-batch", "cells": [0, 1]},
 "status": {"phase": "WrittenOff", "epoch": 12, "since": "2026-11-20T08:00:00Z", "due": "2026-11-20T08:06:00Z", "expectedUntil": "2026-11-20T20:00:00Z", "reason": "4 pods did not end within their grace and the machine was cut off by its taint"}}
{"apiVersion": "springtide.dev/v1alpha1", "kind": "ElasticJob", "metadata": {"name": "pretrain-llm-70b-run-0042", "namespace": "research-foundation"}, "spec": {"priority": "High", "members": [{"role": "worker", "min": 128, "max": 2048}]},
 "status": {"observedGeneration": 2, "desired": 2048, "active": 1984, "lastRecallTime": "2026-11-20T08:00:00Z", "gang": {"phase": "BackedOff"}, "eta": {"expected": "2026-11-20T22:00:00Z", "reason": "StableRoom"}, "reason": "waits for room on stable machines"}}
{"apiVersion": "springtide.dev/v1alpha1", "kind": "FestivalPlan", "metadata": {"name": "double-eleven-2026-main-venue"}, "spec": {"start": "2026-11-10T16:00:00Z", "end": "2026-11-11T16:00:00Z", "approved": true, "lifts": []},
 "status": {"phase": "Waiting", "conditions": [{"type": "Accepted", "status": "False", "reason": "ServiceNotFound", "lastTransitionTime": "2026-11-20T08:00:00Z", "message": "x"}]}}
{"apiVersion": "springtide.dev/v1alpha1", "kind": "NodeShare", "metadata": {"name": "gpu-h800-rack17-node042"}, "spec": {"nodeUID": "5b1b6a0e-9b1d-4b57-8d65-2f1f0f6a7d11", "parcels": [
  {"loanName": "gpu-h800-rack17-node042-1f2e3d", "holder": "Offline", "next": "Online"}, {"loanName": "gpu-h800-rack17-node042-4a5b6c", "holder": "Online", "next": "Offline"}]}}`
	var out []runtime.Object
	for doc := range strings.SplitSeq(text, "\n{\"apiVersion\"") {
		if !strings.HasPrefix(doc, "{") {
			doc = "{\"apiVersion\"" + doc
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(doc)); err != nil {
			t.Fatalf("%v in %s", err, doc)
		}
		out = append(out, u)
	}
	return out
}

// TestTablesFitATerminal: default tables of realistic objects are at most 120 columns wide, and show no zeros of what is refused.
func TestTablesFitATerminal(t *testing.T) {
	w := newWorld(t)
	for _, o := range realistic(t) {
		if err := w.dyn.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"services -A", "services -n commerce-prod", "pools", "quotas", "loans", "jobs -A", "festivals", "nodes"} {
		got := w.run(strings.Fields(line)...)
		for row := range strings.SplitSeq(strings.TrimSpace(got), "\n") {
			if n := utf8.RuneCountInString(row); n > mostWidth {
				t.Errorf("springtide %s: %d columns: %s", line, n, row)
			}
		}
	}
	refused := w.run("services", "recommendation-ranking-v2", "-n", "commerce-prod")
	if !strings.Contains(refused, "Refused") || !strings.Contains(refused, "ScaledObjectFound") || strings.Contains(refused, "1912") {
		t.Errorf("a refused service:\n%s", refused)
	}
}

func TestManagedFieldsAreLeftOut(t *testing.T) {
	s := &v1alpha1.ElasticService{ObjectMeta: metav1.ObjectMeta{Name: "cart", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}}
	for _, format := range []string{"json", "yaml"} {
		var out bytes.Buffer
		if err := encode(&out, format, map[string]any{"items": []any{s}}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "anagedFields") || !strings.Contains(out.String(), "cart") {
			t.Errorf("%s: %s", format, &out)
		}
	}
}

func TestExplainAsksTheController(t *testing.T) {
	w := newWorld(t)
	got := w.run("explain", "service", "shop/cart")
	if !strings.Contains(got, "Decisions") || !strings.Contains(got, "no way to the controller") {
		t.Errorf("without a controller:\n%s", got)
	}
	fmt.Fprint(t.Output(), got)
}
