package main

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/adapter"
)

// checkOffline looks at the workloads of elastic jobs: whether their pods can land on lent machines, and whether their settings let
// members leave and come back.
func checkOffline(ctx context.Context, d *doctor) error {
	all, err := list[v1alpha1.ElasticJob](ctx, d.c, jobs, "")
	if err != nil {
		return err
	}
	good, whole := 0, 0
	for i := range all {
		if err := d.hostList(ctx, &all[i]); err != nil {
			return err
		}
		for k := range all[i].Spec.Members {
			whole++
			fine, err := d.member(ctx, &all[i], &all[i].Spec.Members[k])
			if err != nil {
				return err
			}
			if fine {
				good++
			}
		}
	}
	if good == whole {
		d.ok("all %d workloads of elastic jobs can be lent to", good)
	}
	return nil
}

// hostList looks whether the list of hosts that a job asks for may be written in its namespace.
func (d *doctor) hostList(ctx context.Context, j *v1alpha1.ElasticJob) error {
	if j.Spec.Hosts == nil {
		return nil
	}
	for _, verb := range []string{"get", "create", "patch"} {
		allowed, err := d.may(ctx, &authorizationv1.ResourceAttributes{Namespace: j.Namespace, Resource: "configmaps", Verb: verb})
		if err != nil {
			return err
		}
		if !allowed {
			d.report(fmt.Sprintf("kubectl create rolebinding springtide-host-lists -n %s --clusterrole=springtide-host-lists --serviceaccount=%s:springtide-controller", j.Namespace, d.namespace),
				"ElasticJob %s/%s asks for a list of hosts, and ConfigMaps of its namespace cannot be written", j.Namespace, j.Name)
			return nil
		}
	}
	return nil
}

// member reads the workload of one member and judges it.
func (d *doctor) member(ctx context.Context, j *v1alpha1.ElasticJob, m *v1alpha1.JobMember) (bool, error) {
	ref := &m.WorkloadRef
	ad, ok := adapter.For(ref.APIVersion, ref.Kind)
	if !ok {
		return false, nil // the definition refuses it; one that is older than that is told in its conditions
	}
	w, err := d.workload(ctx, ad, j.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		d.advise("create it and install its operator, or take the member out", "ElasticJob %s/%s: %s %s of %s is not there", j.Namespace, j.Name, ref.Kind, ref.Name, ref.APIVersion)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s %s/%s: %w", ref.Kind, j.Namespace, ref.Name, err)
	}
	return d.lendable(j, m, w), nil
}

func (d *doctor) workload(ctx context.Context, ad adapter.Adapter, namespace, name string) (*adapter.Workload, error) {
	var w adapter.Workload
	if ad.Kind() == adapter.KindBatchJob {
		j, err := d.c.core.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		w = adapter.ReadBatchJob(j)
		return &w, nil
	}
	u, err := d.c.dyn.Resource(ad.Resource()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	w = ad.Read(u)
	return &w, nil
}

// lendable reports every setting that stands in the way of one member.
func (d *doctor) lendable(j *v1alpha1.ElasticJob, m *v1alpha1.JobMember, w *adapter.Workload) bool {
	refusals := adapter.Refusals(w, m)
	for _, r := range refusals {
		d.report(fmt.Sprintf("change the setting, or take member %s out of ElasticJob %s/%s", m.Role, j.Namespace, j.Name), "%s in %s: %s", w.What, j.Namespace, r)
	}
	lands := true
	if p := w.Part(m.PartName()); p != nil && p.Template != nil && !w.Finished {
		lands = d.landing(fmt.Sprintf("%s in %s", w.What, j.Namespace), p.Template, m.Stable)
	}
	return lands && len(refusals) == 0
}

// landing looks for the toleration and the affinity that bring pods to lent machines and keep them there alone.
func (d *doctor) landing(what string, spec *corev1.PodSpec, stable bool) bool {
	if stable {
		return true
	}
	taint := &corev1.Taint{Key: v1alpha1.TaintHolder, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}
	tolerated := false
	for i := range spec.Tolerations {
		tolerated = tolerated || tolerates(&spec.Tolerations[i], taint)
	}
	if !tolerated {
		d.report(fmt.Sprintf("add the toleration %s=%s:NoSchedule to its pod template", v1alpha1.TaintHolder, v1alpha1.TaintHolderOffline),
			"the pods of %s do not tolerate lent machines", what)
	}
	drawn := asksOffline(spec)
	if !drawn {
		d.report(fmt.Sprintf("add the node affinity %s In [true] to its pod template", v1alpha1.LabelOffline),
			"the pods of %s may land on online machines, where nobody recalls them", what)
	}
	return tolerated && drawn
}

// asksOffline reports whether a pod lands on offline machines alone.
func asksOffline(spec *corev1.PodSpec) bool {
	if spec.NodeSelector[v1alpha1.LabelOffline] == "true" {
		return true
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	// The terms are alternatives: each of them must ask for it.
	for _, t := range terms {
		asks := false
		for _, e := range t.MatchExpressions {
			asks = asks || (e.Key == v1alpha1.LabelOffline && (e.Operator == corev1.NodeSelectorOpExists ||
				(e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 && e.Values[0] == "true")))
		}
		if !asks {
			return false
		}
	}
	return len(terms) > 0
}

// tolerates reports whether a toleration matches a taint, as the scheduler sees it.
func tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case "", corev1.TolerationOpEqual:
		return t.Key != "" && t.Value == taint.Value
	}
	return false
}
