package kube

import (
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/springtide/springtide/fleet"
)

// unnamed stands for a disruption budget of which the API server does not say the name.
const unnamed = "(not named)"

// refusedBy is the disruption budget that refused an eviction.
func refusedBy(err error) (budget string, refused bool) {
	c, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
	if !ok {
		return unnamed, apierrors.IsTooManyRequests(err) && strings.Contains(err.Error(), "disruption budget")
	}
	// "The disruption budget NAME needs 1 healthy pods and has 0 currently", or "... NAME is still being processed by the server."
	name, found := strings.CutPrefix(c.Message, "The disruption budget ")
	if !found {
		return unnamed, true
	}
	name, _, _ = strings.Cut(name, " ")
	return name, true
}

// rememberRefusals keeps the refusals of the last plan for the next snapshot, and no older ones: a pod whose eviction is still refused is asked
// in each plan.
func (c *Cluster) rememberRefusals(refused map[fleet.UID]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = refused
}
