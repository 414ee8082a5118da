package loop

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// Shut machines are counted by what keeps online pods off, whatever the taint; what was there and is open again is 0, and a pool of offline has none.
func TestShutMachinesAreShown(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	m := NewMetrics(r)
	s := &fleet.Snapshot{Pools: []fleet.Pool{{ID: "batch", Class: fleet.Offline}, {ID: "web", Class: fleet.Online}}}
	taint := func(text string, nodes int) planner.ShutMachines {
		return planner.ShutMachines{By: fleet.Shut{By: fleet.ShutByTaint, Taint: text}, Nodes: nodes}
	}
	cordon, kubelet, deleted := planner.ShutMachines{By: fleet.Shut{By: fleet.ShutByCordon}, Nodes: 3}, planner.ShutMachines{By: fleet.Shut{By: fleet.ShutByKubelet}, Nodes: 4},
		planner.ShutMachines{By: fleet.Shut{By: fleet.ShutByDeletion}, Nodes: 1}
	for _, x := range []struct {
		name string
		shut []planner.ShutMachines
		want string // cordon, deletion, kubelet, taint
	}{
		{"all are open", nil, "0 0 0 0"},
		{"two taints", []planner.ShutMachines{taint("maintenance=yes:NoSchedule", 24), taint("storage=broken:NoExecute", 2)}, "0 0 0 26"},
		{"each reason", []planner.ShutMachines{taint("maintenance=yes:NoSchedule", 5), kubelet, cordon, deleted}, "3 1 4 5"},
		{"all are open again", nil, "0 0 0 0"},
	} {
		var p page
		m.pools(&p, s, &planner.Plan{Pools: []planner.PoolView{{Pool: "batch"}, {Pool: "web", Shut: x.shut}}})
		m.board.show(p)
		n := strings.Fields(x.want)
		want := "# HELP springtide_pool_shut_machines Machines of a pool on which no online pod may land, by what keeps it off (Taint, Cordon, Deletion, Kubelet). They are no room.\n" +
			"# TYPE springtide_pool_shut_machines gauge\n" +
			`springtide_pool_shut_machines{by="Cordon",pool="web"} ` + n[0] + "\n" +
			`springtide_pool_shut_machines{by="Deletion",pool="web"} ` + n[1] + "\n" +
			`springtide_pool_shut_machines{by="Kubelet",pool="web"} ` + n[2] + "\n" +
			`springtide_pool_shut_machines{by="Taint",pool="web"} ` + n[3] + "\n"
		if err := testutil.GatherAndCompare(r, strings.NewReader(want), "springtide_pool_shut_machines"); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}
