package explain

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/fake"
	restclient "k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cluster"
)

// TestExplainAsksThePartitionOfThePod: the service leads to any process, so it is asked until the one answers that places the pod. Where none does, what the
// others said of the pod is shown, and else why they did not answer.
func TestExplainAsksThePartitionOfThePod(t *testing.T) {
	standby := proxied{err: apierrors.NewServiceUnavailable("stands by")}
	other := proxied{text: "pod shop/cart is placed by partition 1", err: apierrors.NewNotFound(corev1.Resource("services"), "springtide-scheduler")}
	ours := proxied{text: "pod shop/cart is on node a"}
	for _, c := range []struct {
		name    string
		answers []proxied // the last one stays
		want    string
		fails   string
	}{
		{"a standby and another partition answer first", []proxied{standby, other, standby, ours}, "is on node a", ""},
		{"another partition alone answers", []proxied{standby, other, standby}, "is placed by partition 1", ""},
		{"there is no scheduler", []proxied{{text: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"services \"springtide-scheduler\" not found","reason":"NotFound","code":404}`,
			err: apierrors.NewNotFound(corev1.Resource("services"), "springtide-scheduler")}}, "", "not found"},
		{"none answers", []proxied{standby}, "", "stands by"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := fake.NewClientset()
			asked := 0
			client.AddProxyReactor("services", func(clienttesting.Action) (bool, restclient.ResponseWrapper, error) {
				asked++
				return true, c.answers[min(asked, len(c.answers))-1], nil
			})
			text, err := askScheduler(t.Context(), &cluster.Clients{Core: client, Clocks: cluster.WallClocks()}, "springtide-system", fleet.Name{Namespace: "shop", Name: "cart"})
			if !strings.Contains(text, c.want) || (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// proxied is an answer of a scheduler's process by the API server's proxy.
type proxied struct {
	restclient.ResponseWrapper
	text string
	err  error
}

func (p proxied) DoRaw(context.Context) ([]byte, error) { return []byte(p.text), p.err }
