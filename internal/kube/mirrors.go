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
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/fence"
	"github.com/springtide/springtide/internal/kube/object"
)

// The kinds of ours, as they are held.
type (
	ownService  = object.Own[v1alpha1.ElasticService, convert.ServiceFacts]
	ownPool     = object.Own[v1alpha1.CapacityPool, convert.PoolFacts]
	ownTenant   = object.Own[v1alpha1.CapacityQuota, convert.TenantFacts]
	ownLoan     = object.Own[v1alpha1.Loan, fleet.Loan]
	ownShare    = object.Own[v1alpha1.NodeShare, convert.ShareFacts]
	ownJob      = object.Own[v1alpha1.ElasticJob, convert.JobFacts]
	ownFestival = object.Own[v1alpha1.FestivalPlan, fleet.Festival]
)

// mirrors are everything that is watched. Every mirror has one informer; nothing else of the process lists or watches.
type mirrors struct {
	nodes         *object.Mirror[*nodeFacts]
	pods          *object.Mirror[*podFacts]
	deployments   *object.Mirror[*workloadFacts]
	statefulSets  *object.Mirror[*workloadFacts]
	replicaSets   *object.Mirror[*replicaSetFacts]
	daemonSets    *object.Mirror[*daemonFacts]
	batchJobs     *object.Mirror[*offlineFacts]
	hpas          *object.Mirror[*scalerFacts]
	namespaces    *object.Mirror[*namespaceFacts]
	budgets       *object.Mirror[*budgetFacts]
	leases        *object.Mirror[*leaseFacts]
	refusals      *object.Mirror[*refusalFacts]
	agents        *agents
	topologies    *object.Mirror[*topologyFacts]
	scaledObjects *object.Mirror[*scalerFacts]
	cronHPAs      *object.Mirror[*scalerFacts]
	vpas          *object.Mirror[*scalerFacts]

	services  *object.Mirror[*ownService]
	pools     *object.Mirror[*ownPool]
	tenants   *object.Mirror[*ownTenant]
	loans     *object.Mirror[*ownLoan]
	shares    *object.Mirror[*ownShare]
	jobs      *object.Mirror[*ownJob]
	festivals *object.Mirror[*ownFestival]
}

func newMirrors(client kubernetes.Interface, dyn dynamic.Interface, o Options, optional optionalKinds) mirrors {
	none := cache.Indexers{}
	services := func(a *v1alpha1.ElasticService) convert.ServiceFacts {
		return convert.NewServiceFacts(a, o.NamespaceLabel)
	}
	dynamicInformer := func(gvr schema.GroupVersionResource) cache.SharedIndexInformer { return newDynamicInformer(dyn, gvr) }
	agents := newAgents()
	m := mirrors{
		agents: agents,
		nodes:  object.NewMirror("nodes", core.NewNodeInformer(client, 0, none), newNodeFacts),
		pods: object.NewMirror("pods",
			core.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, none, livePods), newPodFacts),
		deployments:  object.NewMirror("deployments", apps.NewDeploymentInformer(client, metav1.NamespaceAll, 0, none), newDeploymentFacts),
		statefulSets: object.NewMirror("statefulsets", apps.NewStatefulSetInformer(client, metav1.NamespaceAll, 0, none), newStatefulSetFacts),
		replicaSets:  object.NewMirror("replicasets", apps.NewReplicaSetInformer(client, metav1.NamespaceAll, 0, none), newReplicaSetFacts),
		daemonSets:   object.NewMirror("daemonsets", apps.NewDaemonSetInformer(client, metav1.NamespaceAll, 0, none), newDaemonSetFacts),
		batchJobs:    object.NewMirror("jobs", batch.NewJobInformer(client, metav1.NamespaceAll, 0, none), newBatchJobFacts),
		hpas: object.NewMirror("horizontalpodautoscalers",
			autoscaling.NewHorizontalPodAutoscalerInformer(client, metav1.NamespaceAll, 0, none), newHPAFacts),
		budgets:    object.NewMirror("poddisruptionbudgets", policy.NewPodDisruptionBudgetInformer(client, metav1.NamespaceAll, 0, none), newBudgetFacts),
		namespaces: object.NewMirror("namespaces", core.NewNamespaceInformer(client, 0, none), newNamespaceFacts),
		refusals: object.NewMirror("events",
			core.NewFilteredEventInformer(client, metav1.NamespaceAll, 0, none, podRefusals), newRefusalFacts),
		leases: object.NewMirror("leases", coordination.NewLeaseInformer(client, o.Namespace, 0, none), agents.see),

		services:  object.NewMirror("elasticservices", dynamicInformer(object.GVRServices), object.NewOwn(object.GVRServices, services)),
		pools:     object.NewMirror("capacitypools", dynamicInformer(object.GVRPools), object.NewOwn(object.GVRPools, convert.NewPoolFacts)),
		tenants:   object.NewMirror("capacityquotas", dynamicInformer(object.GVRQuotas), object.NewOwn(object.GVRQuotas, convert.NewTenantFacts)),
		loans:     object.NewMirror("loans", dynamicInformer(object.GVRLoans), object.NewOwn(object.GVRLoans, convert.NewLoanFacts)),
		shares:    object.NewMirror("nodeshares", dynamicInformer(object.GVRShares), object.NewOwn(object.GVRShares, convert.NewShareFacts)),
		jobs:      object.NewMirror("elasticjobs", dynamicInformer(object.GVRJobs), object.NewOwn(object.GVRJobs, convert.NewJobFacts)),
		festivals: object.NewMirror("festivalplans", dynamicInformer(object.GVRFestivals), object.NewOwn(object.GVRFestivals, convert.FestivalOf)),
	}
	if optional.topologies {
		m.topologies = object.NewMirror("noderesourcetopologies", dynamicInformer(object.GVRTopologies), newTopologyFacts)
	}
	if optional.scaledObjects {
		m.scaledObjects = object.NewMirror("scaledobjects", dynamicInformer(object.GVRScaledObjects), newScaledObjectFacts)
	}
	if optional.cronHPAs {
		m.cronHPAs = object.NewMirror("cronhorizontalpodautoscalers", dynamicInformer(object.GVRCronHPAs), newCronHPAFacts)
	}
	if optional.vpas {
		m.vpas = object.NewMirror("verticalpodautoscalers", dynamicInformer(object.GVRVPAs), newVPAFacts)
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

func (m *mirrors) all() []object.Watched {
	out := []object.Watched{m.nodes, m.pods, m.deployments, m.statefulSets, m.replicaSets, m.daemonSets, m.batchJobs, m.hpas, m.namespaces, m.budgets, m.leases, m.refusals,
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
	onShare := c.shares.OnChange(func(before, after *ownShare) {
		if before == nil || after == nil || !sameReports(before.API.Status.Parcels, after.API.Status.Parcels) {
			c.nudge()
		}
	})
	onPod := c.pods.OnChange(func(before, after *podFacts) {
		c.images.note(before, after, c.nodes)
		if before != nil && after != nil && before.pod.AckEpoch != after.pod.AckEpoch {
			c.nudge()
		}
		c.podChanged(before, after)
		if after != nil && after.pod.Unschedulable && (before == nil || !before.pod.Unschedulable) {
			c.waits()
		}
	})
	onNamespace := c.namespaces.OnChange(func(before, after *namespaceFacts) {
		if before != nil && after != nil && after.Name == c.o.Namespace && before.freeze != after.freeze {
			c.nudge()
		}
	})
	onService := c.services.OnChange(func(before, after *ownService) {
		if before == nil || after == nil || before.Generation != after.Generation {
			c.nudge()
		}
	})
	// A kind of workload is watched from the moment that a job names it.
	onJob := c.jobs.OnChange(func(before, after *ownJob) {
		if before == nil || after == nil || before.Generation != after.Generation {
			c.kinds.ask()
		}
	})
	onLease := c.leases.OnChange(func(before, after *leaseFacts) {
		if after == nil {
			c.agents.forget(before)
		} else if after.Name == fence.LeaseName {
			c.heard(after.holder, after.transitions)
		}
	})
	onBudget := c.budgets.OnChange(c.budgetChanged)
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
