package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/watch"
)

// AgentAlive reports whether the agent that writes a Lease shows life: for as long as the Lease itself says, as the controller judges it.
func AgentAlive(l *coordinationv1.Lease, now time.Time) bool {
	return l.Spec.RenewTime != nil && now.Sub(l.Spec.RenewTime.Time) <= watch.AgentTerm(l)
}

// SchedulerHolders are the processes that hold a lease of the bundled scheduler.
func SchedulerHolders(ctx context.Context, c *Clients, namespace string) ([]HeldLease, error) {
	// The scheduler may be installed in another namespace than the controller; who may read the controller's alone sees those.
	leases, err := c.Core.CoordinationV1().Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		leases, err = c.Core.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("list the leases: %w", err)
	}
	var out []HeldLease
	for i := range leases.Items {
		l := &leases.Items[i]
		if !strings.HasPrefix(l.Name, v1alpha1.SchedulerLeasePrefix) || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
			continue
		}
		if age := c.Wall().Sub(l.Spec.RenewTime.Time); age.Seconds() < float64(*l.Spec.LeaseDurationSeconds) {
			n, _ := strconv.Atoi(l.Labels[v1alpha1.LabelPartitions]) // zero where there is none: it has just begun
			out = append(out, HeldLease{l.Name, *l.Spec.HolderIdentity, n})
		}
	}
	return out, nil
}

// HeldLease is the Lease of a partition of the bundled scheduler that a process holds.
type HeldLease struct {
	Name, Holder string
	Partitions   int // how many the holder counts
}

// ControllerDeployment is the Deployment of the controller in deploy/base and in the chart.
const ControllerDeployment = "springtide-controller"

// Definitions is the resource of CustomResourceDefinitions.
var Definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// SchedulingGroup is the API group of Workload, PodGroup and CompositePodGroup.
const SchedulingGroup = "scheduling.k8s.io"

// HomesOf names the pools whose selector picks the node.
func HomesOf(node *corev1.Node, all []v1alpha1.CapacityPool) []string {
	var out []string
	for i := range all {
		s, err := metav1.LabelSelectorAsSelector(all[i].Spec.NodeSelector.LabelSelector())
		if err == nil && s.Matches(labels.Set(node.Labels)) {
			out = append(out, all[i].Name)
		}
	}
	slices.Sort(out)
	return out
}

// StayOf says by which fact of the node its machine starts no loan; empty where it may.
func StayOf(node *corev1.Node) string {
	if by := facts.Leaving(node); by != "" {
		return "it is about to leave: " + by
	}
	if shut := facts.Shut(node); shut.By != "" {
		return "it takes no pods: " + shut.String()
	}
	return ""
}
