package kube

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// A machine with a taint of others that the pool's services do not tolerate is no room, as one that is cordoned; one whose taint they tolerate is.
func TestForeignTaints(t *testing.T) {
	taint := func(key, value string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: effect}
	}
	tolerates := func(key string) []corev1.Toleration {
		return []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
	}
	for _, c := range []struct {
		name   string
		change func(*corev1.Node)
		of     []corev1.Toleration // of the service
		pool   string
		ready  bool
		shut   fleet.Shut
	}{
		{"open", func(*corev1.Node) {}, nil, "web", true, fleet.Shut{}},
		{"NoSchedule", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{taint("maintenance", "yes", corev1.TaintEffectNoSchedule)}
		}, nil, "web", false, fleet.Shut{By: fleet.ShutByTaint, Taint: "maintenance=yes:NoSchedule"}},
		{"NoExecute, next to another one", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{taint("storage", "broken", corev1.TaintEffectNoExecute), taint("a", "", corev1.TaintEffectNoSchedule)}
		}, tolerates("a"), "web", false, fleet.Shut{By: fleet.ShutByTaint, Taint: "a:NoSchedule, storage=broken:NoExecute"}},
		{"a preference", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{taint("DeletionCandidateOfClusterAutoscaler", "1", corev1.TaintEffectPreferNoSchedule)}
		}, nil, "web", true, fleet.Shut{}},
		{"the node autoscaler takes it away", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{taint("ToBeDeletedByClusterAutoscaler", "1", corev1.TaintEffectNoSchedule)}
		}, nil, "web", false, fleet.Shut{By: fleet.ShutByTaint, Taint: "ToBeDeletedByClusterAutoscaler=1:NoSchedule"}},
		{"the node lifecycle controller", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{taint("node.kubernetes.io/memory-pressure", "", corev1.TaintEffectNoSchedule)}
		}, nil, "web", false, fleet.Shut{By: fleet.ShutByTaint, Taint: "node.kubernetes.io/memory-pressure:NoSchedule"}},
		{"one that the service tolerates", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{taint("dedicated", "web", corev1.TaintEffectNoSchedule)}
		}, tolerates("dedicated"), "web", true, fleet.Shut{}},
		{"the service tolerates all", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{taint("maintenance", "yes", corev1.TaintEffectNoSchedule)}
		}, tolerates(""), "web", true, fleet.Shut{}},
		{"the node autoscaler takes it away, and the service tolerates all", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{taint("karpenter.sh/disrupted", "", corev1.TaintEffectNoSchedule)}
		}, tolerates(""), "web", false, fleet.Shut{By: fleet.ShutByTaint, Taint: "karpenter.sh/disrupted:NoSchedule"}},
		{"our own", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{facts.HolderTaint()} }, nil, "web", true, fleet.Shut{}},
		{"a pool of offline", func(n *corev1.Node) {
			n.Labels, n.Spec.Taints = kubetest.InBatch, []corev1.Taint{taint("maintenance", "yes", corev1.TaintEffectNoSchedule)}
		}, nil, "batch", true, fleet.Shut{}},
		{"cordoned", func(n *corev1.Node) {
			n.Spec.Unschedulable, n.Spec.Taints = true, []corev1.Taint{taint(corev1.TaintNodeUnschedulable, "", corev1.TaintEffectNoSchedule)}
		}, nil, "web", false, fleet.Shut{By: fleet.ShutByCordon}},
		{"not ready", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, nil, "web", false, fleet.Shut{By: fleet.ShutByKubelet}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, d := kubetest.Node("n1", kubetest.InWeb), kubetest.Deployment("cart", 3)
			c.change(n)
			d.Spec.Template.Spec.Tolerations = c.of
			w := newWorld(t, n, kubetest.Node("n2", kubetest.InWeb), kubetest.Pool("web", "Online", kubetest.InWeb),
				kubetest.Pool("batch", "Offline", kubetest.InBatch), d, kubetest.ReplicaSet("cart", 1),
				kubetest.Pod("shop", "cart-a", "n2", "ReplicaSet", "cart-1"), kubetest.Service("cart"))
			for _, x := range w.snapshot(t).Nodes {
				want, shut := true, fleet.Shut{}
				if x.Name == "n1" {
					want, shut = c.ready, c.shut
				}
				if x.Ready != want || x.Shut != shut {
					t.Errorf("machine %s: ready %v, shut by %+v; want %v, %+v", x.Name, x.Ready, x.Shut, want, shut)
				}
			}
		})
	}
}

// The pool names what keeps online pods off and on how many machines; an event comes with the first of it.
func TestReportShutMachines(t *testing.T) {
	r := newReported(t, kubetest.Pool("web", "Online", kubetest.InWeb), kubetest.Pool("batch", "Offline",
		kubetest.InBatch), kubetest.Node("n1", kubetest.InWeb), kubetest.Node("n2", kubetest.InWeb))
	room := func(shut ...planner.ShutMachines) metav1.Condition {
		r.cycle(t, func(rep *loop.Report) {
			rep.Plan.Pools = []planner.PoolView{{Pool: "web", Nodes: 2, Shut: shut}}
		})
		return *meta.FindStatusCondition(objectNow[v1alpha1.CapacityPool](t, r.world, object.GVRPools,
			"web").Status.Conditions,
			catalog.ConditionRoomOpen)
	}
	if c := room(); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	c := room(planner.ShutMachines{By: fleet.Shut{By: fleet.ShutByTaint, Taint: "maintenance=yes:NoSchedule"}, Nodes: 24}, planner.ShutMachines{By: fleet.Shut{By: fleet.ShutByCordon}, Nodes: 1})
	if c.Status != metav1.ConditionFalse || c.Reason != "ForeignTaint" || !strings.Contains(c.Message, "24 by the taint maintenance=yes:NoSchedule, 1 by a cordon") {
		t.Errorf("%+v", c)
	}
	if c = room(planner.ShutMachines{By: fleet.Shut{By: fleet.ShutByKubelet}, Nodes: 1}); c.Status != metav1.ConditionFalse || c.Reason != "NotSchedulable" {
		t.Errorf("%+v", c)
	}
}

// RoomShut comes once when taints begin to keep online pods off, again when the taints change or come back, and not for a cordon.
func TestRoomShutIsSaidOnce(t *testing.T) {
	r := newReported(t, kubetest.Pool("web", "Online", kubetest.InWeb), kubetest.Node("n1", kubetest.InWeb))
	shut := func(by fleet.ShutBy, taint string, nodes int) planner.ShutMachines {
		return planner.ShutMachines{By: fleet.Shut{By: by, Taint: taint}, Nodes: nodes}
	}
	drain, broken, cordon := shut(fleet.ShutByTaint, "maintenance=yes:NoSchedule", 24), shut(fleet.ShutByTaint, "storage=broken:NoExecute", 2), shut(fleet.ShutByCordon, "", 3)
	said := func(machines, taints string) []string {
		return []string{"Warning RoomShut no online pod may land on " + machines + " machines with foreign taints (" + taints + "): they are no room, and lending stops accordingly"}
	}
	for _, x := range []struct {
		name string
		shut []planner.ShutMachines
		want []string
	}{
		{"all is open", nil, nil},
		{"a cordon is the operator's own", []planner.ShutMachines{cordon}, nil},
		{"a taint", []planner.ShutMachines{drain, cordon}, said("24", "maintenance=yes:NoSchedule")},
		{"it stands", []planner.ShutMachines{drain, cordon}, nil},
		{"another one joins", []planner.ShutMachines{drain, broken}, said("26", "maintenance=yes:NoSchedule, storage=broken:NoExecute")},
		{"all is open again", nil, nil},
		{"it comes back", []planner.ShutMachines{broken}, said("2", "storage=broken:NoExecute")},
	} {
		_, events := r.cycle(t, func(rep *loop.Report) { rep.Plan.Pools = []planner.PoolView{{Pool: "web", Nodes: 32, Shut: x.shut}} })
		if diff := cmp.Diff(x.want, events); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", x.name, diff)
		}
	}
}

// A machine of an offline pool stays Ready under a taint of others, and names the online pools for which it would be no room.
func TestForeignTaintsOfOffline(t *testing.T) {
	taints := func(key string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}} }
	}
	for _, c := range []struct {
		name   string
		change func(*corev1.Node)
		of     []corev1.Toleration // of the service
		want   []fleet.PoolID
	}{
		{"open", func(*corev1.Node) {}, nil, nil},
		{"NoSchedule", taints("dedicated", corev1.TaintEffectNoSchedule), nil, []fleet.PoolID{"web"}},
		{"NoExecute", taints("storage", corev1.TaintEffectNoExecute), nil, []fleet.PoolID{"web"}},
		{"another one is tolerated", taints("storage", corev1.TaintEffectNoExecute), []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}, []fleet.PoolID{"web"}},
		{"one that the service tolerates", taints("dedicated", corev1.TaintEffectNoSchedule), []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}, nil},
		{"a preference", taints("dedicated", corev1.TaintEffectPreferNoSchedule), nil, nil},
		{"our own", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{facts.HolderTaint()} }, nil, nil},
	} {
		n, d := kubetest.Node("n1", kubetest.InBatch), kubetest.Deployment("cart", 3)
		c.change(n)
		d.Spec.Template.Spec.Tolerations = c.of
		w := newWorld(t, n, kubetest.Node("n2", kubetest.InWeb), kubetest.Pool("web", "Online", kubetest.InWeb),
			kubetest.Pool("batch", "Offline", kubetest.InBatch), d, kubetest.ReplicaSet("cart", 1),
			kubetest.Pod("shop", "cart-a", "n2", "ReplicaSet", "cart-1"), kubetest.Service("cart"))
		for _, x := range w.snapshot(t).Nodes {
			if x.Name == "n1" && (!x.Ready || !slices.Equal(x.Repels, c.want)) {
				t.Errorf("%s: ready %v, repels %v, want %v", c.name, x.Ready, x.Repels, c.want)
			}
		}
	}
}
