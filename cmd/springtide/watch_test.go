package main

import (
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/v1alpha1"
)

// TestWatchPrintsWhatChanges: a row for each change below the table, and an error when the server ends the watch.
func TestWatchPrintsWhatChanges(t *testing.T) {
	w := newWorld(t)
	changes := watch.NewFakeWithChanSize(3, false)
	w.dyn.PrependWatchReactor(loans, clienttesting.DefaultWatchReactor(changes, nil))
	l := func(name, phase string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "springtide.dev/v1alpha1", "kind": "Loan",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"nodeName": "node-19", "kind": "Node", "from": "online", "to": "offline"},
			"status": map[string]any{"phase": phase, "epoch": int64(1)}}}
	}
	changes.Add(l("node-19-cc", "Emptying"))
	changes.Modify(l("node-19-cc", "Lent"))
	changes.Delete(l("node-19-cc", "Returned"))
	changes.Stop()
	golden(t, filepath.Join("testdata", "cluster", "watch.txt"), w.run("loans", "-w"))
}

// TestWatchWithEveryOutput: -w goes on in each format, and on explain.
func TestWatchWithEveryOutput(t *testing.T) {
	for _, line := range []string{"loans -w", "loans -w -o wide", "loans -w -o json", "loans -w -o yaml", "explain loan node-17-aa -w", "explain loan node-17-aa -w -o json", "explain loan node-17-aa -w -o yaml"} {
		w := newWorld(t)
		loan, err := w.dyn.Resource(v1alpha1.GroupVersion.WithResource(loans)).Get(t.Context(), "node-17-aa", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		changes := watch.NewFakeWithChanSize(2, false)
		w.dyn.PrependWatchReactor(loans, clienttesting.DefaultWatchReactor(changes, nil))
		changed := loan.DeepCopy()
		if err := unstructured.SetNestedField(changed.Object, "Fenced", "status", "phase"); err != nil {
			t.Fatal(err)
		}
		changes.Modify(changed)
		changes.Stop()
		if strings.HasPrefix(line, "explain") { // it reads the object again
			if err := w.dyn.Tracker().Update(v1alpha1.GroupVersion.WithResource(loans), changed, ""); err != nil {
				t.Fatal(err)
			}
		}
		got := w.run(strings.Fields(line)...)
		if !strings.Contains(got, "Fenced") || !strings.Contains(got, "the API server ended the watch") {
			t.Errorf("springtide %s printed\n%s", line, got)
		}
		if strings.HasPrefix(line, "explain") && strings.Count(got, "node-17-aa") < 4 {
			t.Errorf("springtide %s did not print the page again:\n%s", line, got)
		}
	}
}
