package view

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/scripttest"
)

// TestWatchPrintsWhatChanges: a row for each change below the table, and an error when the server ends the watch.
func TestWatchPrintsWhatChanges(t *testing.T) {
	w := newWorld(t)
	changes := watch.NewFakeWithChanSize(3, false)
	w.Dyn.PrependWatchReactor(cluster.Loans, clienttesting.DefaultWatchReactor(changes, nil))
	l := func(name, phase string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "springtide.dev/v1alpha1", "kind": "Loan",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"nodeName": "node-19", "kind": "Node", "from": "online", "to": "offline"},
			"status": map[string]any{"phase": phase, "epoch": int64(1)}}}
	}
	changes.Add(l("node-19-cc", "Emptying"))
	changes.Modify(l("node-19-cc", "Lent"))
	changes.Delete(l("node-19-cc", "Returned"))
	changes.Stop()
	scripttest.Golden(t, filepath.Join("testdata", "cluster", "watch.txt"), w.Run("loans", "-w"))
}
