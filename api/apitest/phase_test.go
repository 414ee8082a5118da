package apitest

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/validate/offline"
	"github.com/springtide/springtide/reason"
)

// TestPhasesAreThoseOfTheMachine: the API server lets a loan go exactly where the phase machine can take it, for every pair of phases. That a machine is
// gone ends a loan from any phase, and the loan names the machine; no other step names one.
func TestPhasesAreThoseOfTheMachine(t *testing.T) {
	definitions, err := offline.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	d := definitions[schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "Loan"}]
	loan := func(p fleet.Phase, vanished bool) map[string]any {
		status := map[string]any{"phase": string(p), "epoch": int64(1)}
		if vanished {
			status["vanishedNodeUID"] = "u"
		}
		return map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Loan",
			"metadata": map[string]any{"name": "a", "resourceVersion": "7"},
			"spec": map[string]any{"nodeName": "n", "nodeUID": "u", "kind": "Node", "cells": []any{int64(0)}, "from": "a", "to": "b",
				"capacity": map[string]any{"cpu": "1"}, "beginTime": "2026-11-10T12:00:00Z"},
			"status": status,
		}
	}
	for _, from := range fleet.Phases() {
		next, gone := reachable(from)
		for _, to := range fleet.Phases() {
			errs := d.Update(loan(to, false), loan(from, false))
			want := to == from || slices.Contains(next, to)
			if got := len(errs) == 0; got != want {
				t.Errorf("%s -> %s: accepted %v, want %v (%v)", from, to, got, want, errs)
			}
		}
		if errs := d.Update(loan(gone, true), loan(from, false)); len(errs) > 0 {
			t.Errorf("%s -> %s, its machine is gone: %v", from, gone, errs)
		}
	}
}

// reachable tries every step of the machine on a loan in the phase; gone is where a machine that vanished takes it.
func reachable(p fleet.Phase) (out []fleet.Phase, gone fleet.Phase) {
	now := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	l := fleet.Loan{Phase: p, Epoch: 1, KillAt: now}
	clean := &fleet.ShareParcel{Clean: true, CleanEpoch: 1, CleanAt: now}
	for _, step := range []func() (fleet.Loan, error){
		func() (fleet.Loan, error) { return l.Lend(now, clean) },
		func() (fleet.Loan, error) { return l.Cancel(now, reason.Reason{}) },
		func() (fleet.Loan, error) { return l.Recall(now, now, now, reason.Reason{}) },
		func() (fleet.Loan, error) { return l.TurnBack(now, reason.Reason{}) },
		func() (fleet.Loan, error) { return l.Drain(now, true) },
		func() (fleet.Loan, error) { return l.Fence(now, reason.Reason{}) },
		func() (fleet.Loan, error) { return l.WriteOff(now, reason.Reason{}) },
		func() (fleet.Loan, error) { return l.Return(now, clean) },
	} {
		if after, err := step(); err == nil {
			out = append(out, after.Phase)
		}
	}
	return out, l.NodeGone(now).Phase
}
