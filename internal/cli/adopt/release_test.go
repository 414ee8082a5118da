package adopt

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/clitest"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/takeover"
)

// TestReleaseByMarks: a service that is gone, or whose definition is, is released by the name of its target; what the owner had paused stays so.
func TestReleaseByMarks(t *testing.T) {
	for _, c := range []struct {
		name, line string
		noKind     bool
		want       string
	}{
		{"the definition is gone", "release shop/cart", true, "HorizontalPodAutoscaler shop/cart: minReplicas 46 -> 4, given back"},
		{"the definition is gone, of KEDA's", "release shop/mailer", true, "ScaledObject shop/mailer goes on"},
		{"the service is gone", "release shop/crat", false, "no autoscaler of a target crat carries a mark of Springtide; autoscalers of other targets do: to fix, name the target, as in springtide release shop/cart"},
		{"nothing is there", "release bank/cart", false, "there is no ElasticService bank/cart, and no autoscaler of a target cart carries a mark of Springtide (exit"},
		{"dry run", "release shop/cart --dry-run", true, "minReplicas 46 -> 4, given back (dry run)"},
	} {
		w := newWorld(t)
		if c.noKind {
			w.Dyn.PrependReactor("get", cluster.Services, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, clitest.ErrNoDefinition })
		}
		if got := w.Run(strings.Fields(c.line)...); !strings.Contains(got, c.want) {
			t.Errorf("%s: no %q in\n%s", c.name, c.want, got)
		}
	}
	w := newWorld(t)
	r := w.Dyn.Resource(takeover.Resources[takeover.ScaledObject]).Namespace("shop")
	if _, err := r.Patch(t.Context(), "mail", types.MergePatchType, []byte(`{"metadata":{"annotations":{"autoscaling.keda.sh/paused":"true"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Run("adopt", "--kind", "scaledobject", "shop/mail", "--take-over", "--accept-lost")
	w.Run("adopt", "--kind", "scaledobject", "shop/mail", "--take-over", "--accept-lost") // a second run does not forget it
	if got := w.Run("release", "shop/mail"); !strings.Contains(got, "ScaledObject shop/mail stays paused, as its owner had it") {
		t.Errorf("release of what its owner had paused:\n%s", got)
	}
	u, err := r.Get(t.Context(), "mail", metav1.GetOptions{})
	if err != nil || u.GetAnnotations()[v1alpha1.AnnotationKEDAPaused] != "true" || u.GetAnnotations()[v1alpha1.AnnotationTakenOver] != "" {
		t.Errorf("the ScaledObject has %v (%v)", u.GetAnnotations(), err)
	}
}
