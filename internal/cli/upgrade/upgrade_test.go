package upgrade

import (
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/springtide/springtide/internal/cli/build"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/scripttest"
)

// TestUpgradeCheck: what stands between the cluster and this version is named, and nothing is written.
func TestUpgradeCheck(t *testing.T) {
	w := newWorld(t)
	was := build.Version
	build.Version = "0.3.0"
	t.Cleanup(func() { build.Version = was })
	got := w.Run("upgrade", "check")
	for image, want := range map[string]string{
		"springtide.dev/springtide:0.2.1":          "OK       controller    0.2.1 -> 0.3.0",
		"springtide.dev/springtide:0.1.0":          "Problem  controller    the controller runs 0.1.0: 0.3.0 is more than one release ahead",
		"registry.example:5000/springtide:0.4.0":   "Advice   controller    the controller runs 0.4.0, which is newer than this version 0.3.0",
		"registry.example:5000/springtide@sha256:": "Advice   controller    the controller runs image",
	} {
		w := newWorld(t)
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.ControllerNamespace, Name: cluster.ControllerDeployment}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
		if err := w.Core.Tracker().Add(d); err != nil {
			t.Fatal(err)
		}
		if text := w.Run("upgrade", "check"); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", image, want, text)
		}
	}
	old := newWorld(t)
	definitions := old.Dyn.Resource(cluster.Definitions)
	u, err := definitions.Get(t.Context(), "loans.springtide.dev", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedStringSlice(u.Object, []string{"v1alpha0", "v1alpha1"}, "status", "storedVersions"); err != nil {
		t.Fatal(err)
	}
	if _, err := definitions.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if text, want := old.Run("upgrade", "check"), "objects of loans.springtide.dev are stored as v1alpha0, which this version does not know"; !strings.Contains(text, want) || strings.Contains(text, "as v1alpha1") {
		t.Errorf("no %q in\n%s", want, text)
	}
	scripttest.Golden(t, filepath.Join("testdata", "cluster", "upgrade.txt"), got)
	if strings.Contains(got, "wrote:") {
		t.Error("something was written")
	}
}
