package facts_test

import (
	"fmt"
	"testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

// The memory of a cell that pods can have is without huge pages and without what its exporter says is reserved there.
func TestMemoryOfACell(t *testing.T) {
	for _, c := range []struct {
		name, resources string
		want            fleet.Bytes
	}{
		{"memory", "[{name: memory, capacity: 64Gi, allocatable: 64Gi}]", 64 * fleet.GiB},
		{"capacity alone", "[{name: memory, capacity: 64Gi}]", 64 * fleet.GiB},
		{"huge pages of two sizes", "[{name: hugepages-1Gi, capacity: 8Gi}, {name: memory, capacity: 64Gi, allocatable: 64Gi}, {name: hugepages-2Mi, capacity: 4Gi}]", 52 * fleet.GiB},
		{"some is reserved, and the huge pages with it", "[{name: memory, capacity: 64Gi, allocatable: 50Gi}, {name: hugepages-1Gi, capacity: 8Gi}]", 50 * fleet.GiB},
		{"more huge pages than memory", "[{name: memory, capacity: 1Gi}, {name: hugepages-1Gi, capacity: 8Gi}]", 0},
		{"huge pages beyond all bounds", "[{name: memory, capacity: 1Gi}, {name: hugepages-1Gi, capacity: 8Ei}, {name: hugepages-2Mi, capacity: 8Ei}]", 0},
		{"a negative amount of them", "[{name: memory, capacity: 1Gi}, {name: hugepages-1Gi, capacity: -8Gi}]", fleet.GiB},
		{"negative allocatable", "[{name: memory, capacity: 1Gi, allocatable: -1}]", fleet.GiB},
		{"none", "[{name: cpu, capacity: 4}]", 0},
	} {
		cells := facts.Cells(parsed(t, fmt.Sprintf(`
apiVersion: topology.node.k8s.io/v1alpha2
kind: NodeResourceTopology
metadata: {name: n1}
zones:
- {name: socket-0, type: Socket}
- {name: node-0, type: Node, parent: socket-0, resources: %s}
`, c.resources)))
		if len(cells) != 1 || cells[0].Capacity.Memory != c.want {
			t.Errorf("%s: %+v, want %d", c.name, cells, c.want)
		}
	}
}

// A number that two zones have names no cell: a loan of both would be of one cell twice, which the API server refuses. Such a machine counts as one of unknown topology, as
// two reporters of one object leave it.
func TestCellsOfOneNumberAreNotKnown(t *testing.T) {
	for _, c := range []struct {
		name  string
		zones []string
		want  int
	}{
		{"each its own", []string{"node-0", "node-1", "node-2", "node-3"}, 4},
		{"two reporters", []string{"node-0", "node-1", "numa-0", "numa-1"}, 0},
		{"one name twice", []string{"node-0", "node-0"}, 0},
		{"zeros before the number", []string{"node-1", "node-01"}, 0},
		{"apart", []string{"node-3", "node-0", "numa3"}, 0},
	} {
		text := "apiVersion: topology.node.k8s.io/v1alpha2\nkind: NodeResourceTopology\nmetadata: {name: n1}\nzones:\n- {name: socket-0, type: Socket}\n"
		for _, z := range c.zones {
			text += fmt.Sprintf("- {name: %s, type: Node, parent: socket-0, resources: [{name: cpu, capacity: 4}]}\n", z)
		}
		if cells := facts.Cells(parsed(t, text)); len(cells) != c.want {
			t.Errorf("%s: %+v, want %d", c.name, cells, c.want)
		}
		if topology := facts.TopologyOf(parsed(t, text)); len(topology.Cells) != c.want {
			t.Errorf("%s: %+v", c.name, topology)
		}
	}
}
