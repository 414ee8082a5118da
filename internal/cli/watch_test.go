package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cluster"
)

// TestWatchWithEveryOutput: -w goes on in each format, and on explain.
func TestWatchWithEveryOutput(t *testing.T) {
	for _, line := range []string{"loans -w", "loans -w -o wide", "loans -w -o json", "loans -w -o yaml", "explain loan node-17-aa -w", "explain loan node-17-aa -w -o json", "explain loan node-17-aa -w -o yaml"} {
		w := newWorld(t)
		loan, err := w.Dyn.Resource(v1alpha1.GroupVersion.WithResource(cluster.Loans)).Get(t.Context(), "node-17-aa", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		changes := watch.NewFakeWithChanSize(2, false)
		w.Dyn.PrependWatchReactor(cluster.Loans, clienttesting.DefaultWatchReactor(changes, nil))
		changed := loan.DeepCopy()
		if err := unstructured.SetNestedField(changed.Object, "Fenced", "status", "phase"); err != nil {
			t.Fatal(err)
		}
		changes.Modify(changed)
		changes.Stop()
		if strings.HasPrefix(line, "explain") { // it reads the object again
			if err := w.Dyn.Tracker().Update(v1alpha1.GroupVersion.WithResource(cluster.Loans), changed, ""); err != nil {
				t.Fatal(err)
			}
		}
		got := w.Run(strings.Fields(line)...)
		if !strings.Contains(got, "Fenced") || !strings.Contains(got, "the API server ended the watch") {
			t.Errorf("springtide %s printed\n%s", line, got)
		}
		if strings.HasPrefix(line, "explain") && strings.Count(got, "node-17-aa") < 4 {
			t.Errorf("springtide %s did not print the page again:\n%s", line, got)
		}
	}
}
