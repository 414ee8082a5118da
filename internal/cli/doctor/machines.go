package doctor

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
)

// checkMachines looks whether pools of both classes pick machines, and whether any machine is picked twice.
func checkMachines(ctx context.Context, d *doctor) error {
	all, nodes, err := d.poolsAndNodes(ctx)
	if err != nil {
		return err
	}
	picked := map[string]int{}
	var twice []string
	for i := range nodes {
		homes := cluster.HomesOf(&nodes[i], all)
		switch len(homes) {
		case 0:
		case 1:
			picked[homes[0]]++
		default:
			twice = append(twice, nodes[i].Name)
		}
	}
	classes := map[string]bool{}
	for i := range all {
		classes[all[i].Spec.Class] = true
		if picked[all[i].Name] == 0 {
			d.Advise("change its nodeSelector, or label machines for it", "pool %s picks no machine of its own", all[i].Name)
		}
	}
	for _, class := range []fleet.Class{fleet.Online, fleet.Offline} {
		if !classes[string(class)] {
			d.Advise("write a CapacityPool of class "+string(class), "no pool of class %s: nothing can be lent", class)
		}
	}
	if len(twice) > 0 {
		d.Report("change the selector of one of the pools: a machine picked twice belongs to neither", "%d machines are picked by two pools: %s", len(twice), cell.First(twice, cell.FewNames))
	}
	if total(picked) == 0 && len(nodes) > 0 {
		d.Report("label machines, or change the nodeSelector of a pool", "none of %d machines belongs to a pool: nothing can be lent", len(nodes))
		return nil
	}
	d.OK("%d of %d machines belong to a pool", total(picked), len(nodes))
	return nil
}

func total(m map[string]int) int {
	n := 0
	for _, v := range m {
		n += v
	}
	return n
}

func (d *doctor) poolsAndNodes(ctx context.Context) ([]v1alpha1.CapacityPool, []corev1.Node, error) {
	all, err := cluster.List[v1alpha1.CapacityPool](ctx, d.Clients, cluster.Pools, "")
	if err != nil {
		return nil, nil, err
	}
	nodes, err := d.Clients.Core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("read the nodes: %w", err)
	}
	return all, nodes.Items, nil
}

// topologies is the API by which machines tell their cells.
const topologies = "topology.node.k8s.io/v1alpha2"

// checkAgents looks for agents and topology where a pool lends sockets: a machine that never had an agent is lent whole, one whose agent is
// silent is not lent.
func checkAgents(ctx context.Context, d *doctor) error {
	all, nodes, err := d.poolsAndNodes(ctx)
	if err != nil {
		return err
	}
	leases, err := d.Clients.Core.CoordinationV1().Leases(d.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the agents' leases in %s: %w", d.Namespace, err)
	}
	alive := map[string]bool{}
	for i := range leases.Items {
		alive[leases.Items[i].Name] = cluster.AgentAlive(&leases.Items[i], d.Clients.Wall())
	}
	sockets := map[string]bool{}
	for i := range all {
		sockets[all[i].Name] = all[i].Spec.LendableUnit == string(fleet.UnitSocket)
	}
	var need, silent []string
	for i := range nodes {
		homes := cluster.HomesOf(&nodes[i], all)
		if len(homes) != 1 || !sockets[homes[0]] {
			continue
		}
		need = append(need, nodes[i].Name)
		if !alive[v1alpha1.AgentLeasePrefix+nodes[i].Name] {
			silent = append(silent, nodes[i].Name)
		}
	}
	if len(need) == 0 {
		d.OK("no pool lends sockets, so none is needed")
		return nil
	}
	if _, err := d.Clients.Core.Discovery().ServerResourcesForGroupVersion(topologies); err != nil {
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("look for %s: %w", topologies, err)
		}
		d.Advise("install the CRD of "+topologies+" and an exporter of it", "a pool lends sockets, and no NodeResourceTopology says which cells a machine has")
	}
	if len(silent) > 0 {
		d.Advise("run the agent there: without it no socket is lent. A machine that never had an agent is lent whole: the controller decides when it is clean. "+
			"One whose agent fell silent is not lent until the agent is back, or springtide node forget-agent NODE says that it will not be", "%d of %d machines that lend sockets have no live agent: %s", len(silent), len(need), cell.First(silent, cell.FewNames))
		return nil
	}
	d.OK("all %d machines that lend sockets have a live agent", len(need))
	return d.checkHooks(nodes, need)
}

// checkHooks looks whether containers are confined before they start. A fleet of which no machine has the label is one without NRI, or of an older
// agent: its conditions say so.
func (d *doctor) checkHooks(nodes []corev1.Node, need []string) error {
	var without []string
	for i := range nodes {
		if slices.Contains(need, nodes[i].Name) && nodes[i].Labels[v1alpha1.LabelRuntimeHooks] != "true" {
			without = append(without, nodes[i].Name)
		}
	}
	if len(without) == len(need) {
		return nil
	}
	if len(without) > 0 {
		d.Advise("turn NRI on in the container runtime there, and mount its socket into the agent's pod (docs/agent.md)",
			"on %d of %d machines that lend sockets containers are confined after their start, not before: %s", len(without), len(need), cell.First(without, cell.FewNames))
	}
	const admission = "admissionregistration.k8s.io/v1"
	kinds, err := d.Clients.Core.Discovery().ServerResourcesForGroupVersion(admission)
	if err != nil {
		return fmt.Errorf("look for %s: %w", admission, err)
	}
	if !slices.ContainsFunc(kinds.APIResources, func(r metav1.APIResource) bool { return r.Name == "mutatingadmissionpolicies" }) {
		d.Advise("upgrade to Kubernetes 1.36, then add the component deploy/base/agent/hooks",
			"the cluster has no MutatingAdmissionPolicy: a pod that must not start unconfined is not held back while a machine's agent is away, and is corrected after its start")
	}
	return nil
}
