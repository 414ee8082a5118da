package view

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/springtide/springtide/internal/cli/screen"
)

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
{"apiVersion": "springtide.dev/v1alpha1", "kind": "FestivalPlan",
	"metadata": {"name": "double-eleven-2026-main-venue"}, "spec": {"approved": true},
 "status": {"phase": "Waiting", "start": "2026-11-10T16:00:00Z", "end": "2026-11-11T16:00:00Z",
	"conditions": [{"type": "Accepted", "status": "False", "reason": "ServiceNotFound",
	"lastTransitionTime": "2026-11-20T08:00:00Z", "message": "x"}]}}
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
		if err := w.Dyn.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"services -A", "services -n commerce-prod", "pools", "quotas", "loans", "jobs -A", "festivals", "nodes"} {
		got := w.Run(strings.Fields(line)...)
		for row := range strings.SplitSeq(strings.TrimSpace(got), "\n") {
			if n := utf8.RuneCountInString(row); n > screen.MostWidth {
				t.Errorf("springtide %s: %d columns: %s", line, n, row)
			}
		}
	}
	refused := w.Run("services", "recommendation-ranking-v2", "-n", "commerce-prod")
	if !strings.Contains(refused, "Refused") || !strings.Contains(refused, "ScaledObjectFound") || strings.Contains(refused, "1912") {
		t.Errorf("a refused service:\n%s", refused)
	}
}
