package world

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

const (
	// systemNamespace is the controller's own.
	systemNamespace = "springtide-system"
	// labelTenant names a namespace's tenant.
	labelTenant = "springtide.example/tenant"
	// company is the tenant above all others.
	company = "company"
)

// namespaces are the world's namespaces with their labels.
func (w *World) namespaces() map[string]map[string]string {
	out := map[string]map[string]string{systemNamespace: nil}
	for tenant := range w.guarantees() {
		out[tenant] = map[string]string{labelTenant: tenant}
	}
	return out
}

// guarantees are what each tenant, named like its namespace, always gets back: online tenants their static provisioning, offline ones
// their part of the offline machines.
func (w *World) guarantees() map[string]fleet.Resources {
	out := map[string]fleet.Resources{}
	for _, s := range w.fleet.Services {
		out[s.Name.Namespace] = out[s.Name.Namespace].Add(s.Request.Times(int64(s.Static)))
	}
	for _, j := range w.jobs {
		out[j.spec.Name.Namespace] = out[j.spec.Name.Namespace].Add(j.spec.Request.Times(int64(j.home)))
	}
	return out
}

// buildPolicy makes the pools and the tenants.
func (w *World) buildPolicy(ctx context.Context) error {
	var writes []write
	for _, class := range []string{string(fleet.Online), string(fleet.Offline)} {
		p := &v1alpha1.CapacityPool{Spec: v1alpha1.CapacityPoolSpec{Class: class, Mode: w.options.Mode, SchedulerName: w.options.schedulerName()}}
		p.Name = onlinePool
		if class == string(fleet.Offline) {
			p.Name = offlinePool
		} else {
			p.Spec.LendableUnit = string(fleet.UnitSocket)
		}
		p.Spec.NodeSelector.MatchLabels = map[string]string{labelPool: p.Name}
		writes = append(writes, func(ctx context.Context) error { return w.api.create(ctx, "capacitypools", p) })
	}
	guarantees := w.guarantees()
	var all fleet.Resources
	for _, tenant := range slices.Sorted(maps.Keys(guarantees)) {
		all = all.Add(guarantees[tenant])
		q := tenantQuota(tenant, company, guarantees[tenant])
		writes = append(writes, func(ctx context.Context) error { return w.api.create(ctx, "capacityquotas", q) })
	}
	root := tenantQuota(company, "", all)
	writes = append(writes, func(ctx context.Context) error { return w.api.create(ctx, "capacityquotas", root) })
	return apply(ctx, writes)
}

func tenantQuota(name, parent string, guarantee fleet.Resources) *v1alpha1.CapacityQuota {
	return &v1alpha1.CapacityQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.CapacityQuotaSpec{
			Parent:            parent,
			NamespaceSelector: v1alpha1.Selector{MatchLabels: map[string]string{labelTenant: name}},
			Guarantee: v1alpha1.ResourceAmounts{
				CPU:    *resource.NewMilliQuantity(int64(guarantee.CPU), resource.DecimalSI),
				Memory: *resource.NewQuantity(int64(guarantee.Memory), resource.BinarySI),
				GPU:    guarantee.GPU,
			},
		},
	}
}
