package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	apps "k8s.io/client-go/informers/apps/v1"
	autoscaling "k8s.io/client-go/informers/autoscaling/v2"
	batch "k8s.io/client-go/informers/batch/v1"
	coordination "k8s.io/client-go/informers/coordination/v1"
	core "k8s.io/client-go/informers/core/v1"
	policy "k8s.io/client-go/informers/policy/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// The kinds of ours, as they are held.
type (
	ownService  = own[v1alpha1.ElasticService, serviceFacts]
	ownPool     = own[v1alpha1.CapacityPool, poolFacts]
	ownTenant   = own[v1alpha1.CapacityQuota, tenantFacts]
	ownLoan     = own[v1alpha1.Loan, fleet.Loan]
	ownShare    = own[v1alpha1.NodeShare, shareFacts]
	ownJob      = own[v1alpha1.ElasticJob, jobFacts]
	ownFestival = own[v1alpha1.FestivalPlan, fleet.Festival]
)

// mirrors are everything that is watched. Every mirror has one informer; nothing else of the process lists or watches.
type mirrors struct {
	nodes         *mirror[*nodeFacts]
	pods          *mirror[*podFacts]
	deployments   *mirror[*workloadFacts]
	statefulSets  *mirror[*workloadFacts]
	replicaSets   *mirror[*replicaSetFacts]
	daemonSets    *mirror[*daemonFacts]
	batchJobs     *mirror[*offlineFacts]
	hpas          *mirror[*scalerFacts]
	namespaces    *mirror[*namespaceFacts]
	budgets       *mirror[*budgetFacts]
	leases        *mirror[*leaseFacts]
	refusals      *mirror[*refusalFacts]
	agents        *agents
	topologies    *mirror[*topologyFacts]
	scaledObjects *mirror[*scalerFacts]
	cronHPAs      *mirror[*scalerFacts]
	vpas          *mirror[*scalerFacts]

	services  *mirror[*ownService]
	pools     *mirror[*ownPool]
	tenants   *mirror[*ownTenant]
	loans     *mirror[*ownLoan]
	shares    *mirror[*ownShare]
	jobs      *mirror[*ownJob]
	festivals *mirror[*ownFestival]
}

func newMirrors(client kubernetes.Interface, dyn dynamic.Interface, o Options, optional optionalKinds) mirrors {
	none := cache.Indexers{}
	services := func(a *v1alpha1.ElasticService) serviceFacts { return newServiceFacts(a, o.NamespaceLabel) }
	dynamicInformer := func(gvr schema.GroupVersionResource) cache.SharedIndexInformer { return newDynamicInformer(dyn, gvr) }
	agents := newAgents()
	m := mirrors{
		agents: agents,
		nodes:  newMirror("nodes", core.NewNodeInformer(client, 0, none), newNodeFacts),
		pods: newMirror("pods",
			core.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, none, livePods), newPodFacts),
		deployments:  newMirror("deployments", apps.NewDeploymentInformer(client, metav1.NamespaceAll, 0, none), newDeploymentFacts),
		statefulSets: newMirror("statefulsets", apps.NewStatefulSetInformer(client, metav1.NamespaceAll, 0, none), newStatefulSetFacts),
		replicaSets:  newMirror("replicasets", apps.NewReplicaSetInformer(client, metav1.NamespaceAll, 0, none), newReplicaSetFacts),
		daemonSets:   newMirror("daemonsets", apps.NewDaemonSetInformer(client, metav1.NamespaceAll, 0, none), newDaemonSetFacts),
		batchJobs:    newMirror("jobs", batch.NewJobInformer(client, metav1.NamespaceAll, 0, none), newBatchJobFacts),
		hpas: newMirror("horizontalpodautoscalers",
			autoscaling.NewHorizontalPodAutoscalerInformer(client, metav1.NamespaceAll, 0, none), newHPAFacts),
		budgets:    newMirror("poddisruptionbudgets", policy.NewPodDisruptionBudgetInformer(client, metav1.NamespaceAll, 0, none), newBudgetFacts),
		namespaces: newMirror("namespaces", core.NewNamespaceInformer(client, 0, none), newNamespaceFacts),
		refusals: newMirror("events",
			core.NewFilteredEventInformer(client, metav1.NamespaceAll, 0, none, podRefusals), newRefusalFacts),
		leases: newMirror("leases", coordination.NewLeaseInformer(client, o.Namespace, 0, none), agents.see),

		services:  newMirror("elasticservices", dynamicInformer(gvrServices), newOwn(gvrServices, services)),
		pools:     newMirror("capacitypools", dynamicInformer(gvrPools), newOwn(gvrPools, newPoolFacts)),
		tenants:   newMirror("capacityquotas", dynamicInformer(gvrQuotas), newOwn(gvrQuotas, newTenantFacts)),
		loans:     newMirror("loans", dynamicInformer(gvrLoans), newOwn(gvrLoans, newLoanFacts)),
		shares:    newMirror("nodeshares", dynamicInformer(gvrShares), newOwn(gvrShares, newShareFacts)),
		jobs:      newMirror("elasticjobs", dynamicInformer(gvrJobs), newOwn(gvrJobs, newJobFacts)),
		festivals: newMirror("festivalplans", dynamicInformer(gvrFestivals), newOwn(gvrFestivals, FestivalOf)),
	}
	if optional.topologies {
		m.topologies = newMirror("noderesourcetopologies", dynamicInformer(gvrTopologies), newTopologyFacts)
	}
	if optional.scaledObjects {
		m.scaledObjects = newMirror("scaledobjects", dynamicInformer(gvrScaledObjects), newScaledObjectFacts)
	}
	if optional.cronHPAs {
		m.cronHPAs = newMirror("cronhorizontalpodautoscalers", dynamicInformer(gvrCronHPAs), newCronHPAFacts)
	}
	if optional.vpas {
		m.vpas = newMirror("verticalpodautoscalers", dynamicInformer(gvrVPAs), newVPAFacts)
	}
	return m
}

// newDynamicInformer watches a kind without its type.
func newDynamicInformer(dyn dynamic.Interface, gvr schema.GroupVersionResource) cache.SharedIndexInformer {
	return dynamicinformer.NewFilteredDynamicInformer(dyn, gvr, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
}

// livePods leaves finished pods on the server: they hold no room, and a job that ends thousands a day keeps them for long.
func livePods(o *metav1.ListOptions) {
	o.FieldSelector = fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	).String()
}

func (m *mirrors) all() []watched {
	out := []watched{m.nodes, m.pods, m.deployments, m.statefulSets, m.replicaSets, m.daemonSets, m.batchJobs, m.hpas, m.namespaces, m.budgets, m.leases, m.refusals,
		m.services, m.pools, m.tenants, m.loans, m.shares, m.jobs, m.festivals}
	if m.topologies != nil {
		out = append(out, m.topologies)
	}
	if m.scaledObjects != nil {
		out = append(out, m.scaledObjects)
	}
	if m.cronHPAs != nil {
		out = append(out, m.cronHPAs)
	}
	if m.vpas != nil {
		out = append(out, m.vpas)
	}
	return out
}

// serves lists the resources that the API server has for a group and version; none when it does not know the group.
func (c *watcher) serves(groupVersion string) ([]string, error) {
	list, err := c.core.Discovery().ServerResourcesForGroupVersion(groupVersion)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("kube: ask for the kinds of %s: %w", groupVersion, err)
	}
	var out []string
	for i := range list.APIResources {
		out = append(out, list.APIResources[i].Name)
	}
	return out, nil
}

// listen wakes the loop on what should not wait for the next cycle. Everything else is seen by the next snapshot in any case.
func (c *watcher) listen() error {
	onShare := c.shares.onChange(func(before, after *ownShare) {
		if before == nil || after == nil || !sameReports(before.api.Status.Parcels, after.api.Status.Parcels) {
			c.nudge()
		}
	})
	onPod := c.pods.onChange(func(before, after *podFacts) {
		c.images.note(before, after, c.nodes)
		if before != nil && after != nil && before.pod.AckEpoch != after.pod.AckEpoch {
			c.nudge()
		}
		c.podChanged(before, after)
		if after != nil && after.pod.Unschedulable && (before == nil || !before.pod.Unschedulable) {
			c.waits()
		}
	})
	onNamespace := c.namespaces.onChange(func(before, after *namespaceFacts) {
		if before != nil && after != nil && after.Name == c.o.Namespace && before.freeze != after.freeze {
			c.nudge()
		}
	})
	onService := c.services.onChange(func(before, after *ownService) {
		if before == nil || after == nil || before.Generation != after.Generation {
			c.nudge()
		}
	})
	// A kind of workload is watched from the moment that a job names it.
	onJob := c.jobs.onChange(func(before, after *ownJob) {
		if before == nil || after == nil || before.Generation != after.Generation {
			c.kinds.ask()
		}
	})
	onLease := c.leases.onChange(func(before, after *leaseFacts) {
		if after == nil {
			c.agents.forget(before)
		} else if after.Name == leaseName {
			c.heard(after.holder, after.transitions)
		}
	})
	onBudget := c.budgets.onChange(c.budgetChanged)
	for _, err := range []error{onShare, onPod, onNamespace, onService, onJob, onLease, onBudget} {
		if err != nil {
			return err
		}
	}
	return nil
}

func sameReports(a, b []v1alpha1.ParcelReport) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].LoanUID != b[i].LoanUID || a[i].Epoch != b[i].Epoch || a[i].Clean != b[i].Clean {
			return false
		}
	}
	return true
}
