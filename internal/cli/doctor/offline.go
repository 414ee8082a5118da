package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/kube/adapter"
)

// checkOffline looks at the workloads of elastic jobs: whether their pods can land on lent machines, and whether their settings let
// members leave and come back.
func checkOffline(ctx context.Context, d *doctor) error {
	all, err := cluster.List[v1alpha1.ElasticJob](ctx, d.Clients, cluster.Jobs, "")
	if err != nil {
		return err
	}
	if d.away, err = d.mayBeLent(ctx); err != nil {
		return err
	}
	good, whole := 0, 0
	unlabelled := map[string]bool{}
	for i := range all {
		if err := d.hostList(ctx, &all[i]); err != nil {
			return err
		}
		tenant, err := d.tenant(ctx, all[i].Namespace)
		if err != nil {
			return err
		}
		for k := range all[i].Spec.Members {
			whole++
			if !tenant && !all[i].Spec.Members[k].Stable {
				unlabelled[all[i].Namespace] = true
			}
			fine, err := d.member(ctx, &all[i], &all[i].Spec.Members[k], tenant)
			if err != nil {
				return err
			}
			if fine {
				good++
			}
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(unlabelled)) {
		d.Advise(fmt.Sprintf("kubectl label namespace %s %s=true", namespace, v1alpha1.LabelTenant),
			"namespace %s has offline work and not the label of offline tenants: DaemonSets there count as the system's, and no recall evicts their pods", namespace)
	}
	switch {
	case whole == 0:
		d.OK("there is no elastic job")
	case good == whole:
		d.OK("all %d workloads of elastic jobs can be lent to", good)
	}
	return nil
}

// mayBeLent lists the machines at home in online pools, with the label that they carry while offline work may land there.
func (d *doctor) mayBeLent(ctx context.Context) ([]*corev1.Node, error) {
	all, nodes, err := d.poolsAndNodes(ctx)
	if err != nil {
		return nil, err
	}
	online := map[string]bool{}
	for i := range all {
		online[all[i].Name] = all[i].Spec.Class == string(fleet.Online)
	}
	var out []*corev1.Node
	for i := range nodes {
		if homes := cluster.HomesOf(&nodes[i], all); len(homes) == 1 && online[homes[0]] {
			metav1.SetMetaDataLabel(&nodes[i].ObjectMeta, v1alpha1.LabelOffline, "true")
			out = append(out, &nodes[i])
		}
	}
	return out, nil
}

// tenant reports whether the policy of deploy/base/offline looks at the pods of a namespace.
func (d *doctor) tenant(ctx context.Context, namespace string) (bool, error) {
	ns, err := d.Clients.Core.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	return ns.Labels[v1alpha1.LabelTenant] == "true", nil
}

// hostList looks whether the list of hosts that a job asks for may be written in its namespace.
func (d *doctor) hostList(ctx context.Context, j *v1alpha1.ElasticJob) error {
	if j.Spec.Hosts == nil {
		return nil
	}
	for _, verb := range []string{"get", "create", "patch"} {
		allowed, err := d.May(ctx, &authorizationv1.ResourceAttributes{Namespace: j.Namespace, Resource: "configmaps", Verb: verb})
		if err != nil {
			return err
		}
		if !allowed {
			d.Report(fmt.Sprintf("kubectl create rolebinding springtide-host-lists -n %s --clusterrole=springtide-host-lists --serviceaccount=%s:springtide-controller", j.Namespace, d.Namespace),
				"ElasticJob %s/%s asks for a list of hosts, and ConfigMaps of its namespace cannot be written", j.Namespace, j.Name)
			return nil
		}
	}
	return nil
}

// member reads the workload of one member and judges it.
func (d *doctor) member(ctx context.Context, j *v1alpha1.ElasticJob, m *v1alpha1.JobMember, tenant bool) (bool, error) {
	ref := &m.WorkloadRef
	ad, ok := adapter.For(ref.APIVersion, ref.Kind)
	if !ok {
		return false, nil // the definition refuses it; an older one shows it in its conditions
	}
	w, err := d.workload(ctx, ad, j.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		d.Advise("create it and install its operator, or take the member out", "ElasticJob %s/%s: %s %s of %s is not there", j.Namespace, j.Name, ref.Kind, ref.Name, ref.APIVersion)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s %s/%s: %w", ref.Kind, j.Namespace, ref.Name, err)
	}
	return d.lendable(j, m, w, tenant), nil
}

func (d *doctor) workload(ctx context.Context, ad adapter.Adapter, namespace, name string) (*adapter.Workload, error) {
	var w adapter.Workload
	if ad.Kind() == adapter.KindBatchJob {
		j, err := d.Clients.Core.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		w = adapter.ReadBatchJob(j)
		return &w, nil
	}
	u, err := d.Clients.Dyn.Resource(ad.Resource()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	w = ad.Read(u)
	return &w, nil
}

// lendable reports every setting that stands in the way of one member. In a tenant's namespace the policy adds to its pods.
func (d *doctor) lendable(j *v1alpha1.ElasticJob, m *v1alpha1.JobMember, w *adapter.Workload, tenant bool) bool {
	refusals := adapter.Refusals(w, m)
	for _, r := range refusals {
		d.Report(fmt.Sprintf("change the setting, or take member %s out of ElasticJob %s/%s", m.Role, j.Namespace, j.Name), "%s in %s: %s", w.What, j.Namespace, r)
	}
	lands := true
	if p := w.Part(m.PartName()); p != nil && p.Template != nil && !w.Finished {
		if what := fmt.Sprintf("%s in %s", w.What, j.Namespace); m.Stable {
			lands = d.staying(fmt.Sprintf("stable member %s (%s)", m.Role, what), p, tenant)
		} else {
			lands = d.landing(what, p.Template)
		}
	}
	return lands && len(refusals) == 0
}

// landing looks for the toleration and the affinity that bring pods to lent machines and keep them there alone.
func (d *doctor) landing(what string, spec *corev1.PodSpec) bool {
	tolerated := toleratesHolder(spec)
	if !tolerated {
		d.Report(fmt.Sprintf("add the toleration %s=%s:NoSchedule to its pod template", v1alpha1.TaintHolder, v1alpha1.TaintHolderOffline),
			"the pods of %s do not tolerate lent machines", what)
	}
	drawn := asks(spec, v1alpha1.LabelOffline, "true")
	if !drawn {
		d.Report(fmt.Sprintf("add the node affinity %s In [true] to its pod template", v1alpha1.LabelOffline),
			"the pods of %s may land on online machines, where no recall reaches them", what)
	}
	return tolerated && drawn
}

// staying looks for what keeps the pods of a stable member off lent machines: the label of where a machine is at home, asked for by the
// template or by the policy; the taint of such machines; or whatever else of the template none of them meets.
func (d *doctor) staying(what string, p *adapter.Part, tenant bool) bool {
	open := tenant || asks(p.Template, v1alpha1.LabelOffline, "true")
	switch {
	case tenant && holdsTogether(p.Labels):
		return true
	case asks(p.Template, v1alpha1.LabelHome, v1alpha1.HomeOffline):
		if !open {
			d.Report(fmt.Sprintf("add the node selector %s: \"true\" to its pod template", v1alpha1.LabelOffline),
				"the pods of %s may land on machines that online borrows", what)
		}
		return open
	case !tenant && !toleratesHolder(p.Template):
		return true
	case len(d.away) > 0 && !slices.ContainsFunc(d.away, func(n *corev1.Node) bool { return selects(p.Template, n) }):
		return true
	}
	fix := fmt.Sprintf("add the node selector %s: %s to its pod template", v1alpha1.LabelHome, v1alpha1.HomeOffline)
	if tenant {
		fix = fmt.Sprintf("add the label %s: \"true\" to its pod template, or the node selector %s: %s", v1alpha1.LabelStable, v1alpha1.LabelHome, v1alpha1.HomeOffline)
	}
	d.Report(fix, "the pods of %s may land on lent machines, and are evicted when those are recalled", what)
	return false
}

// stableLabels are the labels by which the policy knows the pods of stable members: ours, and those of the operators.
var stableLabels = [][2]string{
	{v1alpha1.LabelStable, "true"},
	{"training.kubeflow.org/job-role", "launcher"},
	{"training.kubeflow.org/replica-type", "master"},
	{"ray.io/node-type", "head"},
	{"spark-role", "driver"},
}

// holdsTogether reports whether the policy takes pods with such labels for those of a stable member.
func holdsTogether(labels map[string]string) bool {
	return slices.ContainsFunc(stableLabels, func(l [2]string) bool { return labels[l[0]] == l[1] })
}

// asks reports whether a pod lands on machines alone whose label has a value, of which there is one.
func asks(spec *corev1.PodSpec, label, value string) bool {
	if spec.NodeSelector[label] == value {
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
			asks = asks || (e.Key == label && (e.Operator == corev1.NodeSelectorOpExists ||
				(e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 && e.Values[0] == value)))
		}
		if !asks {
			return false
		}
	}
	return len(terms) > 0
}

// selects reports whether a machine is among those that a pod asks for. One whose terms cannot be read goes nowhere.
func selects(spec *corev1.PodSpec, n *corev1.Node) bool {
	ok, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec}).Match(n)
	return ok && err == nil
}

// toleratesHolder reports whether a pod may land on machines that offline holds.
func toleratesHolder(spec *corev1.PodSpec) bool {
	taint := &corev1.Taint{Key: v1alpha1.TaintHolder, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}
	return slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool { return tolerates(&t, taint) })
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
