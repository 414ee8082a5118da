package watch

import (
	"errors"
	"fmt"
	"slices"

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
	"github.com/springtide/springtide/festival"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/fence"
	"github.com/springtide/springtide/internal/kube/object"
)

// The kinds of ours, as they are held.
type (
	OwnService  = object.Own[v1alpha1.ElasticService, convert.ServiceFacts]
	OwnPool     = object.Own[v1alpha1.CapacityPool, convert.PoolFacts]
	OwnTenant   = object.Own[v1alpha1.CapacityQuota, convert.TenantFacts]
	ownLoan     = object.Own[v1alpha1.Loan, fleet.Loan]
	OwnShare    = object.Own[v1alpha1.NodeShare, convert.ShareFacts]
	OwnJob      = object.Own[v1alpha1.ElasticJob, convert.JobFacts]
	ownFestival = object.Own[v1alpha1.FestivalPlan, festival.Plan]
)

// mirrors are everything that is watched. Every mirror has one informer; nothing else of the process lists or watches.
type mirrors struct {
	Nodes         *object.Mirror[*NodeFacts]
	Pods          *object.Mirror[*PodFacts]
	Deployments   *object.Mirror[*WorkloadFacts]
	StatefulSets  *object.Mirror[*WorkloadFacts]
	ReplicaSets   *object.Mirror[*ReplicaSetFacts]
	daemonSets    *object.Mirror[*daemonFacts]
	BatchJobs     *object.Mirror[*OfflineFacts]
	HPAs          *object.Mirror[*ScalerFacts]
	Namespaces    *object.Mirror[*NamespaceFacts]
	budgets       *object.Mirror[*budgetFacts]
	Leases        *object.Mirror[*LeaseFacts]
	Refusals      *object.Mirror[*RefusalFacts]
	Agents        *agents
	Topologies    *object.Mirror[*TopologyFacts]
	ScaledObjects *object.Mirror[*ScalerFacts]
	CronHPAs      *object.Mirror[*ScalerFacts]
	VPAs          *object.Mirror[*ScalerFacts]

	Services  *object.Mirror[*OwnService]
	Pools     *object.Mirror[*OwnPool]
	Tenants   *object.Mirror[*OwnTenant]
	Loans     *object.Mirror[*ownLoan]
	Shares    *object.Mirror[*OwnShare]
	Jobs      *object.Mirror[*OwnJob]
	Festivals *object.Mirror[*ownFestival]
}

func newMirrors(client kubernetes.Interface, dyn dynamic.Interface, o Options, optional optionalKinds) mirrors {
	none := cache.Indexers{}
	services := func(a *v1alpha1.ElasticService) convert.ServiceFacts {
		return convert.NewServiceFacts(a, o.NamespaceLabel)
	}
	dynamicInformer := func(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
		return newDynamicInformer(dyn,
			gvr)
	}
	agents := newAgents()
	m := mirrors{
		Agents: agents,
		Nodes:  object.NewMirror("nodes", core.NewNodeInformer(client, 0, none), NewNodeFacts),
		Pods: object.NewMirror("pods",
			core.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, none, LivePods), NewPodFacts),
		Deployments: object.NewMirror("deployments", apps.NewDeploymentInformer(client, metav1.NamespaceAll, 0, none),
			NewDeploymentFacts),
		StatefulSets: object.NewMirror("statefulsets", apps.NewStatefulSetInformer(client, metav1.NamespaceAll, 0, none),
			NewStatefulSetFacts),
		ReplicaSets: object.NewMirror("replicasets", apps.NewReplicaSetInformer(client, metav1.NamespaceAll, 0, none),
			newReplicaSetFacts),
		daemonSets: object.NewMirror("daemonsets", apps.NewDaemonSetInformer(client, metav1.NamespaceAll, 0, none),
			newDaemonSetFacts),
		BatchJobs: object.NewMirror("jobs", batch.NewJobInformer(client, metav1.NamespaceAll, 0, none), NewBatchJobFacts),
		HPAs: object.NewMirror("horizontalpodautoscalers",
			autoscaling.NewHorizontalPodAutoscalerInformer(client, metav1.NamespaceAll, 0, none), NewHPAFacts),
		budgets: object.NewMirror("poddisruptionbudgets", policy.NewPodDisruptionBudgetInformer(client,
			metav1.NamespaceAll, 0, none), newBudgetFacts),
		Namespaces: object.NewMirror("namespaces", core.NewNamespaceInformer(client, 0, none), newNamespaceFacts),
		Refusals: object.NewMirror("events",
			core.NewFilteredEventInformer(client, metav1.NamespaceAll, 0, none, podRefusals), NewRefusalFacts),
		Leases: object.NewMirror("leases", coordination.NewLeaseInformer(client, o.Namespace, 0, none), agents.See),

		Services: object.NewMirror("elasticservices", dynamicInformer(object.GVRServices),
			object.NewOwn(object.GVRServices, services)),
		Pools: object.NewMirror("capacitypools", dynamicInformer(object.GVRPools),
			object.NewOwn(object.GVRPools, convert.NewPoolFacts)),
		Tenants: object.NewMirror("capacityquotas", dynamicInformer(object.GVRQuotas),
			object.NewOwn(object.GVRQuotas, convert.NewTenantFacts)),
		Loans: object.NewMirror("loans", dynamicInformer(object.GVRLoans),
			object.NewOwn(object.GVRLoans, convert.NewLoanFacts)),
		Shares: object.NewMirror("nodeshares", dynamicInformer(object.GVRShares),
			object.NewOwn(object.GVRShares, convert.NewShareFacts)),
		Jobs: object.NewMirror("elasticjobs", dynamicInformer(object.GVRJobs),
			object.NewOwn(object.GVRJobs, convert.NewJobFacts)),
		Festivals: object.NewMirror("festivalplans", dynamicInformer(object.GVRFestivals),
			object.NewOwn(object.GVRFestivals, convert.FestivalOf)),
	}
	if optional.topologies {
		m.Topologies = object.NewMirror("noderesourcetopologies", dynamicInformer(object.GVRTopologies), newTopologyFacts)
	}
	if optional.scaledObjects {
		m.ScaledObjects = object.NewMirror("scaledobjects", dynamicInformer(object.GVRScaledObjects), newScaledObjectFacts)
	}
	if optional.cronHPAs {
		m.CronHPAs = object.NewMirror("cronhorizontalpodautoscalers", dynamicInformer(object.GVRCronHPAs), newCronHPAFacts)
	}
	if optional.vpas {
		m.VPAs = object.NewMirror("verticalpodautoscalers", dynamicInformer(object.GVRVPAs), newVPAFacts)
	}
	return m
}

// newDynamicInformer watches a kind without its type.
func newDynamicInformer(dyn dynamic.Interface, gvr schema.GroupVersionResource) cache.SharedIndexInformer {
	return dynamicinformer.NewFilteredDynamicInformer(dyn, gvr, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
}

// LivePods leaves finished pods on the server: they hold no room, and a job that ends thousands a day keeps them for
// long.
func LivePods(o *metav1.ListOptions) {
	o.FieldSelector = fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	).String()
}

func (m *mirrors) all() []object.Watched {
	out := []object.Watched{m.Nodes, m.Pods, m.Deployments, m.StatefulSets, m.ReplicaSets, m.daemonSets, m.BatchJobs,
		m.HPAs, m.Namespaces, m.budgets, m.Leases, m.Refusals,
		m.Services, m.Pools, m.Tenants, m.Loans, m.Shares, m.Jobs, m.Festivals}
	if m.Topologies != nil {
		out = append(out, m.Topologies)
	}
	if m.ScaledObjects != nil {
		out = append(out, m.ScaledObjects)
	}
	if m.CronHPAs != nil {
		out = append(out, m.CronHPAs)
	}
	if m.VPAs != nil {
		out = append(out, m.VPAs)
	}
	return out
}

// Serves lists the resources that the API server has for a group and version; none when it does not know the group.
func (c *Watcher) Serves(groupVersion string) ([]string, error) {
	list, err := c.Core.Discovery().ServerResourcesForGroupVersion(groupVersion)
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

// listen wakes the loop on what should not wait for the next cycle. Everything else is seen by the next snapshot in any
// case.
func (c *Watcher) listen() error {
	onPod := c.Pods.OnChange(func(before, after *PodFacts) {
		c.Images.note(before, after, c.Nodes)
		if before != nil && after != nil && before.Pod.AckEpoch != after.Pod.AckEpoch {
			c.Nudge()
		}
		c.podChanged(before, after)
		if after != nil && after.Pod.Unschedulable && (before == nil || !before.Pod.Unschedulable) {
			c.waits()
		}
	})
	onNamespace := c.Namespaces.OnChange(c.namespaceChanged)
	onLease := c.Leases.OnChange(func(before, after *LeaseFacts) {
		if after == nil {
			c.Agents.forget(before)
		} else if after.Name == fence.LeaseName {
			c.heard(after.Holder, after.Transitions)
		}
	})
	return errors.Join(onPod, onNamespace, onLease, c.budgets.OnChange(c.budgetChanged), c.listenToOwn())
}

// namespaceChanged wakes the loop on a freeze, and on a pause of a namespace.
func (c *Watcher) namespaceChanged(before, after *NamespaceFacts) {
	if before == nil || after == nil {
		return
	}
	frozen := after.Name == c.Options.Namespace && before.Freeze != after.Freeze
	if frozen || !slices.Equal(before.Holds, after.Holds) {
		c.Nudge()
	}
}

// listenToOwn wakes the loop on what users change in our own objects, and on what agents report.
func (c *Watcher) listenToOwn() error {
	onShare := c.Shares.OnChange(func(before, after *OwnShare) {
		if before == nil || after == nil || !sameReports(before.API.Status.Parcels, after.API.Status.Parcels) {
			c.Nudge()
		}
	})
	onService := c.Services.OnChange(func(before, after *OwnService) {
		if before == nil || after == nil || before.Generation != after.Generation ||
			!slices.Equal(before.Facts.Holds, after.Facts.Holds) {
			c.Nudge()
			ask(c.targets.wanted)
		}
	})
	// A kind of workload is watched from the moment that a job names it.
	onJob := c.Jobs.OnChange(func(before, after *OwnJob) {
		if before == nil || after == nil || before.Generation != after.Generation {
			c.Kinds.Ask()
		}
	})
	return errors.Join(onShare, onService, onJob)
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

// Listed reports whether the members of a role are in the job's host list.
func Listed(o *OwnJob, role string) bool {
	return o.API.Spec.Hosts != nil && o.API.Spec.Hosts.Role == role
}
