package deploy_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/plane"
)

// TestTheControllerAloneWritesWhereALoanStands: on a real API server no other account writes the status of a Loan, an
// admin included, and everything else of a Loan, and of other kinds, is as it was. The controller itself ends no loan
// from Lent or Noticed but one of a machine that vanished.
func TestTheControllerAloneWritesWhereALoanStands(t *testing.T) {
	p, _, admin := startWith(t, plane.Options{EmulatedVersion: "1.34"}, render(t))
	ctx := t.Context()
	as := func(user string, groups ...string) dynamic.Interface {
		cfg := rest.CopyConfig(p.RESTConfig())
		cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
		c, err := dynamic.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	controller := as("system:serviceaccount:springtide-system:springtide-controller", "system:serviceaccounts", "system:serviceaccounts:springtide-system")
	loans := v1alpha1.GroupVersion.WithResource("loans")
	create := func(name string) {
		t.Helper()
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Loan", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"nodeName": "n1", "nodeUID": "u1", "kind": "Node", "cells": []any{int64(0)}, "from": "web", "to": "batch",
				"capacity": map[string]any{"cpu": "1"}, "beginTime": "2026-01-01T00:00:00Z"}}}
		if _, err := controller.Resource(loans).Create(ctx, u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	status := func(c dynamic.Interface, name, phase, vanished string) error {
		t.Helper()
		now, err := admin.Resource(loans).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		next := map[string]any{"phase": phase, "epoch": int64(3)}
		if vanished != "" {
			next["vanishedNodeUID"] = vanished
		}
		now.Object["status"] = next
		_, err = c.Resource(loans).UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	}
	create("probe")
	await(t, "the policy to take effect", func() bool { return apierrors.IsForbidden(status(admin, "probe", "Emptying", "")) })

	others := map[string]dynamic.Interface{"an admin": admin,
		"a user with every right":                            as("kate", "system:masters"),
		"the scheduler's account":                            as("system:serviceaccount:springtide-system:springtide-scheduler", "system:masters"),
		"an account of the name elsewhere":                   as("system:serviceaccount:shop:springtide-controller", "system:masters"),
		"the agent's account":                                as("system:serviceaccount:springtide-agent:springtide-agent", "system:masters"),
		"the garbage collector, say, or a GitOps controller": as("system:serviceaccount:argocd:argocd-application-controller", "system:masters")}
	create("a")
	for _, phase := range []string{"Emptying", "Lent", "Noticed", "Draining", "Returned"} {
		for who, c := range others {
			if err := status(c, "a", phase, ""); !apierrors.IsForbidden(err) {
				t.Errorf("%s writes %s: %v", who, phase, err)
			}
		}
		if err := status(controller, "a", phase, ""); err != nil {
			t.Errorf("the controller writes %s: %v", phase, err)
		}
	}
	// Whatever is no status is as it was.
	create("b")
	asks := []byte(`{"metadata":{"annotations":{"` + v1alpha1.AnnotationRecall + `":"maintenance"}}}`)
	if _, err := admin.Resource(loans).Patch(ctx, "b", types.MergePatchType, asks, metav1.PatchOptions{}); err != nil {
		t.Errorf("an operator asks for a recall: %v", err)
	}
	if err := admin.Resource(loans).Delete(ctx, "b", metav1.DeleteOptions{}); err != nil {
		t.Errorf("an admin deletes a loan: %v", err)
	}
	shares := v1alpha1.GroupVersion.WithResource("nodeshares")
	share := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "NodeShare", "metadata": map[string]any{"name": "n1"},
		"spec": map[string]any{"nodeUID": "u1"}}}
	if _, err := admin.Resource(shares).Create(ctx, share, metav1.CreateOptions{}); err != nil {
		t.Errorf("a NodeShare: %v", err)
	}
	if _, err := admin.Resource(shares).Patch(ctx, "n1", types.MergePatchType, []byte(`{"status":{"observedGeneration":1}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Errorf("the status of a NodeShare: %v", err)
	}
	// The rule of the kind holds for the controller too.
	for _, phase := range []string{"Lent", "Noticed"} {
		name := "gone-" + map[string]string{"Lent": "lent", "Noticed": "noticed"}[phase]
		create(name)
		for _, before := range []string{"Lent", "Noticed"} {
			if err := status(controller, name, before, ""); err != nil {
				t.Fatal(err)
			}
			if before == phase {
				break
			}
		}
		for _, c := range []struct {
			vanished string
			refused  bool
		}{{"", true}, {"u2", true}, {name, true}, {"u1", false}} {
			if err := status(controller, name, "Returned", c.vanished); apierrors.IsInvalid(err) != c.refused || !c.refused && err != nil {
				t.Errorf("%s -> Returned, of machine %q: %v", phase, c.vanished, err)
			}
		}
	}
	// A loan that is made again begins in Noticed; one that began otherwise has been lent before.
	create("adopted")
	if err := status(controller, "adopted", "Noticed", ""); err != nil {
		t.Errorf("a new loan begins in Noticed: %v", err)
	}
	create("emptying")
	if err := status(controller, "emptying", "Emptying", ""); err != nil {
		t.Fatal(err)
	}
	if err := status(controller, "emptying", "Noticed", ""); !apierrors.IsInvalid(err) {
		t.Errorf("Emptying -> Noticed: %v", err)
	}
	for _, phase := range []string{"Draining", "Returned", "Fenced", "WrittenOff"} {
		create("late")
		if err := status(controller, "late", phase, ""); !apierrors.IsInvalid(err) {
			t.Errorf("a new loan begins in %s: %v", phase, err)
		}
		if err := admin.Resource(loans).Delete(ctx, "late", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
